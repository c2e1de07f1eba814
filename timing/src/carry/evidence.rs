//! What the PTX counts say about the executions of SASS blocks, as weighted equations.

use super::LineCounts;
use crate::sass::{Class, Guard, Instruction, Kernel};
use std::collections::BTreeMap;

/// `sum of multiplicity * executions(block) = value`, believed with a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Equation {
    /// Blocks with multiplicities, by block.
    pub(crate) terms: Vec<(usize, u32)>,
    pub(crate) value: i64,
    pub(crate) weight: u32,
}

/// One to one and unguarded: ptxas neither merges, splits nor predicates these.
pub(super) const STRICT: u32 = 64;
/// Float arithmetic: mostly one to one.
const FLOAT: u32 = 8;
/// Integer arithmetic, moves and guarded instructions: hoisted, merged, or predicated out of a
/// branch often enough that only their majority means something.
const LOOSE: u32 = 1;

/// All equations that the kernel's lines give, the same ones merged.
pub(crate) fn equations(kernel: &Kernel, counts: &LineCounts) -> Vec<Equation> {
    // Line and operation -> how many instructions of it each block holds.
    let mut uses: BTreeMap<(u32, u16), Uses> = BTreeMap::new();
    for (block, b) in kernel.blocks.iter().enumerate() {
        if b.only_diverged {
            continue;
        }
        for index in b.instructions.clone() {
            let Some(line) = kernel.lines[index] else {
                continue;
            };
            let instruction = &kernel.instructions[index];
            let uses = uses.entry((line, instruction.operation())).or_default();
            *uses.blocks.entry(block).or_default() += 1;
            uses.weight = uses.weight.min(weight(instruction));
        }
    }

    let mut merged: BTreeMap<(Vec<(usize, u32)>, i64), u32> = BTreeMap::new();
    for ((line, _), uses) in uses {
        let Some(executions) = counts.executions(line) else {
            continue;
        };
        let mut terms: Vec<(usize, u32)> = uses.blocks.into_iter().collect();
        let mut weight = uses.weight;
        if weight < STRICT {
            // One PTX instruction may expand to several of one kind: what all blocks share is
            // taken for the expansion, not for copies.
            let shared = terms.iter().fold(0, |common, &(_, n)| gcd(common, n));
            terms.iter_mut().for_each(|(_, n)| *n /= shared);
            if shared > 1 {
                weight = LOOSE;
            }
        }
        let value = i64::try_from(executions).unwrap_or(i64::MAX);
        *merged.entry((terms, value)).or_default() += weight;
    }
    merged
        .into_iter()
        .map(|((terms, value), weight)| Equation {
            terms,
            value,
            weight,
        })
        .collect()
}

struct Uses {
    blocks: BTreeMap<usize, u32>,
    weight: u32,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            blocks: BTreeMap::new(),
            weight: STRICT,
        }
    }
}

fn weight(instruction: &Instruction) -> u32 {
    if instruction.guard() != Guard::Always {
        return LOOSE;
    }
    match instruction.class() {
        class if class.is_one_to_one() => STRICT,
        Class::Double | Class::Special => FLOAT,
        Class::Fma | Class::Integer => match instruction.name() {
            Some("FADD" | "FMUL" | "FFMA" | "FMNMX" | "FSETP" | "HADD2" | "HMUL2" | "F2FP") => {
                FLOAT
            }
            _ => LOOSE,
        },
        _ => LOOSE,
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
