//! Basic blocks of a kernel, and which of them only lane-divergent warps reach.

use super::{Instruction, instruction::Flow};
use std::ops::Range;

/// A straight run of instructions: entered at its first and left after its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its instructions, as indices into the kernel's.
    pub instructions: Range<usize>,
    /// Blocks that may follow.
    pub successors: Vec<usize>,
    /// Blocks that it may follow.
    pub predecessors: Vec<usize>,
    /// The block that it calls before going on to its successor.
    pub callee: Option<usize>,
    /// Reached only through `BRA.DIV`, the failing side of `BRA.CONV`, or a call from such code.
    ///
    /// ptxas keeps these slow paths for warps that lost lanes; a converged warp never takes them.
    pub only_diverged: bool,
}

/// Splits a kernel into basic blocks, in address order.
pub(crate) fn blocks(code: &[Instruction]) -> Vec<Block> {
    let count = code.len();
    let inside = |target: i64| usize::try_from(target).ok().filter(|&t| t < count);
    let flows: Vec<Flow> = (0..count).map(|i| code[i].flow(i)).collect();

    let mut leads = vec![false; count];
    if let Some(first) = leads.first_mut() {
        *first = true;
    }
    for (index, flow) in flows.iter().enumerate() {
        let target = match *flow {
            Flow::Next => continue,
            Flow::Branch { target, .. }
            | Flow::IfDiverged { target }
            | Flow::IfConverged { target } => Some(target),
            Flow::Call { target } => target,
            Flow::Leave { .. } | Flow::Unknown => None,
        };
        if let Some(target) = target.and_then(inside) {
            leads[target] = true;
        }
        if index + 1 < count {
            leads[index + 1] = true;
        }
    }

    let mut block_of = vec![0; count];
    let mut starts = Vec::new();
    for (index, &lead) in leads.iter().enumerate() {
        if lead {
            starts.push(index);
        }
        block_of[index] = starts.len().saturating_sub(1);
    }
    let end = |block: usize| starts.get(block + 1).copied().unwrap_or(count);
    let block_at = |target: i64| inside(target).map(|t| block_of[t]);

    let mut warm: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
    let mut blocks: Vec<Block> = (0..starts.len())
        .map(|block| {
            let last = end(block) - 1;
            let next = block_at(last as i64 + 1);
            let (hot, cold, callee) = match flows[last] {
                Flow::Next => (vec![next], None, None),
                Flow::Branch {
                    target,
                    conditional: true,
                } => (vec![next, block_at(target)], None, None),
                Flow::Branch { target, .. } => (vec![block_at(target)], None, None),
                Flow::IfDiverged { target } => (vec![next], block_at(target), None),
                Flow::IfConverged { target } => (vec![block_at(target)], next, None),
                Flow::Call { target } => (vec![next], None, target.and_then(block_at)),
                Flow::Leave { conditional: true } => (vec![next], None, None),
                Flow::Leave { .. } | Flow::Unknown => (Vec::new(), None, None),
            };
            let mut successors: Vec<usize> = hot.into_iter().flatten().collect();
            warm[block] = successors.iter().copied().chain(callee).collect();
            successors.extend(cold);
            successors.sort_unstable();
            successors.dedup();
            Block {
                instructions: starts[block]..end(block),
                successors,
                predecessors: Vec::new(),
                callee,
                only_diverged: true,
            }
        })
        .collect();

    for block in 0..blocks.len() {
        for successor in blocks[block].successors.clone() {
            blocks[successor].predecessors.push(block);
        }
    }
    // An indirect branch may go anywhere: then nothing is known to be cold.
    let all_warm = flows.contains(&Flow::Unknown);
    let mut pending = if all_warm {
        (0..blocks.len()).collect()
    } else {
        vec![0]
    };
    while let Some(block) = pending.pop() {
        if blocks.get(block).is_some_and(|b| b.only_diverged) {
            blocks[block].only_diverged = false;
            pending.extend(&warm[block]);
        }
    }
    blocks
}
