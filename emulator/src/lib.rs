//! Runs compiled PTX on the CPU, checks it and counts it. It knows nothing of what a kernel computes.

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
