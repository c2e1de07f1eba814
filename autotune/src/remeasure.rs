//! Measuring what a build machine has compiled: no compiler is needed.

use crate::clock::roofline_fraction;
use crate::judge::Failed;
use crate::measured::measure;
use crate::modelled::kv_bytes;
use crate::proof::{Bench, reasons, verdict};
use crate::{Event, Kernel, Observer, TuneError};
use pagesmith_prove::Seed;
use pagesmith_runtime::{Cuda, KernelCache};
use pagesmith_spec::record::Proof;
use pagesmith_spec::{Gpu, Image, KernelSpec, Provenance, TuningRecord, Workload};
use std::collections::BTreeMap;

/// A measured candidate beside what was predicted for it.
#[derive(Clone, Debug)]
pub struct RemeasuredKernel {
    /// With its measured record.
    pub kernel: Kernel,
    /// Median of each round, in microseconds.
    pub rounds_us: Vec<f64>,
    /// What the model said, where the candidate was not measured before.
    pub modelled_us: Option<f64>,
}

/// What became of a cache's candidates.
#[derive(Clone, Debug, Default)]
pub struct Remeasured {
    /// By spec, best first; specs without a right kernel are absent.
    pub specs: Vec<Vec<RemeasuredKernel>>,
    /// Candidates that the device proved wrong, or that could not be timed. Their records stay modelled.
    pub failed: Vec<Failed>,
    /// Damaged files.
    pub problems: Vec<String>,
}

struct Candidate {
    record: TuningRecord,
    image: Image,
    proof: Proof,
}

/// Proves every candidate of a cache again on the GPU, times those that are right, and keeps the measured
/// records.
///
/// # Errors
/// When the cache cannot be read or written, or a workload does not fit the device.
pub fn remeasure(
    cache: &KernelCache,
    device: &Cuda,
    seed: Seed,
    observer: &dyn Observer,
) -> Result<Remeasured, TuneError> {
    let bench = Bench::Cuda(device);
    let entries = cache.entries()?;
    let mut outcome = Remeasured {
        problems: entries.problems.iter().map(ToString::to_string).collect(),
        ..Remeasured::default()
    };
    let total = entries.records.len();
    observer.event(Event::Begin {
        work: "measuring",
        total,
    });
    let mut groups: BTreeMap<(KernelSpec, Workload), Vec<Candidate>> = BTreeMap::new();
    for record in entries.records {
        let image = match cache.load_image(&record) {
            Ok(image) => image,
            Err(problem) => {
                outcome.problems.push(problem.to_string());
                continue;
            }
        };
        match proved(&bench, cache.gpu(), &record, &image, seed) {
            Ok(proof) => groups
                .entry((record.variant.spec().clone(), record.workload))
                .or_default()
                .push(Candidate {
                    record,
                    image,
                    proof,
                }),
            Err(failed) => outcome.failed.push(failed),
        }
    }
    for ((spec, workload), candidates) in groups {
        let variants: Vec<_> = candidates
            .iter()
            .map(|candidate| (candidate.record.variant.clone(), candidate.image.clone()))
            .collect();
        let times = measure(device, &spec, workload, &variants)?;
        let mut kernels = Vec::new();
        for (candidate, time) in candidates.into_iter().zip(times) {
            let about = &candidate.record.id;
            observer.event(Event::Step { about });
            match time {
                Err(error) => outcome.failed.push(Failed {
                    id: candidate.record.id,
                    reasons: vec![error.to_string()],
                }),
                Ok(time) => {
                    let modelled_us = match candidate.record.provenance {
                        Provenance::Modelled { .. } => Some(candidate.record.time_us),
                        Provenance::Measured { .. } => None,
                    };
                    let record = TuningRecord {
                        time_us: time.time_us,
                        roofline_fraction: roofline_fraction(
                            cache.gpu(),
                            kv_bytes(&spec, workload),
                            time.time_us,
                        ),
                        provenance: time.provenance,
                        proof: candidate.proof,
                        ..candidate.record
                    };
                    cache.put(&candidate.image, &record)?;
                    kernels.push(RemeasuredKernel {
                        kernel: Kernel {
                            header: candidate.image.header,
                            record,
                        },
                        rounds_us: time.rounds_us,
                        modelled_us,
                    });
                }
            }
        }
        let ranked = cache.candidates(&spec)?.records;
        kernels.sort_by_key(|kernel| {
            ranked
                .iter()
                .position(|record| record.id == kernel.kernel.record.id)
        });
        if !kernels.is_empty() {
            outcome.specs.push(kernels);
        }
    }
    observer.event(Event::End);
    Ok(outcome)
}

/// Proves one candidate on the device.
fn proved(
    bench: &Bench<'_>,
    gpu: &Gpu,
    record: &TuningRecord,
    image: &Image,
    seed: Seed,
) -> Result<Proof, Failed> {
    let reasons = match verdict(bench, gpu, &record.variant, image, seed) {
        Ok(verdict) if verdict.passed() => return Ok(verdict.proof()),
        Ok(verdict) => reasons(&verdict),
        Err(error) => vec![error.to_string()],
    };
    Err(Failed {
        id: record.id.clone(),
        reasons,
    })
}
