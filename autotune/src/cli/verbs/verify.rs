//! `autotune verify`.

use super::{Place, object};
use crate::cli::answer::Answer;
use crate::cli::args::{DeviceChoice, VerifyArgs};
use crate::cli::failure::Failure;
use crate::cli::page::{Page, counted, thousands};
use crate::cli::progress::Bar;
use pagesmith_autotune::{Bench, Event, Failed, Observer, Reproved, Toolshop, reprove};
use pagesmith_codegen::{Provisioning, Search};
use pagesmith_prove::Seed;
use pagesmith_prove::case::Effort;
use pagesmith_prove::matrix::{MatrixReport, MatrixRequest, Strength, verify_matrix};
use pagesmith_runtime::{Cuda, Device};
use pagesmith_spec::Gpu;
use serde_json::{Value, json};
use std::io;
use std::time::Instant;

pub(crate) fn verify(args: &VerifyArgs) -> Result<Box<dyn Answer>, Failure> {
    super::threads(args.jobs)?;
    let seed = args.seed.map_or_else(Seed::fresh, Seed);
    match args.matrix {
        Some(strength) => matrix(args, strength.into(), seed),
        None => cache(args, seed),
    }
}

fn cache(args: &VerifyArgs, seed: Seed) -> Result<Box<dyn Answer>, Failure> {
    let begin = Instant::now();
    let place = Place::of(&args.cache)?;
    let device: Option<Cuda> = match args.device {
        DeviceChoice::Emulated | DeviceChoice::Auto => None,
        DeviceChoice::Cuda(ordinal) => Some(super::cuda(ordinal)?),
    };
    let caches = match (&device, &args.gpu) {
        (Some(cuda), None) => place.caches(Some(&cuda.gpu().name))?,
        (_, gpu) => place.caches(gpu.as_deref())?,
    };
    let bench = device.as_ref().map_or(Bench::Emulated, Bench::Cuda);
    let bar = Bar::new();
    let mut all: Option<Reproved> = None;
    for cache in &caches {
        let one = reprove(cache, &bench, seed, &bar)?;
        match &mut all {
            None => all = Some(one),
            Some(all) => all.merge(one),
        }
    }
    match all.filter(|all| all.variants > 0) {
        Some(outcome) => Ok(Box::new(OfCache {
            outcome,
            elapsed_s: begin.elapsed().as_secs_f64(),
        })),
        None => Err(Failure::input(format_args!(
            "cache: {} has no kernels to verify; fill it with `autotune run --model MODEL`, or verify \
             what the templates can do with --matrix pairwise",
            place.root().display()
        ))),
    }
}

fn matrix(args: &VerifyArgs, strength: Strength, seed: Seed) -> Result<Box<dyn Answer>, Failure> {
    if let DeviceChoice::Cuda(ordinal) = args.device {
        return Err(Failure::input(format_args!(
            "device: a matrix is compiled and proved on the emulator; to prove it on cuda:{ordinal}, make \
             its images with `autotune compile --matrix {strength} --gpu GPU --cache DIR`, then \
             `autotune verify --cache DIR --device cuda:{ordinal}`"
        )));
    }
    let begin = Instant::now();
    let gpu =
        Gpu::by_name(args.gpu.as_deref().unwrap_or("a100-sxm4-80gb")).map_err(Failure::input)?;
    let bar = Bar::new();
    let tell = |progress| bar.event(Event::Provision(&progress));
    let provisioning = if args.offline {
        Provisioning::Offline
    } else {
        Provisioning::Allowed
    };
    let toolshop = Toolshop::new(Search::from_env(), provisioning, &tell);
    let request = MatrixRequest {
        strength,
        compiler: toolshop.compiler()?,
        gpu: &gpu,
        effort: Effort::Standard,
        seed,
    };
    let begun = std::sync::Once::new();
    let report = verify_matrix(&request, &|progress| {
        begun.call_once(|| {
            bar.event(Event::Begin {
                work: "proving",
                total: progress.total,
            });
        });
        bar.event(Event::Step {
            about: progress.variant,
        });
    });
    bar.event(Event::End);
    Ok(Box::new(OfMatrix {
        gpu: gpu.name,
        report,
        elapsed_s: begin.elapsed().as_secs_f64(),
    }))
}

struct OfCache {
    outcome: Reproved,
    elapsed_s: f64,
}

struct OfMatrix {
    gpu: String,
    report: MatrixReport,
    elapsed_s: f64,
}

impl Answer for OfCache {
    fn is_good(&self) -> bool {
        self.outcome.is_good()
    }

    fn json(&self) -> Value {
        with_elapsed(object(&self.outcome), self.elapsed_s)
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let Reproved {
            device,
            seed,
            variants,
            passed,
            failed,
            cases,
            max_relative_l2,
            findings,
            failures,
        } = &self.outcome;
        let summary = format!(
            "{passed} of {} right on {device}: {}, largest error {max_relative_l2:.1e}, {}, {:.1} s (seed {seed})",
            counted(*variants, "kernel"),
            counted(*cases as usize, "case"),
            counted(findings.len(), "finding"),
            self.elapsed_s
        );
        if *failed == 0 {
            return page.good("verified:", summary);
        }
        for failure in failures {
            wrong(page, failure)?;
        }
        page.bad("failed:", summary)
    }
}

impl Answer for OfMatrix {
    fn is_good(&self) -> bool {
        self.report.passed()
    }

    fn json(&self) -> Value {
        let mut object = with_elapsed(object(&self.report), self.elapsed_s);
        if let Value::Object(fields) = &mut object {
            fields.insert("gpu".into(), json!(self.gpu));
        }
        object
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let report = &self.report;
        for failure in &report.failures {
            let reasons = failure.failures.iter().map(ToString::to_string);
            let findings = report
                .findings
                .iter()
                .filter(|found| found.variant == failure.variant)
                .map(|found| format!("case {}: {}", found.finding.case, found.finding.finding));
            let reasons = failure
                .error
                .clone()
                .into_iter()
                .chain(findings)
                .chain(reasons);
            wrong(
                page,
                &Failed {
                    id: format!("{} ({})", failure.variant, failure.tuning),
                    reasons: reasons.take(6).collect(),
                },
            )?;
        }
        let summary = format!(
            "{} of {} right for {}: {} of {} tuples of the {} matrix, {}, largest error {:.1e}, {}, {:.1} s (seed {})",
            report.passed,
            counted(report.variants, "variant"),
            self.gpu,
            thousands(report.tuples_covered as u64),
            thousands(report.tuples as u64),
            report.matrix,
            counted(report.cases as usize, "case"),
            report.max_relative_l2,
            counted(report.findings.len(), "finding"),
            self.elapsed_s,
            report.seed,
        );
        if self.is_good() {
            page.good("verified:", summary)
        } else {
            page.bad("failed:", summary)
        }
    }
}

fn wrong(page: &mut Page<'_>, failed: &Failed) -> io::Result<()> {
    page.bad("wrong:", &failed.id)?;
    for reason in &failed.reasons {
        page.line(format_args!("  {reason}"))?;
    }
    Ok(())
}

fn with_elapsed(mut object: Value, elapsed_s: f64) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("elapsed_s".into(), json!(elapsed_s));
    }
    object
}
