//! Covering arrays: few rows in which every combination of values of any `t` axes occurs.
//!
//! Greedy, one row at a time (after AETG; Cohen, Dalal, Fredman, Patton 1997): a row starts from a tuple
//! that is not covered yet and takes, axis by axis in random order, the value that covers most; of several
//! such rows the best is kept.

use crate::random::{Random, Seed};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How many axes are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// Every pair of values of any two axes.
    Pairwise,
    /// Every triple of values of any three axes.
    ThreeWise,
}

impl Strength {
    /// Axes in a combination.
    pub const fn axes(self) -> usize {
        match self {
            Strength::Pairwise => 2,
            Strength::ThreeWise => 3,
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strength::Pairwise => "pairwise",
            Strength::ThreeWise => "3wise",
        })
    }
}

/// A strength that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matrix: unknown strength `{0}`; use pairwise or 3wise")]
pub struct UnknownStrength(pub String);

impl FromStr for Strength {
    type Err = UnknownStrength;

    fn from_str(text: &str) -> Result<Self, UnknownStrength> {
        match text {
            "pairwise" | "2wise" => Ok(Strength::Pairwise),
            "3wise" | "threewise" => Ok(Strength::ThreeWise),
            _ => Err(UnknownStrength(text.chars().take(40).collect())),
        }
    }
}

/// Values of some axes: `(axis, value)` by ascending axis.
type Tuple = Vec<(usize, usize)>;

/// Rows, and the tuples that they were made to cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveringArray {
    /// One value index for each axis.
    pub rows: Vec<Vec<usize>>,
    coverable: BTreeSet<Tuple>,
    strength: usize,
}

impl CoveringArray {
    /// Tuples that some legal row has.
    pub fn coverable(&self) -> usize {
        self.coverable.len()
    }

    /// Coverable tuples that `rows` cover; all of [`CoveringArray::rows`] cover all.
    pub fn covered_by<'a>(&self, rows: impl IntoIterator<Item = &'a Vec<usize>>) -> usize {
        let covered: BTreeSet<Tuple> = rows
            .into_iter()
            .flat_map(|row| tuples(row, self.strength))
            .collect();
        covered.intersection(&self.coverable).count()
    }
}

/// Candidates for each row.
const CANDIDATES: usize = 12;

/// Rows that cover every tuple of values which occurs in some legal row, axis `i` having the values
/// `0..sizes[i]`. The same arguments give the same rows.
///
/// ```
/// use pagesmith_prove::{Seed, matrix::{Strength, covering_array}};
///
/// let array = covering_array(&[3, 3, 2], Strength::Pairwise, &|_| true, Seed(1));
/// assert_eq!(array.coverable(), 9 + 6 + 6);
/// assert!(array.rows.len() < 3 * 3 * 2);
/// ```
pub fn covering_array(
    sizes: &[usize],
    strength: Strength,
    legal: &dyn Fn(&[usize]) -> bool,
    seed: Seed,
) -> CoveringArray {
    let strength = strength.axes().min(sizes.len());
    let product: Vec<Vec<usize>> = product(sizes).filter(|row| legal(row)).collect();
    let coverable: BTreeSet<Tuple> = product
        .iter()
        .flat_map(|row| tuples(row, strength))
        .collect();
    let mut greedy = Greedy {
        sizes,
        strength,
        product: &product,
        uncovered: coverable.clone(),
        random: Random::new(seed),
    };
    // The widest axes' tuples need the most rows and must be in a row each anyway.
    let mut starts: Vec<&Tuple> = coverable.iter().collect();
    starts.sort_by_key(|tuple| {
        std::cmp::Reverse(
            tuple
                .iter()
                .map(|&(axis, _)| sizes[axis])
                .product::<usize>(),
        )
    });
    let mut rows = Vec::new();
    for start in starts {
        if !greedy.uncovered.contains(start) {
            continue;
        }
        if let Some(row) = greedy.best_row(start) {
            for tuple in tuples(&row, strength) {
                greedy.uncovered.remove(&tuple);
            }
            rows.push(row);
        }
    }
    CoveringArray {
        rows,
        coverable,
        strength,
    }
}

struct Greedy<'a> {
    sizes: &'a [usize],
    strength: usize,
    /// Every legal row.
    product: &'a [Vec<usize>],
    uncovered: BTreeSet<Tuple>,
    random: Random,
}

impl Greedy<'_> {
    fn best_row(&mut self, start: &Tuple) -> Option<Vec<usize>> {
        let mut best: Option<(usize, Vec<usize>)> = None;
        for _ in 0..CANDIDATES {
            let row = self.grow(start);
            if self.product.binary_search(&row).is_err() {
                continue;
            }
            let gain = tuples(&row, self.strength)
                .iter()
                .filter(|tuple| self.uncovered.contains(*tuple))
                .count();
            if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, row));
            }
        }
        // Greedy growth may end in illegal rows only; some legal row has the tuple.
        best.map(|(_, row)| row).or_else(|| {
            self.product
                .iter()
                .find(|row| start.iter().all(|&(axis, value)| row[axis] == value))
                .cloned()
        })
    }

    /// A row with `start` in it; may be illegal.
    fn grow(&mut self, start: &Tuple) -> Vec<usize> {
        let mut row: Vec<Option<usize>> = vec![None; self.sizes.len()];
        for &(axis, value) in start {
            row[axis] = Some(value);
        }
        let mut open: Vec<usize> = (0..row.len()).filter(|&axis| row[axis].is_none()).collect();
        self.random.shuffle(&mut open);
        for axis in open {
            let gain = |value| {
                let mut known = row.clone();
                known[axis] = Some(value);
                partial_tuples(&known, self.strength, axis)
                    .iter()
                    .filter(|tuple| self.uncovered.contains(*tuple))
                    .count()
            };
            let gains: Vec<usize> = (0..self.sizes[axis]).map(gain).collect();
            let most = gains.iter().copied().max().unwrap_or(0);
            let best: Vec<usize> = (0..gains.len())
                .filter(|&value| gains[value] == most)
                .collect();
            let pick = self.random.below(best.len() as u32) as usize;
            row[axis] = Some(best.get(pick).copied().unwrap_or(0));
        }
        row.into_iter().flatten().collect()
    }
}

/// Every row, by ascending value of the first axis, then the second, ...
fn product(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..sizes.iter().product::<usize>()).map(|index| {
        let mut rest = index;
        let mut row: Vec<usize> = sizes
            .iter()
            .rev()
            .map(|size| {
                let value = rest % size;
                rest /= size;
                value
            })
            .collect();
        row.reverse();
        row
    })
}

fn tuples(row: &[usize], strength: usize) -> Vec<Tuple> {
    let row: Tuple = row.iter().copied().enumerate().collect();
    choose(&row, strength)
}

/// The tuples of the known axes that contain `axis`.
fn partial_tuples(row: &[Option<usize>], strength: usize, axis: usize) -> Vec<Tuple> {
    let own = row[axis].map(|value| (axis, value));
    let others: Tuple = row
        .iter()
        .enumerate()
        .filter(|&(other, _)| other != axis)
        .filter_map(|(other, value)| value.map(|value| (other, value)))
        .collect();
    let mut all = choose(&others, strength - 1);
    for tuple in &mut all {
        tuple.extend(own);
        tuple.sort_unstable();
    }
    all
}

/// Every choice of `count` of `items`, in order.
fn choose(items: &[(usize, usize)], count: usize) -> Vec<Tuple> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, &first) in items.iter().enumerate() {
        for mut rest in choose(&items[index + 1..], count - 1) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::axes;

    fn sizes() -> Vec<usize> {
        axes().iter().map(|axis| axis.values).collect()
    }

    /// Counts by nested loops, sharing no code with the construction.
    fn covers_every_triple(rows: &[Vec<usize>], sizes: &[usize]) -> bool {
        for a in 0..sizes.len() {
            for b in a + 1..sizes.len() {
                for c in b + 1..sizes.len() {
                    let mut seen = vec![false; sizes[a] * sizes[b] * sizes[c]];
                    for row in rows {
                        seen[(row[a] * sizes[b] + row[b]) * sizes[c] + row[c]] = true;
                    }
                    if seen.contains(&false) {
                        return false;
                    }
                }
            }
        }
        true
    }

    #[test]
    fn three_wise_covers_every_triple_in_about_450_rows() {
        let array = covering_array(&sizes(), Strength::ThreeWise, &|_| true, Seed(1));
        assert!(covers_every_triple(&array.rows, &sizes()));
        assert!(
            (420..=520).contains(&array.rows.len()),
            "{} rows",
            array.rows.len()
        );
        assert_eq!(array.covered_by(&array.rows), array.coverable());
        assert!(!covers_every_triple(&array.rows[1..], &sizes()));
        assert!(array.covered_by(&array.rows[1..]) < array.coverable());
    }

    #[test]
    fn pairwise_needs_little_more_than_the_two_widest_axes() {
        let array = covering_array(&sizes(), Strength::Pairwise, &|_| true, Seed(1));
        assert_eq!(array.covered_by(&array.rows), array.coverable());
        assert!(
            (84..=96).contains(&array.rows.len()),
            "{} rows",
            array.rows.len()
        );
    }

    #[test]
    fn illegal_rows_are_never_chosen_and_what_only_they_have_is_not_coverable() {
        let legal = |row: &[usize]| row[0] != 1 || row[1] == 0;
        let array = covering_array(&[2, 3, 2], Strength::Pairwise, &legal, Seed(4));
        assert!(array.rows.iter().all(|row| legal(row)));
        // Without (1, 1) and (1, 2) of the first two axes.
        assert_eq!(array.coverable(), 2 * 3 + 2 * 2 + 3 * 2 - 2);
        assert_eq!(array.covered_by(&array.rows), array.coverable());
    }

    #[test]
    fn a_seed_gives_the_same_rows_again() {
        let make = |seed| covering_array(&[4, 4, 3, 2], Strength::Pairwise, &|_| true, seed).rows;
        assert_eq!(make(Seed(1)), make(Seed(1)));
        assert_ne!(make(Seed(1)), make(Seed(2)));
    }
}
