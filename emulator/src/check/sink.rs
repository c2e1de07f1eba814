//! Collects the findings of one block, then of the launch.

use super::{Finding, FindingKind, Location};
use crate::lower::Entry;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

/// Where and by whom a fault was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub(crate) block: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    /// Index of the instruction.
    pub(crate) pc: u32,
}

/// What is known of a fault beyond its site.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) address: Option<u64>,
    pub(crate) allocation: Option<String>,
    pub(crate) message: String,
}

/// Findings by kind and PTX line.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    found: BTreeMap<(FindingKind, u32), Finding>,
    order: Vec<(FindingKind, u32)>,
    limit: usize,
    dropped: u64,
}

impl Sink {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Records one occurrence; `details` is called only for the first of its kind and line.
    pub(crate) fn record(
        &mut self,
        entry: &Entry,
        kind: FindingKind,
        site: Site,
        details: impl FnOnce() -> Details,
    ) {
        let line = entry.lines.get(site.pc as usize);
        let ptx_line = line.map_or(0, |line| line.ptx);
        if let Some(finding) = self.found.get_mut(&(kind, ptx_line)) {
            finding.occurrences += 1;
            return;
        }
        let Details {
            address,
            allocation,
            message,
        } = details();
        // The file number is turned into a name when the launch ends.
        let source = line.and_then(|line| line.source);
        let source = source.map(|(file, line)| Location {
            file: file.to_string(),
            line,
        });
        self.add(Finding {
            kind,
            kernel: entry.name.to_string(),
            block: site.block,
            warp: site.warp,
            lane: site.lane,
            ptx_line,
            source,
            address,
            allocation,
            message,
            occurrences: 1,
        });
    }

    fn add(&mut self, finding: Finding) {
        let key = (finding.kind, finding.ptx_line);
        let full = self.found.len() >= self.limit;
        match self.found.entry(key) {
            Slot::Occupied(mut slot) => slot.get_mut().occurrences += finding.occurrences,
            Slot::Vacant(_) if full => self.dropped += finding.occurrences,
            Slot::Vacant(slot) => {
                slot.insert(finding);
                self.order.push(key);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.dropped == 0
    }

    /// Adds what a later block found.
    pub(crate) fn append(&mut self, later: Self) {
        let Self {
            mut found,
            order,
            dropped,
            ..
        } = later;
        self.dropped += dropped;
        for key in order {
            if let Some(finding) = found.remove(&key) {
                self.add(finding);
            }
        }
    }

    /// The findings in the order they were first seen, and how many occurrences were dropped.
    pub(crate) fn finish(mut self) -> (Vec<Finding>, u64) {
        let ordered = self
            .order
            .iter()
            .filter_map(|key| self.found.remove(key))
            .collect();
        (ordered, self.dropped)
    }
}
