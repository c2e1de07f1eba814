//! The interpreter.
//!
//! ```text
//! launch ── blocks in parallel ── block ── warps in turn ── warp: one instruction at a time over 32 lanes
//!                                   │                        ├─ alu, alu64, half, convert, compare, matrix
//!                                   └─ context: shared and local memory, counters, findings
//! ```

mod access;
mod alu;
mod alu64;
mod async_copy;
mod atomic;
mod block;
mod collective;
mod compare;
mod context;
mod convert;
mod half;
mod lanes;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod mma_avx2;
mod numeric;
mod pattern;
mod run;
mod start;
mod warp;

pub(crate) use start::launch;

/// Whether this CPU has what the fast versions are compiled for.
fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("f16c")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}
