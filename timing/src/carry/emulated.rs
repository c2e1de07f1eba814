//! Line counts from an emulated launch.

use super::LineCounts;
use pagesmith_emulator::{Program, Report};

impl LineCounts {
    /// The line counts of an emulated launch of `entry`.
    ///
    /// Where the report covers only some of the grid's blocks, so do the counts.
    pub fn from_report(program: &Program, entry: &str, report: &Report) -> Self {
        program
            .instruction_lines(entry)
            .zip(&report.instruction_executions)
            .map(|(at, &executions)| (at.ptx_line, executions))
            .collect()
    }
}
