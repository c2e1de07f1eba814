//! Proving one image, on the emulator or on a GPU.

use pagesmith_prove::Seed;
use pagesmith_prove::case::Effort;
use pagesmith_prove::proof::{ProveError, Verdict, prove, prove_on};
use pagesmith_runtime::{Cuda, Kernels};
use pagesmith_spec::{Gpu, Image, Variant};

/// Where kernels are proved and timed.
#[derive(Debug)]
pub enum Bench<'a> {
    /// Under all checks on the emulator; times are modelled.
    Emulated,
    /// On a GPU; times are measured.
    Cuda(&'a Cuda),
}

/// Proves an image where `bench` is, for `gpu`.
///
/// # Errors
/// When it does not load, or a case cannot be launched.
pub(crate) fn verdict(
    bench: &Bench<'_>,
    gpu: &Gpu,
    variant: &Variant,
    image: &Image,
    seed: Seed,
) -> Result<Verdict, ProveError> {
    match bench {
        Bench::Emulated => prove(variant, image, gpu, Effort::Standard, seed),
        Bench::Cuda(device) => {
            let mut kernels = Kernels::new((*device).clone());
            kernels
                .load(variant, image)
                .map_err(|error| ProveError::Load {
                    variant: variant.id(),
                    error,
                })?;
            prove_on(&mut kernels, variant, Effort::Standard, seed)
        }
    }
}

/// Findings and failures in words, the first few of them.
pub(crate) fn reasons(verdict: &Verdict) -> Vec<String> {
    const SHOWN: usize = 8;
    let findings = verdict.findings.iter().map(|found| {
        format!(
            "case {} (seed {}): {}",
            found.case, found.seed, found.finding
        )
    });
    let failures = verdict.failures.iter().map(|failure| failure.to_string());
    let mut reasons: Vec<String> = findings.chain(failures).collect();
    let more = (reasons.len().saturating_sub(SHOWN) as u64) + verdict.findings_dropped;
    reasons.truncate(SHOWN);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    if verdict.cases == 0 {
        reasons.push(String::from("no case was run"));
    }
    reasons
}
