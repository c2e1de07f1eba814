//! Runs compiled PTX on the CPU, checks it like a sanitizer and counts it like a profiler. It knows nothing of what a
//! kernel computes.
//!
//! ```text
//! PTX text ── parse ── lower ── Program ─┐
//!             tokens   registers, planes │
//!             tree     data flow         ├─ launch ── exec ── Report
//! buffers ───────────────────── Memory ──┘            warps   ├─ count: instructions, sectors, wavefronts
//!             allocations, red zones,                 blocks  └─ check: findings with PTX and source line
//!             one written-mark a byte
//! ```
//!
//! - [`Program::parse`] takes the unmodified output of NVRTC and refuses, with its line, whatever could not be run.
//! - [`Memory`] is the emulated global memory; addresses are never reused, so stale pointers are recognised.
//! - [`launch`] runs warps of 32 lanes, blocks in parallel. Faults of a kernel are [`Finding`]s and do not stop the run:
//!   stray loads give 0, stray stores are dropped. Results, counters and findings are the same for every number of
//!   threads and on every CPU.
//!
//! What is looked for: accesses out of bounds, after free and misaligned; reads of bytes and registers that nothing
//! wrote; races on shared memory, with asynchronous copies as writes that last from issue to wait; barriers that a part
//! of a warp or block never reaches; endless loops. Not looked for: races between blocks on global memory.
//!
//! ```
//! use pagesmith_emulator::{FindingKind, Launch, Memory, Options, Program, launch};
//!
//! // Thread i doubles element i; the block is one thread too large for the buffer.
//! let program = Program::parse("
//! .version 8.0
//! .target sm_80
//! .address_size 64
//! .visible .entry double_all(.param .u64 data)
//! {
//!     .reg .b32 %r<4>; .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [data];
//!     mov.u32 %r1, %tid.x;
//!     mad.wide.u32 %rd2, %r1, 4, %rd1;
//!     ld.global.u32 %r2, [%rd2];
//!     shl.b32 %r3, %r2, 1;
//!     st.global.u32 [%rd2], %r3;
//!     ret;
//! }")?;
//! let memory = Memory::new();
//! let data = memory.alloc("data", 31 * 4)?;
//! memory.write(data, &[1; 31 * 4])?;
//!
//! let work = Launch {
//!     entry: "double_all",
//!     grid: [1, 1, 1],
//!     block: [32, 1, 1],
//!     shared_bytes: 0,
//!     params: &data.0.to_le_bytes(),
//! };
//! let report = launch(&program, &memory, &work, &Options::default())?;
//!
//! let mut first = [0; 4];
//! memory.read(data, &mut first)?;
//! assert_eq!(first, [2, 2, 2, 2]);
//! assert_eq!(report.counts.allocation("data").loads.sectors, 4);
//! let stray = &report.findings[0];
//! assert_eq!((stray.kind, stray.lane, stray.ptx_line), (FindingKind::OutOfBounds, 31, 11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod check;
pub mod count;
mod error;
mod exec;
mod launch;
mod lower;
mod memory;
mod parse;
mod program;
mod report;

pub use check::{Checks, Finding, FindingKind, Location};
pub use count::{AllocationTraffic, Counts, InstructionKind, SharedTraffic, Traffic};
pub use error::{LaunchError, MemoryError, ParseError, ParseErrorKind};
pub use launch::{BlockSelection, Counters, Launch, MmaMode, Options};
pub use memory::{Address, Memory};
pub use program::{InstructionLine, Program, SourceLine};
pub use report::{InstructionTraffic, Report};

/// Runs a launch to its end.
///
/// # Errors
/// The launch does not fit the program; faults of the kernel are findings of the report.
pub fn launch(
    program: &Program,
    memory: &Memory,
    launch: &Launch<'_>,
    options: &Options,
) -> Result<Report, LaunchError> {
    exec::launch(program, memory, launch, options)
}
