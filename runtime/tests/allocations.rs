//! A server plans at every step and decodes at every layer: neither may touch the host's heap once
//! the buffers have grown.

mod common;

use common::{a100, image, spec, tuning};
use pagesmith_runtime::attention::{
    AttentionBackend, DecodeArgs, DecodeBatch, DevicePlan, Kernels, KvCache, Rows, Scales,
    TablePlace,
};
use pagesmith_runtime::device::{Buffer, Device, DeviceError, LaunchConfig, LoadError, Region};
use pagesmith_runtime::plan::{Batch, CacheBlocks, Plan, PlanTarget};
use pagesmith_spec::abi::DevicePtr;
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{Gpu, Image, Variant};
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

/// A device that does nothing: what is left is the host's part. Counts the CTAs it was asked for.
struct Idle {
    gpu: Gpu,
    ctas: AtomicU64,
}

/// Memory that is nowhere.
struct Nowhere(u64);

impl Buffer for Nowhere {
    fn region(&self) -> Region<'_> {
        // SAFETY: nothing that this device does touches memory.
        unsafe { Region::from_raw(DevicePtr(1 << 40), self.0) }
    }
}

impl Device for Idle {
    type Buffer = Nowhere;
    type Stream = ();
    type Module = ();

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn stream(&self) {}

    fn alloc(&self, _: &str, bytes: u64) -> Result<Nowhere, DeviceError> {
        Ok(Nowhere(bytes))
    }

    fn upload(&self, to: Region<'_>, bytes: &[u8], (): &()) -> Result<(), DeviceError> {
        to.prefix(bytes.len())?;
        Ok(())
    }

    fn download(&self, _: Region<'_>, _: &mut [u8], (): &()) -> Result<(), DeviceError> {
        Ok(())
    }

    fn fill(&self, _: Region<'_>, _: u8, (): &()) -> Result<(), DeviceError> {
        Ok(())
    }

    fn load(&self, _: &Image) -> Result<(), LoadError> {
        Ok(())
    }

    unsafe fn launch(
        &self,
        (): &(),
        _: &str,
        config: LaunchConfig,
        _: &[u8],
        (): &(),
    ) -> Result<(), DeviceError> {
        self.ctas
            .fetch_add(u64::from(config.ctas), Ordering::Relaxed);
        Ok(())
    }

    fn synchronize(&self, (): &()) -> Result<(), DeviceError> {
        Ok(())
    }
}

const SEQUENCES: usize = 64;
const BLOCKS: u32 = 4096;
const CACHE: CacheBlocks = CacheBlocks {
    block_size: 16,
    count: BLOCKS,
};

/// Allocations of 64 calls after 64 others: the count of pieces changes a little from step to step,
/// so the first may still grow a buffer.
fn allocations(mut step: impl FnMut()) -> u64 {
    for _ in 0..64 {
        step();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..64 {
        step();
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn planning_and_decoding_in_the_steady_state_do_not_allocate() {
    let variant = Variant::new(spec(), tuning()).expect("legal");
    let table = vec![0; SEQUENCES * 512];
    let mut lengths: Vec<u32> = (0..SEQUENCES as u32)
        .map(|index| 100 + index * 97)
        .collect();

    let mut plan = Plan::default();
    let target = PlanTarget::of(&a100(), variant.tuning());
    let planning = allocations(|| {
        lengths.iter_mut().for_each(|length| *length += 1);
        let batch = Batch::dense(CACHE, &lengths, &table, 512).expect("valid");
        plan.rebuild(&variant, target, 8, &batch).expect("a plan");
    });
    assert_eq!(planning, 0, "allocations of Plan::rebuild");
    assert!(!plan.merge().is_empty(), "the test must cover merges");

    let idle = Idle {
        gpu: a100(),
        ctas: AtomicU64::new(0),
    };
    let mut kernels = Kernels::new(idle);
    kernels.load(&variant, &image(&variant)).expect("loads");
    let mut plan = DevicePlan::default();
    let memory = Nowhere(u64::MAX);
    let decoding = allocations(|| {
        lengths.iter_mut().for_each(|length| *length += 1);
        let batch = Batch::dense(CACHE, &lengths, &table, 512).expect("valid");
        let request = DecodeBatch {
            spec: variant.spec(),
            kv_heads: 8,
            batch: &batch,
            table: TablePlace::Planned,
        };
        kernels
            .plan_decode(&mut plan, request, &())
            .expect("a plan");
        let spec = variant.spec();
        let rows = Rows::contiguous(memory.region(), spec.query, [SEQUENCES as u32, 32, 128]);
        let cache = KvCache::new(
            memory.region(),
            spec.kv,
            [BLOCKS, 16, 8, 128],
            KvStrides::nhd(16, 8, 128),
        );
        let (rows, cache) = (rows.expect("fits"), cache.expect("fits"));
        let args = DecodeArgs {
            query: rows,
            key: cache,
            value: cache,
            out: rows,
            lse: None,
            table: None,
            scales: Scales::for_head_dim(128),
        };
        kernels.decode(&mut plan, args, &()).expect("a decode");
    });
    assert_eq!(decoding, 0, "allocations of plan_decode and decode");
    let ctas = kernels.device().ctas.load(Ordering::Relaxed);
    assert!(ctas > 128 * 200, "the launches must happen: {ctas} CTAs");
}
