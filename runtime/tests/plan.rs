//! What every plan holds, over random ragged batches.

use pagesmith_runtime::plan::{Batch, CacheBlocks, Plan, PlanError, PlanTarget};
use pagesmith_spec::abi::{NO_SLOT, WorkItem};
use pagesmith_spec::{
    Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm, Tuning, Variant,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn variant(group: u32, head_tile: u32, warps: u32, tile_tokens: u32) -> Variant {
    let spec = KernelSpec {
        operation: Operation::Decode,
        head_dim: 128,
        group,
        block_size: 16,
        query: QueryDtype::Bf16,
        kv: KvDtype::Bf16,
        layout: KvLayout::DimContiguous,
        table: TableForm::Dense,
        lse: Lse::Omitted,
    };
    let tuning = Tuning {
        engine: Engine::Mma,
        warps,
        tile_tokens,
        stages: 2,
        head_tile,
        ctas_per_sm: 2,
    };
    Variant::new(spec, tuning).expect("a legal spec")
}

/// A batch needs a table as wide as its longest sequence; its ids do not matter to a plan.
fn plan(variant: &Variant, target: PlanTarget, kv_heads: u32, lengths: &[u32]) -> Plan {
    let row = lengths
        .iter()
        .max()
        .map_or(0, |&longest| longest.div_ceil(16)) as usize;
    let table = vec![0; row * lengths.len()];
    let cache = CacheBlocks {
        block_size: 16,
        count: 1,
    };
    let batch = Batch::dense(cache, lengths, &table, row).expect("a valid batch");
    Plan::decode(variant, target, kv_heads, &batch).expect("a plan")
}

/// Steps of a CTA: how often all of its warps take a tile.
fn steps(item: &WorkItem, variant: &Variant) -> u64 {
    let step = variant.tuning().warps * variant.tuning().tile_tokens;
    u64::from((item.kv_end - item.kv_begin).div_ceil(step))
}

/// When the last CTA ends if each starts, in order, where one ended first.
fn makespan(plan: &Plan, variant: &Variant, wave: u64) -> u64 {
    let mut ends = vec![0; wave as usize];
    for item in plan.work() {
        let free = ends.iter_mut().min().expect("a wave has a CTA");
        *free += steps(item, variant);
    }
    ends.into_iter().max().unwrap_or(0)
}

prop_compose! {
    fn batches()(
        lengths in prop::collection::vec(
            prop_oneof![
                1 => Just(0u32),
                4 => 1u32..200,
                4 => 1u32..5_000,
                1 => 1u32..60_000,
            ],
            0..40,
        ),
        kv_heads in 1u32..9,
        group in prop_oneof![Just(1u32), Just(3), Just(4), Just(7), Just(12), Just(32)],
        head_tile in prop_oneof![Just(1u32), Just(2), Just(8), Just(16)],
        warps in prop_oneof![Just(2u32), Just(4), Just(8)],
        tile_tokens in prop_oneof![Just(16u32), Just(32), Just(64)],
        sms in 1u32..140,
        ctas_per_sm in 1u32..5,
    ) -> (Vec<u32>, u32, Variant, PlanTarget) {
        let variant = variant(group, head_tile, warps, tile_tokens);
        (lengths, kv_heads, variant, PlanTarget { sms, ctas_per_sm })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn items_of_each_head_tile_cover_its_sequence_exactly_once(
        (lengths, kv_heads, variant, target) in batches()
    ) {
        let plan = plan(&variant, target, kv_heads, &lengths);
        let mut ranges: BTreeMap<(u32, u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        for item in plan.work() {
            prop_assert_eq!((item.q_token, item.reserved), (item.seq, 0));
            prop_assert!(item.kv_begin % variant.tuning().quantum() == 0);
            prop_assert!(item.kv_begin < item.kv_end || (item.kv_begin, item.kv_end) == (0, 0));
            prop_assert!(item.head_begin % variant.tuning().head_tile == 0);
            let key = (item.seq, item.kv_head, item.head_begin);
            ranges.entry(key).or_default().push((item.kv_begin, item.kv_end));
        }
        let tiles = variant.spec().group.div_ceil(variant.tuning().head_tile);
        prop_assert_eq!(ranges.len() as u32, lengths.len() as u32 * kv_heads * tiles);
        for ((seq, kv_head, head_begin), mut pieces) in ranges {
            prop_assert!(kv_head < kv_heads && head_begin < variant.spec().group);
            pieces.sort_unstable();
            let mut end = 0;
            for (begin, next) in pieces {
                prop_assert_eq!(begin, end, "a gap or an overlap in sequence {}", seq);
                end = next;
            }
            prop_assert_eq!(end, lengths[seq as usize]);
        }
    }

    #[test]
    fn every_slot_is_written_once_and_merged_once(
        (lengths, kv_heads, variant, target) in batches()
    ) {
        let plan = plan(&variant, target, kv_heads, &lengths);
        let group = variant.spec().group;
        // Who writes each slot.
        let mut writers = vec![None; plan.slots() as usize];
        let mut direct = 0;
        for item in plan.work() {
            match item.slot {
                NO_SLOT => direct += 1,
                slot => {
                    let writer = &mut writers[slot as usize];
                    prop_assert!(writer.is_none(), "slot {} is written twice", slot);
                    *writer = Some((item.q_token, item.kv_head * group + item.head_begin));
                }
            }
        }
        prop_assert_eq!(direct + plan.slots() as usize, plan.work().len());
        // Who reads each slot: the same row and head.
        let mut merged = 0;
        for merge in plan.merge() {
            prop_assert!(merge.slot_count > 1, "nothing to merge");
            for slot in merge.slot_begin..merge.slot_begin + merge.slot_count {
                prop_assert_eq!(writers[slot as usize], Some((merge.q_token, merge.q_head)));
            }
            merged += merge.slot_count;
        }
        prop_assert_eq!(merged, plan.slots());
    }

    #[test]
    fn no_schedule_is_much_longer_than_the_work_divided_by_the_gpu(
        (lengths, kv_heads, variant, target) in batches()
    ) {
        let plan = plan(&variant, target, kv_heads, &lengths);
        let total: u64 = plan.work().iter().map(|item| steps(item, &variant)).sum();
        let longest = plan.work().iter().map(|item| steps(item, &variant)).max().unwrap_or(0);
        // No schedule beats either; cutting finer than one step is not possible.
        let bound = total.div_ceil(target.wave()).max(u64::from(total > 0));
        let found = makespan(&plan, &variant, target.wave());
        prop_assert!(
            found <= 2 * bound + 2,
            "{found} steps, at least {bound} are needed, {} items, longest {longest}",
            plan.work().len()
        );
    }

    #[test]
    fn longest_items_come_first((lengths, kv_heads, variant, target) in batches()) {
        let plan = plan(&variant, target, kv_heads, &lengths);
        let tokens = |item: &WorkItem| item.kv_end - item.kv_begin;
        prop_assert!(plan.work().windows(2).all(|pair| tokens(&pair[0]) >= tokens(&pair[1])));
    }

    #[test]
    fn a_rebuilt_plan_is_the_plan_built_afresh(
        (first, _, _, _) in batches(),
        (lengths, kv_heads, variant, target) in batches(),
    ) {
        let mut reused = plan(&variant, target, kv_heads, &first);
        let fresh = plan(&variant, target, kv_heads, &lengths);
        let row = lengths.iter().max().map_or(0, |&longest| longest.div_ceil(16)) as usize;
        let table = vec![0; row * lengths.len()];
        let cache = CacheBlocks { block_size: 16, count: 1 };
        let batch = Batch::dense(cache, &lengths, &table, row).expect("valid");
        reused.rebuild(&variant, target, kv_heads, &batch).expect("a plan");
        prop_assert_eq!(reused.work(), fresh.work());
        prop_assert_eq!(reused.merge(), fresh.merge());
        prop_assert_eq!(reused.slots(), fresh.slots());
    }
}

#[test]
fn llama_3_8b_at_four_sequences_of_4096_fills_one_wave_within_two_percent_of_traffic() {
    let variant = variant(4, 8, 4, 16);
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let plan = plan(&variant, target, 8, &[4096; 4]);
    assert!(
        (190..=216).contains(&plan.work().len()),
        "{}",
        plan.work().len()
    );
    // Four live heads a slot, written once and read once.
    let partials = u64::from(plan.slots()) * 4 * (128 + 1) * 4 * 2;
    let kv = 4 * 4096 * 8 * variant.spec().kv_bytes_per_token();
    assert!(partials * 50 <= kv, "{partials} of {kv} bytes");
}

#[test]
fn an_empty_batch_plans_nothing_and_empty_sequences_plan_one_direct_item_a_head_tile() {
    let variant = variant(4, 2, 4, 16);
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let nothing = plan(&variant, target, 8, &[]);
    assert!(nothing.work().is_empty() && nothing.merge().is_empty());
    let empty = plan(&variant, target, 8, &[0, 0, 0]);
    assert_eq!(empty.work().len(), 3 * 8 * 2);
    assert!(
        empty
            .work()
            .iter()
            .all(|item| item.slot == NO_SLOT && item.kv_end == 0)
    );
    assert_eq!((empty.merge().len(), empty.slots()), (0, 0));
}

#[test]
fn a_head_tile_narrower_than_the_group_gives_several_items_with_the_right_heads() {
    let variant = variant(7, 2, 4, 16);
    let target = PlanTarget {
        sms: 1,
        ctas_per_sm: 1,
    };
    let plan = plan(&variant, target, 2, &[16]);
    let heads: Vec<(u32, u32)> = plan
        .work()
        .iter()
        .map(|item| (item.kv_head, item.head_begin))
        .collect();
    assert_eq!(
        heads,
        [
            (0, 0),
            (0, 2),
            (0, 4),
            (0, 6),
            (1, 0),
            (1, 2),
            (1, 4),
            (1, 6)
        ]
    );
}

#[test]
fn a_batch_of_another_block_size_or_table_form_is_refused_by_name() {
    let variant = variant(4, 8, 4, 16);
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let cache = |block_size| CacheBlocks {
        block_size,
        count: 4,
    };
    let other = Batch::dense(cache(32), &[1], &[0], 1).expect("valid");
    assert!(matches!(
        Plan::decode(&variant, target, 8, &other),
        Err(PlanError::BlockSize {
            batch: 32,
            kernel: 16
        })
    ));
    let csr = Batch::csr(cache(16), &[0, 1], &[0], &[1]).expect("valid");
    assert!(matches!(
        Plan::decode(&variant, target, 8, &csr),
        Err(PlanError::TableForm { .. })
    ));
}

#[test]
fn targets_and_heads_out_of_range_are_refused_by_name() {
    let variant = variant(4, 8, 4, 16);
    let batch_lengths = [1; 3];
    let cache = CacheBlocks {
        block_size: 16,
        count: 1,
    };
    let batch = Batch::dense(cache, &batch_lengths, &[0, 0, 0], 1).expect("valid");
    for (sms, ctas_per_sm, kv_heads, name) in [
        (0, 2, 8, "sms"),
        (108, 0, 8, "ctas_per_sm"),
        (108, 2, 0, "kv_heads"),
        (108, 2, u32::MAX, "kv_heads"),
        (u32::MAX, u32::MAX, 8, "sms"),
    ] {
        let target = PlanTarget { sms, ctas_per_sm };
        let error = Plan::decode(&variant, target, kv_heads, &batch).unwrap_err();
        assert!(
            matches!(error, PlanError::Field { field, .. } if field == name),
            "{error}"
        );
    }
}

#[test]
fn more_items_than_a_grid_has_ctas_are_refused() {
    let variant = variant(1024, 1, 4, 16);
    let lengths = vec![1; 100];
    let cache = CacheBlocks {
        block_size: 16,
        count: 1,
    };
    let table = vec![0; 100];
    let batch = Batch::dense(cache, &lengths, &table, 1).expect("valid");
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let error = Plan::decode(&variant, target, 1 << 16, &batch).unwrap_err();
    assert!(matches!(error, PlanError::TooLarge { .. }), "{error}");
}

#[test]
fn csr_and_dense_tables_of_the_same_lengths_give_the_same_plan() {
    let dense = variant(4, 8, 4, 16);
    let mut spec = dense.spec().clone();
    spec.table = TableForm::Csr;
    let csr = Variant::new(spec, *dense.tuning()).expect("legal");
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let lengths = [4000, 0, 17];
    let indptr = [0, 250, 250, 252];
    let indices = [0; 252];
    let cache = CacheBlocks {
        block_size: 16,
        count: 1,
    };
    let batch = Batch::csr(cache, &indptr, &indices, &[16, 9, 1]).expect("valid");
    let from_csr = Plan::decode(&csr, target, 8, &batch).expect("a plan");
    assert_eq!(from_csr.work(), plan(&dense, target, 8, &lengths).work());
}
