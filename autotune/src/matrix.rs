//! A matrix of everything the templates can do, as groups to tune: images to carry to another machine.

use crate::pipeline::Group;
use pagesmith_prove::Seed;
use pagesmith_prove::matrix::{
    Cell, Strength, axes, covering_array, default_tuning, varied_tuning,
};
use pagesmith_spec::{Arch, SpecError, Variant, Workload};

/// Chooses rows and tunings: fixed, so that a second run of the same version reuses everything.
const SEED: Seed = Seed(1);

/// Enough tokens that plans split; small, since a matrix is about correctness.
const WORKLOAD: Workload = Workload {
    batch: 2,
    tokens: 512,
    kv_heads: 2,
};

/// One variant for each row of a covering array over head dim, group, block size, dtypes, engine, table
/// form and log-sum-exp.
///
/// # Errors
/// When a row of the array has no kernel, which its legality rules out.
pub fn matrix_groups(strength: Strength, arch: Arch) -> Result<Vec<Group>, SpecError> {
    let sizes = axes().map(|axis| axis.values);
    let cell = |row: &[usize]| {
        let Cell { spec, engine } = Cell::from_indices(row)?;
        let part = row.iter().fold(0, |part, &index| part * 64 + index as u64);
        let tuning = varied_tuning(&spec, engine, arch, SEED.part(part))?;
        // A varied tuning may spill; the row's pairs would be lost with it.
        let spare = default_tuning(&spec, engine, arch)?;
        spec.check().is_ok().then_some((spec, tuning, spare))
    };
    let array = covering_array(&sizes, strength, &|row| cell(row).is_some(), SEED);
    array
        .rows
        .iter()
        .filter_map(|row| cell(row))
        .map(|(spec, tuning, spare)| {
            Ok(Group {
                variants: vec![Variant::new(spec.clone(), tuning)?],
                spare: vec![Variant::new(spec.clone(), spare)?],
                spec,
                workload: WORKLOAD,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_of_head_dim_and_engine_is_carried() {
        let groups = matrix_groups(Strength::Pairwise, Arch::SM_90).unwrap();
        let pairs: BTreeSet<_> = groups
            .iter()
            .flat_map(|group| &group.variants)
            .map(|variant| (variant.spec().head_dim, variant.tuning().engine))
            .collect();
        assert_eq!(pairs.len(), 7 * 2);
    }

    #[test]
    fn the_same_version_gives_the_same_variants() {
        let ids = || -> Vec<String> {
            let groups = matrix_groups(Strength::Pairwise, Arch::SM_80).unwrap();
            groups
                .iter()
                .flat_map(|group| &group.variants)
                .map(Variant::id)
                .collect()
        };
        assert_eq!(ids(), ids());
    }
}
