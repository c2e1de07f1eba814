//! Dynamic instruction counts of a launch, and how far they can be trusted.

use super::LineCounts;
use super::evidence::Equation;
use super::solve::holds;
use crate::sass::{Class, Kernel};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Warp-instructions by class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ClassCounts {
    counts: BTreeMap<Class, u64>,
}

impl ClassCounts {
    /// Warp-instructions of a class.
    pub fn get(&self, class: Class) -> u64 {
        self.counts.get(&class).copied().unwrap_or(0)
    }

    /// Adds to a class.
    pub fn add(&mut self, class: Class, instructions: u64) {
        if instructions > 0 {
            let count = self.counts.entry(class).or_default();
            *count = count.saturating_add(instructions);
        }
    }

    /// Warp-instructions of all classes.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Classes that occur, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Class, u64)> {
        self.counts.iter().map(|(&class, &count)| (class, count))
    }
}

impl FromIterator<(Class, u64)> for ClassCounts {
    fn from_iter<I: IntoIterator<Item = (Class, u64)>>(classes: I) -> Self {
        let mut counts = Self::default();
        for (class, instructions) in classes {
            counts.add(class, instructions);
        }
        counts
    }
}

/// A class that ptxas maps one to one, counted on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// The class.
    pub class: Class,
    /// Executions of the PTX lines that such instructions were made from.
    pub ptx: u64,
    /// Executions of the instructions.
    pub sass: u64,
}

/// Executions of one basic block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockCount {
    /// Index of its first instruction in the kernel.
    pub first: usize,
    /// Its instructions.
    pub instructions: usize,
    /// Warps that ran it, each time counted.
    pub executions: u64,
    /// Of the evidence about it, the part that agrees, from 0 to 1; none without evidence.
    pub agreement: Option<f32>,
}

/// Warp-instructions of one launch of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SassCounts {
    /// The kernel.
    pub entry: String,
    /// Warp-instructions issued, by class.
    pub by_class: ClassCounts,
    /// Executions of every block, in address order.
    pub blocks: Vec<BlockCount>,
    /// The one-to-one classes that occur, checked against the PTX.
    pub balance: Vec<Balance>,
    /// Of the warp-instructions, those in blocks about which no line says anything: placed by flow alone.
    pub unmapped: u64,
    /// Of the warp-instructions, those of opcodes that the table does not know.
    pub unknown_opcodes: u64,
}

impl SassCounts {
    /// Warp-instructions issued.
    pub fn total(&self) -> u64 {
        self.by_class.total()
    }

    /// Warp-instructions of one-to-one classes that PTX and SASS count differently: 0 when exact.
    ///
    /// Guarded instructions are issued more often than the branch that they replace was taken, so
    /// loads and stores may differ for a good reason; products and matrix loads may not.
    pub fn imbalance(&self) -> u64 {
        self.balance.iter().map(|b| b.ptx.abs_diff(b.sass)).sum()
    }
}

pub(super) fn tally(
    kernel: &Kernel,
    counts: &LineCounts,
    equations: &[Equation],
    executions: &[i64],
) -> SassCounts {
    // Executions are sums and differences of counts, and never negative.
    let executions_of = |block: usize| executions[block].max(0).unsigned_abs();
    let mut evidence = vec![(0u64, 0u64); kernel.blocks.len()];
    for equation in equations {
        let agrees = holds(equation, executions);
        for &(block, _) in &equation.terms {
            let (agreeing, all) = &mut evidence[block];
            *agreeing += u64::from(agrees) * u64::from(equation.weight);
            *all += u64::from(equation.weight);
        }
    }

    let mut by_class = ClassCounts::default();
    let mut lines: BTreeMap<Class, (BTreeSet<u32>, u64)> = BTreeMap::new();
    let mut blocks = Vec::with_capacity(kernel.blocks.len());
    let mut unmapped = 0u64;
    for (index, block) in kernel.blocks.iter().enumerate() {
        let executions = executions_of(index);
        let (agreeing, all) = evidence[index];
        if all == 0 {
            unmapped = unmapped.saturating_add(executions * block.instructions.len() as u64);
        }
        for at in block.instructions.clone() {
            let class = kernel.instructions[at].class();
            by_class.add(class, executions);
            if let (true, Some(line)) = (class.is_one_to_one(), kernel.lines[at])
                && counts.executions(line).is_some()
            {
                let (seen, sass) = lines.entry(class).or_default();
                seen.insert(line);
                *sass = sass.saturating_add(executions);
            }
        }
        blocks.push(BlockCount {
            first: block.instructions.start,
            instructions: block.instructions.len(),
            executions,
            agreement: (all > 0).then(|| agreeing as f32 / all as f32),
        });
    }
    let balance = lines.into_iter().map(|(class, (lines, sass))| Balance {
        class,
        ptx: lines.iter().filter_map(|&line| counts.executions(line)).sum(),
        sass,
    });
    SassCounts {
        entry: kernel.entry.clone(),
        unknown_opcodes: by_class.get(Class::Other),
        by_class,
        blocks,
        balance: balance.collect(),
        unmapped,
    }
}
