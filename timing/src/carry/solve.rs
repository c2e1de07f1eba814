//! Executions of every block: the assignment that breaks the least evidence.
//!
//! Evidence is judged by whether it holds, not by how far it is off: one hoisted instruction that
//! is off by a factor of a thousand must not outweigh ten that agree. Blocks start from what their
//! own lines say, the rest follow from equations and flow, and then each block in turn moves to
//! whichever value breaks least, until none moves.

use super::evidence::{Equation, STRICT};
use super::flow::Flow;
use std::collections::BTreeMap;

/// A broken law of flow weighs as much as so many loose instructions.
const FLOW: u32 = 6;
/// Beyond so many blocks only the first assignment is made: the search is quadratic.
const SEARCHED_BLOCKS: usize = 1500;
const SWEEPS: usize = 16;
/// Blocks looked at while first values spread: far above any real kernel, and a bound for hostile
/// ones, whose blocks then stay at zero.
const VISITS: usize = 100_000_000;
/// Largest executions of a block: sums and multiples of it over any kernel stay within 64 bits.
const MOST: i64 = 1 << 42;
/// Copies of one line in so many blocks are too many to try in pairs.
const EXCHANGED_BLOCKS: usize = 6;

/// Executions of each block.
pub(crate) fn executions(cold: &[bool], equations: &[Equation], flow: &Flow) -> Vec<i64> {
    let mut search = Search {
        equations,
        flow,
        touching: vec![Vec::new(); cold.len()],
        known: cold.iter().map(|&cold| cold.then_some(0)).collect(),
    };
    for (index, equation) in equations.iter().enumerate() {
        for &(block, _) in &equation.terms {
            search.touching[block].push(index);
        }
    }
    search.assign();
    if cold.len() <= SEARCHED_BLOCKS {
        search.improve(cold);
    }
    search.values()
}

struct Search<'a> {
    equations: &'a [Equation],
    flow: &'a Flow,
    /// Equations of each block.
    touching: Vec<Vec<usize>>,
    known: Vec<Option<i64>>,
}

impl Search<'_> {
    fn values(&self) -> Vec<i64> {
        self.known.iter().map(|value| value.unwrap_or(0)).collect()
    }

    /// A first value for every block that any evidence reaches.
    fn assign(&mut self) {
        for block in 0..self.known.len() {
            if self.known[block].is_none() {
                self.known[block] = self.own_majority(block);
            }
        }
        for _ in 0..VISITS / self.known.len().max(1) {
            let mut moved = false;
            for block in 0..self.known.len() {
                if self.known[block].is_none() {
                    self.known[block] = self.implied_by_equations(block);
                    moved |= self.known[block].is_some();
                }
            }
            if moved {
                continue;
            }
            // Nothing is determined: guess the block with the most copies first, for an unrolled
            // loop does most of the work and its remainder the rest.
            if let Some((block, value)) = self.largest_share() {
                self.known[block] = Some(value);
                continue;
            }
            let mut candidates = Vec::new();
            let reached = (0..self.known.len()).find(|&block| {
                self.known[block].is_none() && {
                    self.flow.implied(block, &self.known, &mut candidates);
                    !candidates.is_empty()
                }
            });
            let Some(block) = reached else { break };
            self.known[block] = candidates.first().map(|&value| value.clamp(0, MOST));
        }
    }

    /// What the block's own lines say, where no other block shares them.
    fn own_majority(&self, block: usize) -> Option<i64> {
        let mut votes: BTreeMap<i64, u32> = BTreeMap::new();
        for &index in &self.touching[block] {
            let equation = &self.equations[index];
            if let [(_, copies)] = equation.terms[..]
                && equation.value % i64::from(copies) == 0
            {
                *votes.entry(equation.value / i64::from(copies)).or_default() += equation.weight;
            }
        }
        let heaviest = votes.into_iter().max_by_key(|&(_, weight)| weight)?;
        Some(heaviest.0)
    }

    /// What the heaviest equation says in which the block is the only unknown.
    fn implied_by_equations(&self, block: usize) -> Option<i64> {
        let solvable = self.touching[block].iter().filter_map(|&index| {
            let equation = &self.equations[index];
            Some((equation.weight, self.solved_for(equation, block)?))
        });
        let (_, value) = solvable.max_by_key(|&(weight, _)| weight)?;
        Some(value)
    }

    fn solved_for(&self, equation: &Equation, block: usize) -> Option<i64> {
        let (mut rest, mut copies) = (equation.value, 0);
        for &(other, multiplicity) in &equation.terms {
            if other == block {
                copies = i64::from(multiplicity);
            } else {
                rest -= self.known[other]? * i64::from(multiplicity);
            }
        }
        (copies > 0 && (0..=MOST).contains(&rest) && rest % copies == 0).then(|| rest / copies)
    }

    fn largest_share(&self) -> Option<(usize, i64)> {
        let open = self.equations.iter().flat_map(|equation| {
            equation
                .terms
                .iter()
                .filter(|&&(block, _)| self.known[block].is_none())
                .map(move |&(block, copies)| (copies, equation.weight, block, equation))
        });
        let (copies, _, block, equation) =
            open.max_by_key(|&(copies, weight, block, _)| (copies, weight, usize::MAX - block))?;
        let taken: i64 = equation
            .terms
            .iter()
            .filter_map(|&(other, n)| Some(self.known[other]? * i64::from(n)))
            .sum();
        let rest = (equation.value - taken).max(0);
        let copies = i64::from(copies);
        // Where every entry makes as many trips, the remainder of each one stays with the others.
        let value = match self.flow.entries(block, &self.known) {
            Some(entries) if entries > 0 && rest % entries == 0 => {
                rest / entries / copies * entries
            }
            _ => rest / copies,
        };
        Some((block, value))
    }

    /// Moves blocks, alone or two together, as long as that mends more than it breaks.
    fn improve(&mut self, cold: &[bool]) {
        let mut values = self.values();
        let all: Vec<usize> = (0..self.equations.len()).collect();
        for _ in 0..SWEEPS {
            let before = values.clone();
            if self.cost(&all, &values) == 0 {
                break;
            }
            for block in (0..values.len()).filter(|&block| !cold[block]) {
                for candidate in self.candidates(block, &values) {
                    self.try_moves(&[(block, candidate)], &mut values);
                }
            }
            for equation in self.equations.iter().filter(|e| e.weight >= STRICT) {
                self.exchange(equation, cold, &mut values);
            }
            if values == before {
                break;
            }
        }
        self.known = values.into_iter().map(Some).collect();
    }

    /// Moves executions between the blocks that hold copies of one instruction: neither can move
    /// alone without breaking their sum.
    fn exchange(&self, equation: &Equation, cold: &[bool], values: &mut [i64]) {
        if equation.terms.len() < 2 || equation.terms.len() > EXCHANGED_BLOCKS {
            return;
        }
        for &(first, first_copies) in &equation.terms {
            for &(second, copies) in &equation.terms {
                if first == second || cold[first] || cold[second] {
                    continue;
                }
                let mut candidates = self.candidates(first, values);
                candidates.push(0);
                for candidate in candidates {
                    let moved = (values[first] - candidate) * i64::from(first_copies);
                    let other = values[second] + moved / i64::from(copies);
                    if moved % i64::from(copies) == 0 && (0..=MOST).contains(&other) {
                        self.try_moves(&[(first, candidate), (second, other)], values);
                    }
                }
            }
        }
    }

    /// Makes the moves if together they lower the cost.
    fn try_moves(&self, moves: &[(usize, i64)], values: &mut [i64]) {
        let mut touched: Vec<usize> = moves
            .iter()
            .flat_map(|&(block, _)| self.touching[block].iter().copied())
            .collect();
        touched.sort_unstable();
        touched.dedup();
        let cost = |values: &[i64]| self.cost(&touched, values);
        let before = cost(values);
        let old: Vec<i64> = moves.iter().map(|&(block, _)| values[block]).collect();
        for &(block, value) in moves {
            values[block] = value;
        }
        if cost(values) >= before {
            for (&(block, _), old) in moves.iter().zip(old) {
                values[block] = old;
            }
        }
    }

    fn candidates(&self, block: usize, values: &[i64]) -> Vec<i64> {
        let known: Vec<Option<i64>> = values.iter().copied().map(Some).collect();
        let mut candidates = Vec::new();
        self.flow.implied(block, &known, &mut candidates);
        for &index in &self.touching[block] {
            let equation = &self.equations[index];
            let rest: i64 = equation
                .terms
                .iter()
                .filter(|&&(other, _)| other != block)
                .map(|&(other, n)| values[other] * i64::from(n))
                .sum();
            let copies = equation.terms.iter().find(|&&(other, _)| other == block);
            let copies = copies.map_or(1, |&(_, n)| i64::from(n));
            if (equation.value - rest) % copies == 0 {
                candidates.push((equation.value - rest) / copies);
            }
        }
        candidates.retain(|&value| (0..=MOST).contains(&value) && value != values[block]);
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    /// Weight of what is broken: of these equations, and of the flow.
    fn cost(&self, equations: &[usize], values: &[i64]) -> u32 {
        let broken: u32 = equations
            .iter()
            .map(|&index| &self.equations[index])
            .filter(|equation| !holds(equation, values))
            .map(|equation| equation.weight)
            .sum();
        broken.saturating_add(FLOW * self.flow.violations(values))
    }
}

/// Whether the executions satisfy an equation.
pub(crate) fn holds(equation: &Equation, values: &[i64]) -> bool {
    let sum: i64 = equation
        .terms
        .iter()
        .map(|&(block, n)| values[block] * i64::from(n))
        .sum();
    sum == equation.value
}
