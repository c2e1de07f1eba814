//! The cases that every variant has to pass.

use super::{CaseSpec, Strides, TailEntries, Values};
use crate::random::{Random, Seed};
use pagesmith_spec::Variant;

/// How much a proof tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Five cases: edges of blocks and tiles unsplit, ragged and split, one long sequence split, mixed
    /// strides, and one sequence that takes every warp several times round its ring.
    #[default]
    Standard,
    /// The five with every kind of values.
    Thorough,
}

/// The cases for a variant: lengths at the edges of its blocks and tiles, plans that split and plans that
/// do not, every arrangement of strides, and values that move the running maximum.
pub fn standard(variant: &Variant, effort: Effort, seed: Seed) -> Vec<CaseSpec> {
    let mut random = Random::new(seed);
    let (spec, tuning) = (variant.spec(), variant.tuning());
    let (block, tile) = (spec.block_size, tuning.tile_tokens);
    let cta = tile * tuning.warps;
    // At least `heads` query heads, so that a row has enough elements for its rounding errors to average out.
    let kv_heads_for = |heads: u32| heads.div_ceil(spec.group);
    let kv_heads = kv_heads_for(8);
    let base = |name, lengths| CaseSpec {
        kv_heads,
        ..CaseSpec::of_lengths(name, lengths)
    };

    let mut edges = vec![
        0,
        1,
        block - 1,
        block,
        block + 1,
        tile - 1,
        tile,
        tile + 1,
        cta + 1,
        cta + tile + 1 + random.below(tile - 1),
    ];
    edges.sort_unstable();
    edges.dedup();
    random.shuffle(&mut edges);
    let edges = CaseSpec {
        tail: TailEntries::Exact,
        ..base("edges", edges)
    };
    let ragged = CaseSpec {
        strides: Strides::Padded,
        values: Values::Rising,
        sms: 108,
        ..base(
            "ragged",
            vec![3 * tile + 7, 0, 180 + random.below(150), 2 * block + 1, 2],
        )
    };
    let long = CaseSpec {
        strides: Strides::Hnd,
        values: Values::Low,
        sms: 108,
        ..base("long", vec![500 + random.below(300)])
    };
    let mixed = CaseSpec {
        strides: Strides::Mixed,
        values: Values::Peaked,
        sms: 3,
        kv_heads: kv_heads + 1,
        ..base(
            "mixed",
            vec![1 + random.below(100), 100 + random.below(100)],
        )
    };
    // Every warp goes round its ring and comes to a partial tile in the loop, not in its prologue.
    let deep = CaseSpec {
        kv_heads: kv_heads_for(16),
        ..base(
            "deep",
            vec![cta * (tuning.stages + 1) + 1 + random.below(tile - 1)],
        )
    };
    let cases = [edges, ragged, long, mixed, deep];
    match effort {
        Effort::Standard => cases.to_vec(),
        Effort::Thorough => cases
            .iter()
            .flat_map(|case| {
                Values::ALL.into_iter().map(|values| CaseSpec {
                    name: format!("{}-{values:?}", case.name).to_lowercase(),
                    values,
                    ..case.clone()
                })
            })
            .collect(),
    }
}
