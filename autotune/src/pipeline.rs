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
use crate::proof::Bench;
use crate::{Event, Kernel, Observer, Toolshop, TuneError};
use pagesmith_prove::Seed;
use pagesmith_runtime::KernelCache;
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
    /// What is tried when none of these is kept.
    pub spare: Vec<Variant>,
    /// The traffic that times are of.
    pub workload: Workload,
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
    let outcome = tune_all(groups, means);
    means.observer.event(Event::End);
    outcome
}

fn tune_all(groups: Vec<Group>, means: Means<'_>) -> Result<Outcome, TuneError> {
    let mut outcome = Outcome::default();
    let mut queue: Vec<(usize, Variant)> = Vec::new();
    let mut open: Vec<OpenGroup<'_>> = Vec::with_capacity(groups.len());
    for group in groups {
        let variants = group.variants.into_iter();
        queue.extend(variants.map(|variant| (open.len(), variant)));
        open.push(OpenGroup {
            clock: Clock::new(means, &group.spec, group.workload),
            found: SpecOutcome::new(group.spec),
            spare: group.spare,
            workload: group.workload,
        });
    }
    tune_queue(&queue, &mut open, &mut outcome, means)?;

    let mut spare: Vec<(usize, Variant)> = Vec::new();
    for (index, group) in open.iter_mut().enumerate() {
        if group.found.kernels.is_empty() {
            spare.extend(group.spare.drain(..).map(|variant| (index, variant)));
        }
    }
    tune_queue(&spare, &mut open, &mut outcome, means)?;
    outcome.specs = open.into_iter().map(|group| group.found).collect();
    Ok(outcome)
}

/// Tunes the variants of a queue, in which groups are in order.
fn tune_queue(
    queue: &[(usize, Variant)],
    open: &mut [OpenGroup<'_>],
    outcome: &mut Outcome,
    means: Means<'_>,
) -> Result<(), TuneError> {
    // Variants side by side, across groups, while they are compiled and proved; the emulation of a workload
    // is parallel in itself.
    let mut left = queue;
    while let Some((first, _)) = left.first() {
        let (few, rest) = left.split_at(rayon::current_num_threads().clamp(1, left.len()));
        let judged: Vec<_> = few
            .par_iter()
            .map(|(index, variant)| (variant, open[*index].workload))
            .map(|(variant, workload)| judge(variant.clone(), workload, means))
            .collect::<Result<_, TuneError>>()?;
        for ((index, _), judged) in few.iter().zip(judged) {
            outcome.compiled += usize::from(judged.compiled);
            outcome.reused += usize::from(judged.reused);
            open[*index].take(judged.step, means)?;
        }
        // The groups before the next variant's are complete, and give their memory back.
        let next = rest.first().map_or(open.len(), |(index, _)| *index);
        for group in &mut open[*first..next] {
            group.close(means)?;
        }
        left = rest;
    }
    Ok(())
}

/// A group whose variants are being tried.
struct OpenGroup<'a> {
    found: SpecOutcome,
    clock: Clock<'a>,
    spare: Vec<Variant>,
    workload: Workload,
}

impl OpenGroup<'_> {
    fn take(&mut self, step: Step, means: Means<'_>) -> Result<(), TuneError> {
        let step = match step {
            Step::Proved(proved) => self.clock.time(*proved)?,
            step => Some(step),
        };
        self.found.add(step, means.observer);
        Ok(())
    }

    fn close(&mut self, means: Means<'_>) -> Result<(), TuneError> {
        for step in self.clock.finish()? {
            self.found.add(Some(step), means.observer);
        }
        self.found.rank(means)
    }
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
                self.kernels.push(*kernel);
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
