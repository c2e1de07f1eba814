//! A server plans at every step: that must not touch the heap once the buffers have grown.

use pagesmith_runtime::plan::{Batch, CacheBlocks, Plan, PlanTarget};
use pagesmith_spec::{
    Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm, Tuning, Variant,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what the program allocates. This file has one test, so nothing else runs meanwhile.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is this one's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn rebuilding_a_plan_in_the_steady_state_does_not_allocate() {
    let spec = KernelSpec {
        operation: Operation::Decode,
        head_dim: 128,
        group: 4,
        block_size: 16,
        query: QueryDtype::Bf16,
        kv: KvDtype::Bf16,
        layout: KvLayout::DimContiguous,
        table: TableForm::Dense,
        lse: Lse::Omitted,
    };
    let tuning = Tuning {
        engine: Engine::Mma,
        warps: 4,
        tile_tokens: 16,
        stages: 3,
        head_tile: 8,
        ctas_per_sm: 2,
    };
    let variant = Variant::new(spec, tuning).expect("legal");
    let target = PlanTarget {
        sms: 108,
        ctas_per_sm: 2,
    };
    let cache = CacheBlocks {
        block_size: 16,
        count: 1,
    };
    let table = vec![0; 64 * 512];
    let mut lengths: Vec<u32> = (0..64).map(|sequence| 100 + sequence * 97).collect();
    let mut plan = Plan::default();
    let mut step = |plan: &mut Plan| {
        for length in &mut lengths {
            *length += 1;
        }
        let batch = Batch::dense(cache, &lengths, &table, 512).expect("valid");
        plan.rebuild(&variant, target, 8, &batch).expect("a plan");
    };

    // The count of pieces changes a little from step to step: the first steps may still grow.
    for _ in 0..64 {
        step(&mut plan);
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..64 {
        step(&mut plan);
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    assert!(!plan.merge().is_empty(), "the test must cover merges");
}
