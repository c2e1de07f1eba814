//! What a proof found.

use super::Judgement;
use super::judge::ROW_SLACK;
use crate::Seed;
use crate::case::Case;
use crate::reference::{Comparison, Difference};
use pagesmith_emulator::{Finding, Report};
use pagesmith_spec::Variant;
use pagesmith_spec::record::Proof;
use serde::Serialize;

/// What is wrong with the output of one case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// Elements that the kernel had to write still hold what was there before.
    #[error("{count} elements of {tensor} were not written, the first is {first}")]
    Unwritten {
        /// `out` or `lse`.
        tensor: &'static str,
        /// Index of the first, counted over the live rows.
        first: usize,
        /// How many.
        count: usize,
    },
    /// Memory beside the rows was written.
    #[error("{tensor} was written outside its rows, at element {element} from its start")]
    Stray {
        /// `out` or `lse`.
        tensor: &'static str,
        /// Where.
        element: i64,
    },
    /// An element that no tolerance excuses.
    #[error("{tensor}: {difference}")]
    Element {
        /// `out` or `lse`.
        tensor: &'static str,
        /// Which, and what it is.
        difference: Difference,
    },
    /// The output is too far from the reference.
    #[error("relative L2 error {:.2e} exceeds {tolerance:.0e}, or that of row {}, {:.2e}, exceeds {:.0e}",
        comparison.relative_l2, comparison.worst_row, comparison.worst_row_l2, ROW_SLACK * tolerance)]
    Inaccurate {
        /// How far.
        comparison: Comparison,
        /// How far the whole may be.
        tolerance: f64,
    },
    /// The log-sum-exp is too far from the reference.
    #[error("log-sum-exp error {error:.2e} exceeds {tolerance:.0e}")]
    Lse {
        /// How far.
        error: f64,
        /// How far it may be.
        tolerance: f64,
    },
}

/// A failure with the case that shows it again.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("case {case} (seed {seed}): {failure}")]
pub struct CaseFailure {
    /// The case.
    pub case: String,
    /// What it was made from.
    pub seed: Seed,
    /// What is wrong.
    pub failure: Failure,
}

/// A finding of the emulator's checks with the case that shows it again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseFinding {
    /// The case.
    pub case: String,
    /// What it was made from.
    pub seed: Seed,
    /// What was found.
    pub finding: Finding,
}

/// What a proof found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The variant's id.
    pub variant: String,
    /// Where it ran.
    pub device: String,
    /// What the cases were made from.
    pub seed: Seed,
    /// Cases run.
    pub cases: u32,
    /// Largest relative L2 error of the output of any case. Cases whose output cannot be compared count as
    /// failures instead.
    pub max_relative_l2: f64,
    /// Largest relative L2 error of the row of one token.
    pub max_row_l2: f64,
    /// Largest error of the log-sum-exp.
    pub max_lse_error: f64,
    /// Wrong outputs.
    pub failures: Vec<CaseFailure>,
    /// Faults that the checks found.
    pub findings: Vec<CaseFinding>,
    /// Distinct faults beyond those listed.
    pub findings_dropped: u64,
}

impl Verdict {
    pub(super) fn new(variant: &Variant, device: &str, seed: Seed) -> Self {
        Verdict {
            variant: variant.id(),
            device: device.to_owned(),
            seed,
            cases: 0,
            max_relative_l2: 0.0,
            max_row_l2: 0.0,
            max_lse_error: 0.0,
            failures: Vec::new(),
            findings: Vec::new(),
            findings_dropped: 0,
        }
    }

    /// Every case is right and no check found anything.
    pub fn passed(&self) -> bool {
        self.cases > 0
            && self.failures.is_empty()
            && self.findings.is_empty()
            && self.findings_dropped == 0
    }

    /// What is kept of it beside an image.
    pub fn proof(&self) -> Proof {
        let findings = self.findings.len() as u64 + self.findings_dropped;
        Proof {
            device: self.device.clone(),
            cases: self.cases,
            findings: u32::try_from(findings).unwrap_or(u32::MAX),
            max_relative_l2: self.max_relative_l2,
        }
    }

    pub(super) fn add(&mut self, case: &Case, judgement: Judgement) {
        self.cases += 1;
        self.max_relative_l2 = self.max_relative_l2.max(judgement.relative_l2);
        self.max_row_l2 = self.max_row_l2.max(judgement.row_l2);
        self.max_lse_error = self.max_lse_error.max(judgement.lse_error);
        self.failures
            .extend(judgement.failures.into_iter().map(|failure| CaseFailure {
                case: case.name.clone(),
                seed: case.seed,
                failure,
            }));
    }

    pub(super) fn add_findings(&mut self, case: &Case, report: Report) {
        self.findings_dropped += report.findings_dropped;
        self.findings
            .extend(report.findings.into_iter().map(|finding| CaseFinding {
                case: case.name.clone(),
                seed: case.seed,
                finding,
            }));
    }
}
