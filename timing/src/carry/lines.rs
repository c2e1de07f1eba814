//! How often each PTX line ran: the plain input of counting.

use std::collections::BTreeMap;

/// Warp executions of PTX lines.
///
/// A line is counted once each time a warp runs it, whatever the number of its live lanes. This
/// is a plain table, so that counts may come from the emulator, a file or a hardware profile.
///
/// ```
/// use pagesmith_timing::LineCounts;
///
/// let counts: LineCounts = [(12, 96), (13, 96)].into_iter().collect();
/// assert_eq!(counts.executions(13), Some(96));
/// assert_eq!(counts.executions(14), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    lines: BTreeMap<u32, u64>,
}

/// Counts above this are taken for it: sums of them stay exact in 64 bits.
const MAX: u64 = 1 << 40;

impl LineCounts {
    /// Warp executions of a 1-based PTX line; none where the line holds no instruction.
    pub fn executions(&self, line: u32) -> Option<u64> {
        self.lines.get(&line).copied()
    }

    /// Lines that hold instructions, with their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.lines
            .iter()
            .map(|(&line, &executions)| (line, executions))
    }

    /// Adds a line; of two instructions on one line the more frequent one counts.
    pub fn add(&mut self, line: u32, executions: u64) {
        let known = self.lines.entry(line).or_default();
        *known = (*known).max(executions.min(MAX));
    }
}

impl FromIterator<(u32, u64)> for LineCounts {
    fn from_iter<I: IntoIterator<Item = (u32, u64)>>(lines: I) -> Self {
        let mut counts = Self::default();
        for (line, executions) in lines {
            counts.add(line, executions);
        }
        counts
    }
}
