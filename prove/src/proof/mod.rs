//! Runs a variant's image over hostile cases and says whether it is right.
//!
//! ```text
//!   Variant + Image ── prove ────────> Emulated, every check on ─┐
//!                   └─ prove_on(&mut Kernels<D>, ..)  any device ┴─ for each case:
//!                          run (poisoned outputs) ──> judge (against the f64 reference) ──> Verdict
//! ```

mod judge;
mod run;
mod verdict;

pub use judge::{Judgement, judge};
pub use run::{RunError, Written, run};
pub use verdict::{CaseFailure, CaseFinding, Failure, Verdict};

use crate::Seed;
use crate::case::{Case, Effort, standard};
use pagesmith_emulator::{Counters, Options};
use pagesmith_runtime::device::emulated::{EmulatedOptions, Findings};
use pagesmith_runtime::{Device, Emulated, Kernels, LoadError};
use pagesmith_spec::{Gpu, Image, Variant};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A proof that could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The device refuses the image.
    #[error("{variant}: {error}")]
    Load {
        /// The variant's id.
        variant: String,
        /// Why.
        error: LoadError,
    },
    /// A case could not be launched.
    #[error("{variant}, case {case} (seed {seed}): {error}")]
    Run {
        /// The variant's id.
        variant: String,
        /// The case.
        case: String,
        /// What it was made from.
        seed: Seed,
        /// Why.
        error: Box<RunError>,
    },
}

/// Warp instructions after which a CTA of a proof is taken to hang: a hundred times what a case takes.
const INSTRUCTION_LIMIT: u64 = 20_000_000;
/// Distinct findings kept of one launch.
const FINDING_LIMIT: usize = 16;

/// Proves an image on the emulator, under every check, over the standard cases of its variant.
///
/// Each case is planned for its own number of multiprocessors of a GPU like `gpu`, so that split and
/// unsplit paths both run.
///
/// # Errors
/// When the image does not load or a case cannot be launched. A wrong image is no error: its verdict says
/// what is wrong.
pub fn prove(
    variant: &Variant,
    image: &Image,
    gpu: &Gpu,
    effort: Effort,
    seed: Seed,
) -> Result<Verdict, ProveError> {
    let cases: Vec<Case> = cases(variant, effort, seed).collect();
    prove_cases(variant, image, gpu, seed, &cases)
}

/// Proves an image on the emulator over cases of the caller's.
///
/// # Errors
/// As [`prove`].
pub fn prove_cases(
    variant: &Variant,
    image: &Image,
    gpu: &Gpu,
    seed: Seed,
    cases: &[Case],
) -> Result<Verdict, ProveError> {
    let mut verdict = Verdict::new(variant, "emulated", seed);
    let mut by_sms: BTreeMap<u32, Kernels<Emulated>> = BTreeMap::new();
    for case in cases {
        let kernels = match by_sms.entry(case.sms) {
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(emulated(variant, image, gpu, case.sms)?),
        };
        prove_case(kernels, variant, case, &mut verdict)?;
        for launch in kernels.device().take_reports() {
            verdict.add_findings(case, launch.report);
        }
    }
    Ok(verdict)
}

/// Proves the variant that `kernels` has loaded for its spec, by the numbers alone, over the standard
/// cases; plans fill the device that there is.
///
/// # Errors
/// When a case cannot be launched.
pub fn prove_on<D: Device>(
    kernels: &mut Kernels<D>,
    variant: &Variant,
    effort: Effort,
    seed: Seed,
) -> Result<Verdict, ProveError> {
    let mut verdict = Verdict::new(variant, &kernels.device().gpu().name.clone(), seed);
    for case in cases(variant, effort, seed) {
        prove_case(kernels, variant, &case, &mut verdict)?;
    }
    Ok(verdict)
}

fn cases(variant: &Variant, effort: Effort, seed: Seed) -> impl Iterator<Item = Case> {
    standard(variant, effort, seed)
        .into_iter()
        .zip(1..)
        .map(move |(spec, index)| Case::generate(variant.spec(), &spec, seed.part(index)))
}

fn prove_case<D: Device>(
    kernels: &mut Kernels<D>,
    variant: &Variant,
    case: &Case,
    verdict: &mut Verdict,
) -> Result<(), ProveError> {
    let written = run(kernels, case).map_err(|error| ProveError::Run {
        variant: variant.id(),
        case: case.name.clone(),
        seed: case.seed,
        error: Box::new(error),
    })?;
    verdict.add(case, judge(case, &written));
    Ok(())
}

/// An emulated GPU like `gpu` with `sms` multiprocessors, under every check, the image loaded.
fn emulated(
    variant: &Variant,
    image: &Image,
    gpu: &Gpu,
    sms: u32,
) -> Result<Kernels<Emulated>, ProveError> {
    let mut gpu = gpu.clone();
    gpu.sms = sms;
    let options = EmulatedOptions {
        launch: Options {
            counters: Counters::InstructionsOnly,
            instruction_limit: INSTRUCTION_LIMIT,
            finding_limit: FINDING_LIMIT,
            ..Options::default()
        },
        findings: Findings::Collect,
    };
    let mut kernels = Kernels::new(Emulated::with_options(gpu, options));
    kernels
        .load(variant, image)
        .map_err(|error| ProveError::Load {
            variant: variant.id(),
            error,
        })?;
    Ok(kernels)
}
