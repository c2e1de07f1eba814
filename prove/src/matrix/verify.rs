//! Compiles and proves every row of a covering array.

use super::{Cell, Strength, axes, covering_array, varied_tuning};
use crate::case::Effort;
use crate::proof::{CaseFailure, CaseFinding, ProveError, Verdict, prove};
use crate::random::Seed;
use pagesmith_codegen::{Compiler, ForgeError, forge};
use pagesmith_spec::{Gpu, SpecError, Variant};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to verify, and with what.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRequest<'a> {
    /// How many axes are combined.
    pub strength: Strength,
    /// Compiles the variants.
    pub compiler: &'a Compiler,
    /// Whose arch they are compiled for.
    pub gpu: &'a Gpu,
    /// How much each proof tries.
    pub effort: Effort,
    /// Chooses rows, tunings and inputs.
    pub seed: Seed,
}

/// A variant is done.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProgress<'a> {
    /// Variants done, this one included.
    pub done: usize,
    /// Variants in all.
    pub total: usize,
    /// This one's id.
    pub variant: &'a str,
    /// Whether it passed.
    pub passed: bool,
}

/// A row that could not be compiled or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The spec has no kernel.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No tuning of its engine is legal on the arch.
    #[error("{0}: no tuning is legal on this arch")]
    NoTuning(String),
    /// It did not compile.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// It could not be proved or disproved.
    #[error(transparent)]
    Prove(#[from] ProveError),
}

/// What is wrong with one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixFailure {
    /// The variant's id; its spec's where it has none.
    pub variant: String,
    /// Its tuning, so that the failure can be shown again.
    pub tuning: String,
    /// Wrong outputs.
    pub failures: Vec<CaseFailure>,
    /// What kept it from being compiled or run.
    pub error: Option<String>,
}

/// A fault that a check found, with its variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixFinding {
    /// The variant's id.
    pub variant: String,
    /// Where.
    #[serde(flatten)]
    pub finding: CaseFinding,
}

/// The outcome of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixReport {
    /// `pairwise` or `3wise`.
    pub matrix: String,
    /// What rows, tunings and inputs were made from.
    pub seed: Seed,
    /// Variants compiled and proved.
    pub variants: usize,
    /// Those that are right and free of findings.
    pub passed: usize,
    /// The others.
    pub failed: usize,
    /// Tuples of axis values that a legal variant has.
    pub tuples: usize,
    /// Tuples that a variant has which passed.
    pub tuples_covered: usize,
    /// Cases run.
    pub cases: u32,
    /// Largest relative L2 error of any variant.
    pub max_relative_l2: f64,
    /// Every variant that failed.
    pub failures: Vec<MatrixFailure>,
    /// Every fault that the checks found.
    pub findings: Vec<MatrixFinding>,
}

impl MatrixReport {
    /// Every variant passed, and they cover every tuple.
    pub fn passed(&self) -> bool {
        self.failed == 0 && self.variants > 0 && self.tuples_covered == self.tuples
    }
}

struct Row {
    variant: String,
    tuning: String,
    verdict: Result<Verdict, RowError>,
}

impl Row {
    fn passed(&self) -> bool {
        self.verdict.as_ref().is_ok_and(Verdict::passed)
    }
}

/// Proves one variant for each row of a covering array of the whole family, on the cores of the
/// surrounding rayon pool. The report depends on the seed and the compiler alone, not on their number.
pub fn verify_matrix(
    request: &MatrixRequest<'_>,
    progress: &(dyn Fn(MatrixProgress<'_>) + Sync),
) -> MatrixReport {
    let sizes = axes().map(|axis| axis.values);
    let arch = request.gpu.arch;
    let legal = |row: &[usize]| {
        Cell::from_indices(row).is_some_and(|Cell { spec, engine }| {
            spec.check().is_ok() && varied_tuning(&spec, engine, arch, request.seed).is_some()
        })
    };
    let array = covering_array(&sizes, request.strength, &legal, request.seed);
    let done = AtomicUsize::new(0);
    let total = array.rows.len();
    // Each row is legal, so each has a cell.
    let cells: Vec<Cell> = array
        .rows
        .iter()
        .filter_map(|indices| Cell::from_indices(indices))
        .collect();
    let rows: Vec<Row> = cells
        .par_iter()
        .enumerate()
        .map(|(index, cell)| {
            let row = verify_row(request, cell, request.seed.part(index as u64));
            progress(MatrixProgress {
                done: done.fetch_add(1, Ordering::Relaxed) + 1,
                total,
                variant: &row.variant,
                passed: row.passed(),
            });
            row
        })
        .collect();
    let passed: Vec<&Vec<usize>> = array
        .rows
        .iter()
        .zip(&rows)
        .filter_map(|(indices, row)| row.passed().then_some(indices))
        .collect();
    let mut report = MatrixReport {
        matrix: request.strength.to_string(),
        seed: request.seed,
        variants: rows.len(),
        passed: passed.len(),
        failed: rows.len() - passed.len(),
        tuples: array.coverable(),
        tuples_covered: array.covered_by(passed),
        cases: 0,
        max_relative_l2: 0.0,
        failures: Vec::new(),
        findings: Vec::new(),
    };
    for row in rows {
        add(&mut report, row);
    }
    report
}

fn add(report: &mut MatrixReport, row: Row) {
    let passed = row.passed();
    let (failures, error) = match row.verdict {
        Ok(verdict) => {
            report.cases += verdict.cases;
            report.max_relative_l2 = report.max_relative_l2.max(verdict.max_relative_l2);
            report
                .findings
                .extend(verdict.findings.into_iter().map(|finding| MatrixFinding {
                    variant: row.variant.clone(),
                    finding,
                }));
            (verdict.failures, None)
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    if !passed {
        report.failures.push(MatrixFailure {
            variant: row.variant,
            tuning: row.tuning,
            failures,
            error,
        });
    }
}

fn verify_row(request: &MatrixRequest<'_>, cell: &Cell, seed: Seed) -> Row {
    let mut row = Row {
        variant: cell.spec.slug(),
        tuning: cell.engine.to_string(),
        verdict: Err(RowError::NoTuning(cell.spec.slug())),
    };
    let arch = request.gpu.arch;
    if let Some(tuning) = varied_tuning(&cell.spec, cell.engine, arch, seed) {
        row.tuning = tuning.to_string();
        let mut prove_row = || -> Result<Verdict, RowError> {
            let variant = Variant::new(cell.spec.clone(), tuning)?;
            row.variant = variant.id();
            let image = forge(&variant, arch, request.compiler)?;
            Ok(prove(&variant, &image, request.gpu, request.effort, seed)?)
        };
        let verdict = prove_row();
        row.verdict = verdict;
    }
    row
}
