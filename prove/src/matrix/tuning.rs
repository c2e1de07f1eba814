//! A legal tuning for a cell.

use crate::random::{Random, Seed};
use pagesmith_spec::{Arch, Engine, KernelSpec, Tuning, TuningSpace};

/// A middling tuning: the widest useful head tile, then 4 warps, 16 tokens, 3 stages, 1 CTA, or the nearest
/// there is. `None` when no tuning of that engine is legal.
pub fn default_tuning(spec: &KernelSpec, engine: Engine, arch: Arch) -> Option<Tuning> {
    let distance = |tuning: &Tuning| {
        let rows = spec.group.div_ceil(tuning.head_tile);
        [
            rows,
            tuning.head_tile,
            tuning.warps.abs_diff(4),
            tuning.tile_tokens.abs_diff(16),
            tuning.stages.abs_diff(3),
            tuning.ctas_per_sm.abs_diff(1),
        ]
    };
    legal(spec, engine, arch).into_iter().min_by_key(distance)
}

/// Elements of a warp's unrolled step, beyond which the compiler takes seconds for one variant.
const UNROLLED: u32 = 64 * 128;

/// Any legal tuning that compiles quickly, chosen by the seed: over many cells all values of all fields
/// occur. `None` when no tuning of that engine is legal.
pub fn varied_tuning(spec: &KernelSpec, engine: Engine, arch: Arch, seed: Seed) -> Option<Tuning> {
    let mut legal = legal(spec, engine, arch);
    let unrolled = |tuning: &Tuning| match tuning.engine {
        Engine::Simt => tuning.tile_tokens * tuning.head_tile * spec.head_dim / 2,
        Engine::Mma => tuning.tile_tokens * tuning.head_tile / 8 * spec.head_dim / 2,
    };
    let least = legal.iter().map(unrolled).min().unwrap_or(0);
    legal.retain(|tuning| unrolled(tuning) <= least.max(UNROLLED));
    let pick = Random::new(seed).below(legal.len() as u32) as usize;
    legal.get(pick).copied()
}

fn legal(spec: &KernelSpec, engine: Engine, arch: Arch) -> Vec<Tuning> {
    TuningSpace::enumerate(spec, arch)
        .legal()
        .iter()
        .filter(|tuning| tuning.engine == engine)
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Cell, Strength, axes, covering_array};
    use std::collections::HashSet;

    #[test]
    fn every_cell_of_the_matrix_has_a_tuning_and_together_they_take_every_value() {
        let sizes: Vec<usize> = axes().iter().map(|axis| axis.values).collect();
        let array = covering_array(&sizes, Strength::ThreeWise, &|_| true, Seed(1));
        let mut seen = HashSet::new();
        for (row, index) in array.rows.iter().zip(0..) {
            let Cell { spec, engine } = Cell::from_indices(row).unwrap();
            let usual = default_tuning(&spec, engine, Arch::SM_80).unwrap();
            assert_eq!(usual.check(&spec, Arch::SM_80), Ok(()), "{spec}");
            let tuning = varied_tuning(&spec, engine, Arch::SM_80, Seed(1).part(index)).unwrap();
            seen.insert(("warps", engine, tuning.warps));
            seen.insert(("tile", engine, tuning.tile_tokens));
            seen.insert(("stages", engine, tuning.stages));
            seen.insert(("heads", engine, tuning.head_tile));
        }
        let values = |name, engine| seen.iter().filter(|s| (s.0, s.1) == (name, engine)).count();
        for engine in Engine::ALL {
            assert_eq!(values("warps", engine), 3);
            assert_eq!(values("tile", engine), 3);
        }
        assert_eq!(values("stages", Engine::Mma), 3);
        assert_eq!(values("heads", Engine::Mma), 4);
        assert_eq!(values("heads", Engine::Simt), 4);
    }
}
