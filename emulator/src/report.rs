//! What a launch reports.

use crate::check::Finding;
use crate::count::{Counts, SharedTraffic, Traffic};

/// Memory traffic of one PTX instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct InstructionTraffic {
    /// Global requests, sectors and bytes.
    pub global: Traffic,
    /// Shared-memory wavefronts.
    pub shared: SharedTraffic,
}

/// The result of a launch: what it executed and what is wrong with it. It is the same for every number of threads.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The counters.
    pub counts: Counts,
    /// Faults, by the block order of their first occurrence.
    pub findings: Vec<Finding>,
    /// Distinct findings beyond the limit of [`crate::Options::finding_limit`].
    pub findings_dropped: u64,
    /// Warp executions of each PTX instruction of the entry, in the order of
    /// [`crate::Program::instruction_lines`].
    pub instruction_executions: Vec<u64>,
    /// Memory traffic of each PTX instruction, in the same order; empty unless traffic is counted.
    pub instruction_traffic: Vec<InstructionTraffic>,
}

impl Report {
    /// No finding of any kind.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.findings_dropped == 0
    }
}
