//! What notices a mutant.

use crate::case::Effort;
use crate::proof::{Failure, ProveError, Verdict, prove};
use crate::random::Seed;
use pagesmith_emulator::FindingKind;
use pagesmith_spec::{Gpu, Image, Variant};
use std::collections::BTreeSet;
use std::fmt;

/// What noticed that a kernel is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaughtBy {
    /// A check of the emulator.
    Check(FindingKind),
    /// An output or log-sum-exp that differs from the reference.
    Numbers,
    /// An output that was not written.
    Unwritten,
    /// A write beside the outputs.
    Stray,
    /// The emulator does not accept the PTX.
    Refused,
}

impl fmt::Display for CaughtBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaughtBy::Check(kind) => write!(f, "check: {kind}"),
            CaughtBy::Numbers => f.write_str("numbers"),
            CaughtBy::Unwritten => f.write_str("unwritten output"),
            CaughtBy::Stray => f.write_str("stray write"),
            CaughtBy::Refused => f.write_str("refused PTX"),
        }
    }
}

/// Everything that notices a mutant over the standard cases; empty for one that survives.
///
/// # Errors
/// When a case cannot be launched.
pub fn judge(
    variant: &Variant,
    image: &Image,
    mutant_ptx: &str,
    gpu: &Gpu,
    seed: Seed,
) -> Result<BTreeSet<CaughtBy>, ProveError> {
    let mutant = Image {
        ptx: mutant_ptx.to_owned(),
        ..image.clone()
    };
    match prove(variant, &mutant, gpu, Effort::Standard, seed) {
        Ok(verdict) => Ok(caught_by(&verdict)),
        Err(ProveError::Load { .. }) => Ok(BTreeSet::from([CaughtBy::Refused])),
        Err(error) => Err(error),
    }
}

fn caught_by(verdict: &Verdict) -> BTreeSet<CaughtBy> {
    let checks = verdict
        .findings
        .iter()
        .map(|found| CaughtBy::Check(found.finding.kind));
    let failures = verdict
        .failures
        .iter()
        .map(|failure| match failure.failure {
            Failure::Unwritten { .. } => CaughtBy::Unwritten,
            Failure::Stray { .. } => CaughtBy::Stray,
            Failure::Element { .. } | Failure::Inaccurate { .. } | Failure::Lse { .. } => {
                CaughtBy::Numbers
            }
        });
    checks.chain(failures).collect()
}
