//! One variant, from its spec and tuning to a proved image.

use crate::forge::{Rendered, forge, rendered};
use crate::pipeline::Means;
use crate::proof::{Bench, reasons, verdict};
use crate::recall::{Judge, Recalled, recall};
use crate::{Event, Kernel, TuneError};
use pagesmith_runtime::Device;
use pagesmith_runtime::cache::Problem;
use pagesmith_spec::record::Proof;
use pagesmith_spec::{Exclusion, Image, Variant, Workload};
use serde::Serialize;

/// A variant that did not come out right.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// Its id.
    pub id: String,
    /// What is wrong, a line each.
    pub reasons: Vec<String>,
}

/// A variant with its image, found right.
pub(crate) struct Proved {
    pub(crate) variant: Variant,
    pub(crate) image: Image,
    pub(crate) proof: Proof,
}

/// Where a variant is on its way.
pub(crate) enum Step {
    /// Timed, and in the cache.
    Kept(Box<Kernel>),
    /// Not to be kept.
    Excluded(Variant, Exclusion),
    /// Not timed yet.
    Proved(Box<Proved>),
    /// Wrong.
    Failed(Failed),
}

/// How far a variant came, and what that took.
pub(crate) struct Judged {
    pub(crate) step: Step,
    /// The compiler ran.
    pub(crate) compiled: bool,
    /// Nothing had to be done.
    pub(crate) reused: bool,
}

/// Everything up to the proof.
pub(crate) fn judge(
    variant: Variant,
    workload: Workload,
    means: Means<'_>,
) -> Result<Judged, TuneError> {
    let arch = means.cache.gpu().arch;
    let rendered = rendered(variant, arch)?;
    let judge = match means.bench {
        Bench::Emulated => Judge::Emulated,
        Bench::Cuda(device) => Judge::Gpu(&device.gpu().name),
    };
    let damage = |problem: Problem| {
        means.observer.event(Event::Note {
            text: &format!("replacing {problem}"),
        });
    };
    let known = recall(
        means.cache,
        &rendered,
        means.toolshop,
        judge,
        workload,
        &damage,
    );
    let (image, proof, compiled) = match known {
        Recalled::Kernel(kernel) => {
            return Ok(Judged {
                step: Step::Kept(Box::new(kernel)),
                compiled: false,
                reused: true,
            });
        }
        Recalled::Excluded(exclusion) => {
            return Ok(Judged {
                step: Step::Excluded(rendered.variant, exclusion),
                compiled: false,
                reused: true,
            });
        }
        Recalled::Compiled(image, proof) => (image, proof, false),
        Recalled::Nothing => match compile(&rendered, means)? {
            Ok(image) => (image, None, true),
            Err(step) => {
                return Ok(Judged {
                    step,
                    compiled: true,
                    reused: false,
                });
            }
        },
    };
    let step = match proof {
        Some(proof) => Step::Proved(Box::new(Proved {
            variant: rendered.variant,
            image,
            proof,
        })),
        None => proved(rendered.variant, image, means),
    };
    Ok(Judged {
        step,
        compiled,
        reused: false,
    })
}

/// Compiles, and remembers a spill.
fn compile(rendered: &Rendered, means: Means<'_>) -> Result<Result<Image, Step>, TuneError> {
    let compiler = means.toolshop.compiler()?;
    let variant = &rendered.variant;
    match forge(compiler, rendered, means.cache.gpu().arch) {
        Ok(Ok(image)) => Ok(Ok(image)),
        Ok(Err(exclusion)) => {
            let key = means.toolshop.judged(rendered.hash);
            means.cache.put_excluded(variant, key, exclusion.clone())?;
            Ok(Err(Step::Excluded(variant.clone(), exclusion)))
        }
        Err(error) => Ok(Err(Step::Failed(Failed {
            id: variant.id(),
            reasons: vec![error.to_string()],
        }))),
    }
}

fn proved(variant: Variant, image: Image, means: Means<'_>) -> Step {
    match verdict(means.bench, means.cache.gpu(), &variant, &image, means.seed) {
        Ok(verdict) if verdict.passed() => {
            let proof = verdict.proof();
            Step::Proved(Box::new(Proved {
                variant,
                image,
                proof,
            }))
        }
        Ok(verdict) => Step::Failed(Failed {
            id: variant.id(),
            reasons: reasons(&verdict),
        }),
        Err(error) => Step::Failed(Failed {
            id: variant.id(),
            reasons: vec![error.to_string()],
        }),
    }
}
