//! Which of the legal tunings are tried.

use pagesmith_spec::{Engine, KernelSpec, Tuning, TuningSpace};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// How much of a tuning space is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// For each engine, warps and tile the one tuning with the most loads in flight: about a dozen.
    #[default]
    Quick,
    /// Every legal tuning.
    Balanced,
}

/// Bytes of loads in flight on one multiprocessor beyond which more bring nothing. Little's law asks for
/// 32 KB at the loaded latency of an A100's memory; twice that covers the gaps between two tiles.
const ENOUGH_IN_FLIGHT: u32 = 64 * 1024;

impl Effort {
    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Balanced => "balanced",
        }
    }

    /// The rule in words, for reports.
    pub const fn rule(self) -> &'static str {
        match self {
            Effort::Quick => {
                "for each engine, warps and tile the tuning with the most loads in flight, up to 64 KiB an SM"
            }
            Effort::Balanced => "every legal tuning",
        }
    }

    /// The tunings of `space` that are tried, the default first.
    ///
    /// The default always competes, so that the worst outcome of tuning is the untuned kernel.
    pub fn select(self, spec: &KernelSpec, space: &TuningSpace) -> Vec<Tuning> {
        let mut chosen: Vec<Tuning> = untuned(spec, space).into_iter().collect();
        match self {
            Effort::Balanced => chosen.extend(space.legal()),
            Effort::Quick => {
                let mut best: BTreeMap<(Engine, u32, u32), Tuning> = BTreeMap::new();
                for tuning in space.legal() {
                    let key = family(tuning);
                    match best.get(&key) {
                        Some(held) if preference(held, spec) >= preference(tuning, spec) => {}
                        _ => {
                            best.insert(key, *tuning);
                        }
                    }
                }
                chosen.extend(best.into_values());
            }
        }
        let mut seen = Vec::new();
        chosen.retain(|tuning| {
            let new = !seen.contains(tuning);
            seen.push(*tuning);
            new
        });
        chosen
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tuning of someone who does not tune: CUDA cores, four warps. It works for every spec.
fn untuned(spec: &KernelSpec, space: &TuningSpace) -> Option<Tuning> {
    space
        .legal()
        .iter()
        .filter(|tuning| tuning.engine == Engine::Simt && tuning.warps == 4)
        .max_by_key(|tuning| preference(tuning, spec))
        .copied()
}

/// The tunings that quick effort regards as alike. A `simt` tile lives in registers, which decide its size
/// alone, so that engine is tried once for each number of warps.
fn family(tuning: &Tuning) -> (Engine, u32, u32) {
    match tuning.engine {
        Engine::Simt => (Engine::Simt, tuning.warps, 0),
        Engine::Mma => (Engine::Mma, tuning.warps, tuning.tile_tokens),
    }
}

/// Larger is better: no spill in sight; KV read for as many heads at once as there are; loads in flight;
/// resident warps; then the least shared memory.
fn preference(tuning: &Tuning, spec: &KernelSpec) -> (bool, u32, u32, u32, Reverse<u32>) {
    let waiting_stages = match tuning.engine {
        Engine::Simt => 1,
        Engine::Mma => tuning.stages - 1,
    };
    let in_flight = tuning.ctas_per_sm * tuning.warps * waiting_stages * tile_bytes(tuning, spec);
    (
        tuning.engine == Engine::Mma || fits_registers(tuning, spec),
        tuning.head_tile.min(spec.group.next_multiple_of(8)),
        in_flight.min(ENOUGH_IN_FLIGHT),
        tuning.warps * tuning.ctas_per_sm,
        Reverse(tuning.ctas_per_sm * tuning.shared_bytes(spec)),
    )
}

/// K and V of the tokens that a warp takes at a time.
fn tile_bytes(tuning: &Tuning, spec: &KernelSpec) -> u32 {
    tuning.tile_tokens * 2 * spec.head_dim * spec.kv.bytes()
}

/// Whether a `simt` tile and its heads' queries and sums fit the registers that the promised CTAs leave.
fn fits_registers(tuning: &Tuning, spec: &KernelSpec) -> bool {
    let tile = tile_bytes(tuning, spec) / (32 * 4);
    // A lane takes 16 bytes of a row: queries and sums of as many elements, for each head.
    let heads = tuning.head_tile * 2 * 16 / spec.kv.bytes();
    let elsewhere = 40;
    let left = 65_536 / (tuning.threads() * tuning.ctas_per_sm);
    tile + heads + elsewhere <= left.min(255)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagesmith_spec::{Arch, KvDtype, ModelShape, Settings};

    fn spaces() -> Vec<(KernelSpec, TuningSpace)> {
        [
            "llama-3-8b",
            "llama-3-405b",
            "qwen2-7b",
            "smollm2-135m",
            "phi-3-mini",
        ]
        .into_iter()
        .flat_map(|name| {
            let shape = ModelShape::by_name(name).unwrap();
            Settings::default().kernels(&shape).unwrap()
        })
        .map(|spec| {
            let space = TuningSpace::enumerate(&spec, Arch::SM_80);
            (spec, space)
        })
        .collect()
    }

    #[test]
    fn quick_effort_tries_about_a_dozen_legal_tunings_of_every_spec() {
        for (spec, space) in spaces() {
            let chosen = Effort::Quick.select(&spec, &space);
            assert!((4..=13).contains(&chosen.len()), "{spec}: {}", chosen.len());
            assert!(chosen.iter().all(|tuning| space.legal().contains(tuning)));
        }
    }

    #[test]
    fn the_untuned_kernel_always_competes_and_is_tried_first() {
        for (spec, space) in spaces() {
            for effort in [Effort::Quick, Effort::Balanced] {
                let chosen = effort.select(&spec, &space);
                assert_eq!(Some(chosen[0]), untuned(&spec, &space), "{spec}");
                assert_eq!(chosen[0].engine, Engine::Simt);
            }
        }
    }

    #[test]
    fn nothing_is_tried_twice_and_balanced_effort_leaves_nothing_out() {
        for (spec, space) in spaces() {
            let mut chosen = Effort::Balanced.select(&spec, &space);
            chosen.sort();
            let mut legal = space.legal().to_vec();
            legal.sort();
            assert_eq!(chosen, legal, "{spec}");
        }
    }

    #[test]
    fn a_smaller_cache_dtype_keeps_as_many_bytes_in_flight() {
        for (spec, space) in spaces() {
            if spec.kv != KvDtype::Fp8E4M3 {
                continue;
            }
            let best = Effort::Quick
                .select(&spec, &space)
                .iter()
                .map(|tuning| preference(tuning, &spec).2)
                .max();
            assert_eq!(best, Some(ENOUGH_IN_FLIGHT), "{spec}");
        }
    }
}
