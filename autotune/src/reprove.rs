//! Proving again what a cache holds, over fresh inputs.

use crate::judge::Failed;
use crate::proof::{Bench, reasons, verdict};
use crate::{Event, Observer, TuneError};
use pagesmith_prove::Seed;
use pagesmith_prove::matrix::MatrixFinding;
use pagesmith_prove::proof::Verdict;
use pagesmith_runtime::KernelCache;
use pagesmith_spec::TuningRecord;
use rayon::prelude::*;
use serde::Serialize;

/// What became of a cache's kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Reproved {
    /// Where they were proved.
    pub device: String,
    /// What the inputs were made from.
    pub seed: Seed,
    /// Records, those that cannot be used included.
    pub variants: usize,
    /// Those that are right.
    pub passed: usize,
    /// The others.
    pub failed: usize,
    /// Cases run.
    pub cases: u32,
    /// Largest relative L2 error.
    pub max_relative_l2: f64,
    /// Every fault that the checks found.
    pub findings: Vec<MatrixFinding>,
    /// Every kernel that is not right, damaged ones included.
    pub failures: Vec<Failed>,
}

/// Proves every kernel of a cache again.
///
/// # Errors
/// When the cache cannot be read.
pub fn reprove(
    cache: &KernelCache,
    bench: &Bench<'_>,
    seed: Seed,
    observer: &dyn Observer,
) -> Result<Reproved, TuneError> {
    let entries = cache.entries()?;
    let mut outcome = Reproved {
        device: match bench {
            Bench::Cuda(_) => cache.gpu().name.clone(),
            Bench::Emulated => String::from("emulated"),
        },
        seed,
        variants: entries.records.len() + entries.problems.len(),
        passed: 0,
        failed: 0,
        cases: 0,
        max_relative_l2: 0.0,
        findings: Vec::new(),
        failures: Vec::new(),
    };
    observer.event(Event::Begin {
        work: "proving",
        total: entries.records.len(),
    });
    let each = |record: &TuningRecord| {
        let verdict = one(cache, bench, record, seed);
        observer.event(Event::Step { about: &record.id });
        (record.id.clone(), verdict)
    };
    // A GPU is one device: its proofs wait for each other anyway.
    let verdicts: Vec<(String, Result<Verdict, String>)> = match bench {
        Bench::Emulated => entries.records.par_iter().map(each).collect(),
        Bench::Cuda(_) => entries.records.iter().map(each).collect(),
    };
    observer.event(Event::End);
    for problem in entries.problems {
        outcome.fail(
            problem.path().display().to_string(),
            vec![problem.kind().to_string()],
        );
    }
    for (id, verdict) in verdicts {
        match verdict {
            Ok(verdict) => outcome.add(id, verdict),
            Err(reason) => outcome.fail(id, vec![reason]),
        }
    }
    Ok(outcome)
}

fn one(
    cache: &KernelCache,
    bench: &Bench<'_>,
    record: &TuningRecord,
    seed: Seed,
) -> Result<Verdict, String> {
    let image = cache
        .load_image(record)
        .map_err(|problem| problem.to_string())?;
    verdict(bench, cache.gpu(), &record.variant, &image, seed).map_err(|error| error.to_string())
}

impl Reproved {
    /// Every kernel is right, and there is at least one.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.variants > 0
    }

    /// Adds the outcome of another cache.
    pub fn merge(&mut self, other: Reproved) {
        self.variants += other.variants;
        self.passed += other.passed;
        self.failed += other.failed;
        self.cases += other.cases;
        self.max_relative_l2 = self.max_relative_l2.max(other.max_relative_l2);
        self.findings.extend(other.findings);
        self.failures.extend(other.failures);
    }

    fn add(&mut self, id: String, verdict: Verdict) {
        self.cases += verdict.cases;
        self.max_relative_l2 = self.max_relative_l2.max(verdict.max_relative_l2);
        if verdict.passed() {
            self.passed += 1;
        } else {
            self.fail(id.clone(), reasons(&verdict));
        }
        self.findings
            .extend(verdict.findings.into_iter().map(|finding| MatrixFinding {
                variant: id.clone(),
                finding,
            }));
    }

    fn fail(&mut self, id: String, reasons: Vec<String>) {
        self.failed += 1;
        self.failures.push(Failed { id, reasons });
    }
}
