//! Conservation of control flow: what enters a block leaves it.
//!
//! It holds for warps that stay converged. A warp that runs both sides of a branch breaks it, so
//! that flow is a preference to be weighed against the lines, never a constraint.

use crate::sass::Kernel;

/// The edges that converged warps take.
pub(crate) struct Flow {
    edges: Vec<(usize, usize)>,
    into: Vec<Vec<usize>>,
    out: Vec<Vec<usize>>,
    /// Blocks that some or all executions leave for good.
    leaves: Vec<bool>,
    /// Blocks that something else enters: the kernel's first, and called functions.
    entered: Vec<bool>,
}

impl Flow {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let count = kernel.blocks.len();
        let mut flow = Self {
            edges: Vec::new(),
            into: vec![Vec::new(); count],
            out: vec![Vec::new(); count],
            leaves: vec![false; count],
            entered: vec![false; count],
        };
        for (index, block) in kernel.blocks.iter().enumerate() {
            if let Some(callee) = block.callee {
                flow.entered[callee] = true;
            }
            flow.leaves[index] = block.instructions.clone().last().is_none_or(|last| {
                let name = kernel.instructions[last].name();
                matches!(name, Some("EXIT" | "RET" | "KILL")) || block.successors.is_empty()
            });
            for &successor in &block.successors {
                if block.only_diverged || kernel.blocks[successor].only_diverged {
                    continue;
                }
                flow.into[successor].push(flow.edges.len());
                flow.out[index].push(flow.edges.len());
                flow.edges.push((index, successor));
            }
        }
        if let Some(first) = flow.entered.first_mut() {
            *first = true;
        }
        flow
    }

    /// Executions that enter `block` from other blocks, as far as they are known.
    pub(crate) fn entries(&self, block: usize, known: &[Option<i64>]) -> Option<i64> {
        let others = self.into[block]
            .iter()
            .map(|&edge| self.edges[edge].0)
            .filter(|&from| from != block);
        let mut sum: Option<i64> = None;
        for from in others {
            if let Some(value) = known[from] {
                sum = Some(sum.unwrap_or(0) + value);
            }
        }
        sum
    }

    /// Executions of `block` that its known neighbours alone imply.
    pub(crate) fn implied(&self, block: usize, known: &[Option<i64>], into: &mut Vec<i64>) {
        let sum = |edges: &[usize], end: fn((usize, usize)) -> usize, except: usize| {
            edges
                .iter()
                .map(|&edge| end(self.edges[edge]))
                .filter(|&other| other != except)
                .try_fold(0, |sum, other| Some(sum + known[other]?))
        };
        let from = |edge: (usize, usize)| edge.0;
        let to = |edge: (usize, usize)| edge.1;
        if !self.entered[block] {
            into.extend(sum(&self.into[block], from, usize::MAX));
        }
        if !self.leaves[block] {
            into.extend(sum(&self.out[block], to, usize::MAX));
        }
        // What a neighbour passes on, less what its other neighbours on that side take.
        for &edge in &self.into[block] {
            let before = self.edges[edge].0;
            let total = known[before];
            let others = sum(&self.out[before], to, block);
            into.extend(total.zip(others).map(|(total, others)| total - others));
            into.extend(total);
        }
        for &edge in &self.out[block] {
            let after = self.edges[edge].1;
            let total = known[after];
            let others = sum(&self.into[after], from, block);
            into.extend(total.zip(others).map(|(total, others)| total - others));
            into.extend(total);
        }
    }

    /// Blocks at which flow cannot be conserved under these executions.
    pub(crate) fn violations(&self, executions: &[i64]) -> u32 {
        let mut taken: Vec<Option<i64>> = vec![None; self.edges.len()];
        for (edge, &(from, to)) in self.edges.iter().enumerate() {
            if self.out[from].len() == 1 && !self.leaves[from] {
                taken[edge] = Some(executions[from]);
            } else if self.into[to].len() == 1 && !self.entered[to] {
                taken[edge] = Some(executions[to]);
            }
        }
        let mut violations = 0;
        let mut settled = false;
        while !settled {
            settled = true;
            for (block, &total) in executions.iter().enumerate() {
                let sides = [
                    (&self.into[block], self.entered[block]),
                    (&self.out[block], self.leaves[block]),
                ];
                for (edges, open) in sides {
                    let mut unknown = edges.iter().filter(|&&edge| taken[edge].is_none());
                    if let (Some(&edge), None, false) = (unknown.next(), unknown.next(), open) {
                        let rest = total - known_sum(edges, &taken);
                        taken[edge] = Some(rest.max(0));
                        violations += u32::from(rest < 0);
                        settled = false;
                    }
                }
            }
        }
        for (block, &total) in executions.iter().enumerate() {
            let sides = [
                (&self.into[block], self.entered[block]),
                (&self.out[block], self.leaves[block]),
            ];
            for (edges, open) in sides {
                let sum = known_sum(edges, &taken);
                let all = edges.iter().all(|&edge| taken[edge].is_some());
                let conserved = if all && !open && !edges.is_empty() {
                    sum == total
                } else {
                    sum <= total
                };
                violations += u32::from(!conserved);
            }
        }
        violations
    }
}

fn known_sum(edges: &[usize], taken: &[Option<i64>]) -> i64 {
    edges.iter().filter_map(|&edge| taken[edge]).sum()
}
