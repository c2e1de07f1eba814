//! The interpreter.
//!
//! ```text
//! launch ── blocks in parallel ── block ── warps in turn ── warp: one instruction at a time over 32 lanes
//!                                   │                        ├─ alu, alu64, half, convert, compare, matrix
//!                                   │                        ├─ access: judge, then global, shared or private memory
//!                                   │                        └─ async_copy, atomic, collective
//!                                   └─ context: shared and local memory, counters, findings
//! ```

#![allow(
    clippy::needless_range_loop,
    reason = "a lane indexes several planes, and counted loops become vector code"
)]

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
mod global;
mod half;
#[cfg(target_arch = "x86_64")]
mod half_avx2;
mod judge;
mod lanes;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod mma_avx2;
mod mma_exact;
mod numeric;
mod pattern;
mod private;
mod rare;
mod run;
mod shared;
mod start;
mod sync;
mod track;
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
