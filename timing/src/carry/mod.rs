//! PTX execution counts carried to machine code.
//!
//! The emulator runs PTX; what a GPU issues is SASS, which ptxas made from it by merging,
//! hoisting, predicating, peeling and unrolling. The line table names the PTX line of every SASS
//! instruction. Each line gives an equation over the executions of the blocks that hold its
//! copies; the executions that break the least evidence, control flow included, are taken, and
//! every instruction of a block is counted as often as its block runs.

mod counts;
mod emulated;
mod evidence;
mod flow;
mod lines;
mod solve;

pub use counts::{Balance, BlockCount, ClassCounts, SassCounts};
pub use lines::LineCounts;

use crate::error::TimingError;
use crate::sass::Kernel;

/// Counts the warp-instructions that a GPU issues for a launch whose PTX lines ran `counts` times.
///
/// `cubin` must be of the same compile as the PTX that was counted, with `-lineinfo`.
///
/// # Errors
/// When the bytes are no CUBIN, have no such kernel, or no line table for it.
pub fn count_sass(
    cubin: &[u8],
    entry: &str,
    counts: &LineCounts,
) -> Result<SassCounts, TimingError> {
    Ok(count_kernel(&Kernel::decode(cubin, entry)?, counts))
}

/// [`count_sass`] of a kernel that is decoded already.
pub fn count_kernel(kernel: &Kernel, counts: &LineCounts) -> SassCounts {
    let equations = evidence::equations(kernel, counts);
    let flow = flow::Flow::of(kernel);
    let cold: Vec<bool> = kernel.blocks.iter().map(|b| b.only_diverged).collect();
    let executions = solve::executions(&cold, &equations, &flow);
    counts::tally(kernel, counts, &equations, &executions)
}
