//! `autotune measure`.

use super::kernels::{table, workload};
use super::{Place, object};
use crate::cli::answer::Answer;
use crate::cli::args::{DeviceChoice, MeasureArgs};
use crate::cli::failure::Failure;
use crate::cli::page::{Page, counted};
use crate::cli::progress::Bar;
use pagesmith_autotune::{KernelReport, Remeasured, remeasure};
use pagesmith_prove::Seed;
use pagesmith_runtime::{Device, KernelCache};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::time::Instant;

pub(crate) fn measure(args: &MeasureArgs) -> Result<Box<dyn Answer>, Failure> {
    let ordinal = match args.device {
        DeviceChoice::Cuda(ordinal) => ordinal,
        DeviceChoice::Auto => 0,
        DeviceChoice::Emulated => {
            return Err(Failure::input(
                "device: emulated cannot be measured, a modelled time is never called measured; use \
                 cuda:N, or `autotune run --device emulated` for modelled times",
            ));
        }
    };
    let begin = Instant::now();
    let place = Place::of(&args.cache)?;
    let cuda = super::cuda(ordinal)?;
    // The device says whose times these are, never the command line.
    let cache = KernelCache::open_or_create(place.root(), cuda.gpu()).map_err(Failure::input)?;
    let outcome = remeasure(&cache, &cuda, Seed::fresh(), &Bar::new())?;
    let nothing = outcome.specs.is_empty() && outcome.failed.is_empty();
    if nothing && outcome.problems.is_empty() {
        return Err(Failure::input(format_args!(
            "cache: {} has no candidates; make some with `autotune compile --gpu {} --model MODEL --cache {}`",
            cache.directory().display(),
            cuda.gpu().name,
            place.root().display(),
        )));
    }
    Ok(Box::new(Answered {
        gpu: cuda.gpu().name.clone(),
        driver: cuda.driver_version().to_owned(),
        cache: cache.directory().to_owned(),
        outcome,
        elapsed_s: begin.elapsed().as_secs_f64(),
    }))
}

struct Answered {
    gpu: String,
    driver: String,
    cache: PathBuf,
    outcome: Remeasured,
    elapsed_s: f64,
}

impl Answered {
    fn winners(&self) -> Vec<KernelReport> {
        let best = self.outcome.specs.iter().filter_map(|spec| spec.first());
        best.map(|kernel| kernel.kernel.report()).collect()
    }
}

impl Answer for Answered {
    fn is_good(&self) -> bool {
        self.outcome.failed.is_empty() && self.outcome.problems.is_empty()
    }

    fn json(&self) -> Value {
        let candidates: Vec<Value> = self
            .outcome
            .specs
            .iter()
            .flatten()
            .map(|kernel| {
                let mut report = object(&kernel.kernel.report());
                if let Value::Object(fields) = &mut report {
                    fields.insert("rounds_us".into(), json!(kernel.rounds_us));
                    fields.insert("modelled_us".into(), json!(kernel.modelled_us));
                }
                report
            })
            .collect();
        json!({
            "gpu": self.gpu,
            "driver": self.driver,
            "cache": self.cache,
            "elapsed_s": self.elapsed_s,
            "kernels": self.winners(),
            "candidates": candidates,
            "failed": self.outcome.failed,
            "problems": self.outcome.problems,
        })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let winners = self.winners();
        let candidates = self.outcome.specs.iter().map(Vec::len).sum();
        page.heading(format_args!(
            "{} on {} (driver {}), {:.1} s",
            counted(candidates, "candidate"),
            self.gpu,
            self.driver,
            self.elapsed_s
        ))?;
        page.blank()?;
        table(page, &winners)?;
        page.blank()?;
        if let Some(kernel) = winners.first() {
            page.fields(&[
                (
                    "time",
                    format!(
                        "one decode over {}; {}",
                        workload(kernel.shape),
                        kernel.provenance
                    ),
                ),
                ("cache", self.cache.display().to_string()),
            ])?;
        }
        for failed in &self.outcome.failed {
            page.bad("wrong:", &failed.id)?;
            for reason in &failed.reasons {
                page.line(format_args!("  {reason}"))?;
            }
        }
        for problem in &self.outcome.problems {
            page.bad("damaged:", problem)?;
        }
        Ok(())
    }
}
