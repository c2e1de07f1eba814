//! Dynamic instruction counts of a launch, and how far they can be trusted.

use super::LineCounts;
use super::evidence::Equation;
use super::solve::holds;
use crate::sass::{Class, Guard, Kernel};
use serde::Serialize;
use std::collections::BTreeMap;

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
        self.counts
            .values()
            .fold(0, |sum, &n| sum.saturating_add(n))
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
    /// Warp-instructions issued, by class. A guarded one of a one-to-one class whose guard is false
    /// takes an issue slot and nothing else: it counts as [`Class::Nop`].
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
    pub fn imbalance(&self) -> u64 {
        self.balance.iter().map(|b| b.ptx.abs_diff(b.sass)).sum()
    }
}

/// One line's instructions of a one-to-one class.
#[derive(Default)]
struct Copies {
    issued: u64,
    guarded: bool,
}

pub(super) fn tally(
    kernel: &Kernel,
    counts: &LineCounts,
    equations: &[Equation],
    executions: &[i64],
) -> SassCounts {
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
    let mut lines: BTreeMap<(Class, u32), Copies> = BTreeMap::new();
    let mut blocks = Vec::with_capacity(kernel.blocks.len());
    let mut unmapped = 0u64;
    for (index, block) in kernel.blocks.iter().enumerate() {
        // Executions are sums and differences of counts, and never negative.
        let executions = executions[index].max(0).unsigned_abs();
        let (agreeing, all) = evidence[index];
        if all == 0 {
            unmapped = unmapped.saturating_add(executions * block.instructions.len() as u64);
        }
        for at in block.instructions.clone() {
            let instruction = &kernel.instructions[at];
            let class = instruction.class();
            let line = kernel.lines[at].filter(|&line| counts.executions(line).is_some());
            if let (true, Some(line)) = (class.is_one_to_one(), line) {
                let copies = lines.entry((class, line)).or_default();
                copies.issued = copies.issued.saturating_add(executions);
                copies.guarded |= instruction.guard() != Guard::Always;
            } else {
                by_class.add(class, executions);
            }
        }
        blocks.push(BlockCount {
            first: block.instructions.start,
            instructions: block.instructions.len(),
            executions,
            agreement: (all > 0).then(|| agreeing as f32 / all as f32),
        });
    }

    let mut balance: BTreeMap<Class, Balance> = BTreeMap::new();
    for ((class, line), copies) in lines {
        let ptx = counts.executions(line).unwrap_or(0);
        // A branch that ptxas turned into a guard: issued always, executed when it was taken.
        let off = if copies.guarded {
            copies.issued.saturating_sub(ptx)
        } else {
            0
        };
        let sass = copies.issued - off;
        by_class.add(class, sass);
        by_class.add(Class::Nop, off);
        let balance = balance.entry(class).or_insert(Balance {
            class,
            ptx: 0,
            sass: 0,
        });
        balance.ptx = balance.ptx.saturating_add(ptx);
        balance.sass = balance.sass.saturating_add(sass);
    }
    SassCounts {
        entry: kernel.entry.clone(),
        unknown_opcodes: by_class.get(Class::Other),
        by_class,
        blocks,
        balance: balance.into_values().collect(),
        unmapped,
    }
}
