//! Resident blocks against figures that NVIDIA publishes for compute capability 8.0 and 9.0.

use pagesmith_spec::gpu::{Footprint, Limit};
use pagesmith_spec::{Arch, Gpu};

fn occupancy(arch: Arch, registers: u32, shared_bytes: u32, threads: u32) -> (u32, Limit) {
    let occupancy = arch.occupancy(Footprint {
        registers,
        shared_bytes,
        threads,
    });
    assert_eq!(
        occupancy.warps_per_sm,
        occupancy.ctas_per_sm * threads.div_ceil(32)
    );
    (occupancy.ctas_per_sm, occupancy.limited_by)
}

#[test]
fn an_a100_holds_what_the_occupancy_calculator_says() {
    for (registers, shared, threads, expected) in [
        // 32 registers or fewer fill all 64 warps.
        (32, 0, 256, (8, Limit::Registers)),
        (32, 0, 1024, (2, Limit::Registers)),
        (16, 0, 128, (16, Limit::Warps)),
        // 37 registers are allocated as 40: 12 warps a sub-core.
        (37, 0, 128, (12, Limit::Registers)),
        (40, 0, 128, (12, Limit::Registers)),
        (41, 0, 128, (10, Limit::Registers)),
        // A warp's registers lie in one sub-core: 48 such warps fit, not the 51 of the whole file.
        (40, 0, 96, (16, Limit::Registers)),
        (64, 0, 256, (4, Limit::Registers)),
        (128, 0, 128, (4, Limit::Registers)),
        (168, 0, 128, (3, Limit::Registers)),
        (255, 0, 128, (2, Limit::Registers)),
        // Small blocks: 32 of them at most.
        (16, 0, 32, (32, Limit::Blocks)),
        (16, 0, 1, (32, Limit::Blocks)),
        // 48 KB and the reserve of 1 KB: three of 164 KB.
        (32, 48 * 1024, 256, (3, Limit::SharedMemory)),
        (32, 163 * 1024, 256, (1, Limit::SharedMemory)),
        // Two blocks fit to the byte at 81 KB, and not one granule above.
        (32, 81 * 1024, 256, (2, Limit::SharedMemory)),
        (32, 81 * 1024 + 1, 256, (1, Limit::SharedMemory)),
    ] {
        assert_eq!(
            occupancy(Arch::SM_80, registers, shared, threads),
            expected,
            "{registers} registers, {shared} bytes, {threads} threads"
        );
    }
}

#[test]
fn an_h200_holds_what_its_228_kib_of_shared_memory_allow() {
    for (shared, expected) in [(163 * 1024, 1), (113 * 1024, 2), (227 * 1024, 1)] {
        assert_eq!(
            occupancy(Arch::SM_90, 32, shared, 256),
            (expected, Limit::SharedMemory)
        );
    }
}

#[test]
fn a_block_that_no_launch_accepts_has_no_occupancy() {
    for (registers, shared, threads) in [
        (32, 163 * 1024 + 1, 128),
        (32, 0, 1025),
        (32, 0, 0),
        (256, 0, 128),
        (65, 0, 1024),
        (u32::MAX, u32::MAX, u32::MAX),
    ] {
        assert_eq!(
            occupancy(Arch::SM_80, registers, shared, threads),
            (0, Limit::Launch),
            "{registers} registers, {shared} bytes, {threads} threads"
        );
    }
}

#[test]
fn more_of_any_resource_never_raises_the_occupancy() {
    let gpu = Gpu::by_name("a100-sxm4-80gb").unwrap();
    let base = Footprint {
        registers: 64,
        shared_bytes: 16 * 1024,
        threads: 128,
    };
    let at = |footprint| gpu.occupancy(footprint).ctas_per_sm;
    for step in 0..255 {
        assert!(
            at(Footprint {
                registers: step + 1,
                ..base
            }) <= at(Footprint {
                registers: step,
                ..base
            })
        );
        let shared = |step: u32| Footprint {
            shared_bytes: step * 640,
            ..base
        };
        assert!(at(shared(step + 1)) <= at(shared(step)));
        let threads = |step: u32| Footprint {
            threads: 4 * (step + 1),
            ..base
        };
        assert!(at(threads(step + 1)) <= at(threads(step)));
    }
}
