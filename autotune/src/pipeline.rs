//! The whole life of a run's variants: each is recalled or compiled, proved, timed and kept.
//!
//! ```text
//!   Group ── rendered ──> recall ──┬─ Kernel ───────────────────────────────┐
//!                                  ├─ Excluded ──────────> excluded         │
//!                                  └─ forge ── prove ── time ── cache.put ──┴──> best first
//! ```
//!
//! Variants are taken a few at a time and each is kept as soon as it is judged, so that an interrupted run
//! goes on where it was.

use crate::clock::Clock;
use crate::judge::{Failed, Step, judge};
use crate::{Event, Kernel, Observer, Toolshop, TuneError};
use pagesmith_prove::Seed;
use pagesmith_runtime::{Cuda, KernelCache};
use pagesmith_spec::{Exclusion, KernelSpec, Variant, Workload};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Variants of one spec.
#[derive(Clone, Debug)]
pub struct Group {
    /// The spec.
    pub spec: KernelSpec,
    /// What is tried, in order.
    pub variants: Vec<Variant>,
    /// The traffic that times are of.
    pub workload: Workload,
}

/// Where kernels are proved and timed.
#[derive(Debug)]
pub enum Bench<'a> {
    /// Under all checks on the emulator; times are modelled.
    Emulated,
    /// On a GPU; times are measured.
    Cuda(&'a Cuda),
}

/// What a run works with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Where kernels are kept; its GPU is what they are for.
    pub cache: &'a KernelCache,
    /// Compiles.
    pub toolshop: &'a Toolshop<'a>,
    /// Proves and times.
    pub bench: &'a Bench<'a>,
    /// What proofs draw their inputs from.
    pub seed: Seed,
    /// Hears of progress.
    pub observer: &'a dyn Observer,
}

/// What became of one spec.
#[derive(Clone, Debug)]
pub struct SpecOutcome {
    /// The spec.
    pub spec: KernelSpec,
    /// What the cache now has of it that this run vouches for, best first.
    pub kernels: Vec<Kernel>,
    /// Compiled, and not kept.
    pub excluded: Vec<(Variant, Exclusion)>,
    /// Wrong.
    pub failed: Vec<Failed>,
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By spec, in order.
    pub specs: Vec<SpecOutcome>,
    /// Variants that were compiled.
    pub compiled: usize,
    /// Variants for which everything was in the cache.
    pub reused: usize,
}

/// Tunes groups of variants and keeps what is right in the cache.
///
/// # Errors
/// When there is no compiler for what must be compiled, or the cache cannot be written. What is wrong with
/// one variant is part of the outcome.
pub fn tune(groups: Vec<Group>, means: Means<'_>) -> Result<Outcome, TuneError> {
    let total = groups.iter().map(|group| group.variants.len()).sum();
    means.observer.event(Event::Begin {
        work: "tuning",
        total,
    });
    let mut outcome = Outcome::default();
    let done = groups
        .into_iter()
        .try_for_each(|group| tune_group(group, means, &mut outcome));
    means.observer.event(Event::End);
    done.map(|()| outcome)
}

fn tune_group(group: Group, means: Means<'_>, outcome: &mut Outcome) -> Result<(), TuneError> {
    let Group {
        spec,
        variants,
        workload,
    } = group;
    let mut found = SpecOutcome::new(spec);
    let mut clock = Clock::new(means, &found.spec, workload);
    // Variants side by side while they are compiled and proved; the workload's emulation is parallel in itself.
    for few in variants.chunks(rayon::current_num_threads().max(1)) {
        let judged: Vec<_> = few
            .par_iter()
            .map(|variant| judge(variant.clone(), workload, means))
            .collect::<Result<_, TuneError>>()?;
        for judged in judged {
            outcome.compiled += usize::from(judged.compiled);
            outcome.reused += usize::from(judged.reused);
            let step = match judged.step {
                Step::Proved(proved) => clock.time(*proved)?,
                step => Some(step),
            };
            found.add(step, means.observer);
        }
    }
    for step in clock.finish()? {
        found.add(Some(step), means.observer);
    }
    found.rank(means)?;
    outcome.specs.push(found);
    Ok(())
}

impl SpecOutcome {
    fn new(spec: KernelSpec) -> Self {
        SpecOutcome {
            spec,
            kernels: Vec::new(),
            excluded: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Takes a variant's last step; one that still waits for its time has none.
    fn add(&mut self, step: Option<Step>, observer: &dyn Observer) {
        let about = match step {
            None | Some(Step::Proved(_)) => return,
            Some(Step::Kept(kernel)) => {
                let id = kernel.record.id.clone();
                self.kernels.push(kernel);
                id
            }
            Some(Step::Excluded(variant, exclusion)) => {
                let id = variant.id();
                self.excluded.push((variant, exclusion));
                id
            }
            Some(Step::Failed(failed)) => {
                let id = failed.id.clone();
                self.failed.push(failed);
                id
            }
        };
        observer.event(Event::Step { about: &about });
    }

    /// Best first, in the order of the cache: the one that servers will load.
    fn rank(&mut self, means: Means<'_>) -> Result<(), TuneError> {
        let ranked = means.cache.candidates(&self.spec)?.records;
        let places: BTreeMap<&str, usize> = ranked
            .iter()
            .enumerate()
            .map(|(place, record)| (record.id.as_str(), place))
            .collect();
        self.kernels.sort_by_key(|kernel| {
            places
                .get(kernel.record.id.as_str())
                .copied()
                .unwrap_or(usize::MAX)
        });
        if let (Some(best), Some(own)) = (ranked.first(), self.kernels.first())
            && best.id != own.record.id
        {
            means.observer.event(Event::Note {
                text: &format!(
                    "the cache has a kernel of an earlier run that ranks before {}: {}",
                    own.record.id, best.id
                ),
            });
        }
        Ok(())
    }
}
