//! Covering arrays: few rows in which every combination of values of any `t` axes occurs.
//!
//! Greedy, one row at a time (after AETG; Cohen, Dalal, Fredman, Patton 1997): a row starts from a tuple
//! that is not covered yet and takes, axis by axis in random order, the value that covers most; of several
//! such rows the best is kept.

use crate::random::{Random, Seed};
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

/// Every tuple of values of every choice of `strength` axes, numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tuples {
    sizes: Vec<usize>,
    /// Choices of axes, each with the number of its first tuple.
    choices: Vec<(Vec<usize>, usize)>,
    count: usize,
}

impl Tuples {
    fn new(sizes: &[usize], strength: usize) -> Self {
        let mut count = 0;
        let axes: Vec<usize> = (0..sizes.len()).collect();
        let choices = choose(&axes, strength)
            .into_iter()
            .map(|axes| {
                let first = count;
                count += axes.iter().map(|&axis| sizes[axis]).product::<usize>();
                (axes, first)
            })
            .collect();
        Tuples {
            sizes: sizes.to_vec(),
            choices,
            count,
        }
    }

    /// Numbers of the tuples of a row; those with an open axis are left out.
    fn of<'a>(&'a self, row: &'a [Option<usize>]) -> impl Iterator<Item = usize> + 'a {
        self.choices
            .iter()
            .filter_map(|choice| self.number(choice, row))
    }

    fn number(&self, (axes, first): &(Vec<usize>, usize), row: &[Option<usize>]) -> Option<usize> {
        let within = axes.iter().try_fold(0, |index, &axis| {
            row[axis].map(|value| index * self.sizes[axis] + value)
        });
        within.map(|within| first + within)
    }

    /// Numbers of those of them that contain `axis`.
    fn with<'a>(
        &'a self,
        row: &'a [Option<usize>],
        axis: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        self.choices
            .iter()
            .filter(move |(axes, _)| axes.contains(&axis))
            .filter_map(|choice| self.number(choice, row))
    }

    /// The row of which only the tuple of that number is known.
    fn row(&self, number: usize) -> Vec<Option<usize>> {
        let mut row = vec![None; self.sizes.len()];
        let at = self.choices.partition_point(|(_, first)| *first <= number);
        if let Some((axes, first)) = at.checked_sub(1).and_then(|at| self.choices.get(at)) {
            let mut rest = number - first;
            for &axis in axes.iter().rev() {
                row[axis] = Some(rest % self.sizes[axis]);
                rest /= self.sizes[axis];
            }
        }
        row
    }
}

/// Rows, and the tuples that they were made to cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveringArray {
    /// One value index for each axis.
    pub rows: Vec<Vec<usize>>,
    tuples: Tuples,
    coverable: Vec<bool>,
}

impl CoveringArray {
    /// Tuples that some legal row has.
    pub fn coverable(&self) -> usize {
        self.coverable
            .iter()
            .filter(|&&coverable| coverable)
            .count()
    }

    /// Coverable tuples that `rows` cover; all of [`CoveringArray::rows`] cover all.
    pub fn covered_by<'a>(&self, rows: impl IntoIterator<Item = &'a Vec<usize>>) -> usize {
        let mut open = self.coverable.clone();
        for row in rows {
            let row: Vec<Option<usize>> = row.iter().copied().map(Some).collect();
            self.tuples.of(&row).for_each(|tuple| open[tuple] = false);
        }
        self.coverable() - open.iter().filter(|&&open| open).count()
    }
}

/// Candidates for each row.
const CANDIDATES: usize = 24;

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
    let tuples = Tuples::new(sizes, strength.axes().min(sizes.len()));
    let product: Vec<Vec<usize>> = product(sizes).filter(|row| legal(row)).collect();
    let mut coverable = vec![false; tuples.count];
    for row in &product {
        let row: Vec<Option<usize>> = row.iter().copied().map(Some).collect();
        tuples.of(&row).for_each(|tuple| coverable[tuple] = true);
    }
    // The widest axes' tuples need the most rows and must be in a row each anyway.
    let mut starts: Vec<usize> = (0..tuples.count)
        .filter(|&tuple| coverable[tuple])
        .collect();
    let width = |tuple: usize| -> usize {
        let row = tuples.row(tuple);
        let known = sizes.iter().zip(row).filter(|(_, value)| value.is_some());
        known.map(|(size, _)| size).product()
    };
    starts.sort_by_cached_key(|&tuple| (std::cmp::Reverse(width(tuple)), tuple));
    let mut greedy = Greedy {
        tuples: &tuples,
        product: &product,
        open: coverable.clone(),
        random: Random::new(seed),
    };
    let mut rows = Vec::new();
    for start in starts {
        if greedy.open[start]
            && let Some(row) = greedy.best_row(start)
        {
            greedy.cover(&row);
            rows.push(row);
        }
    }
    CoveringArray {
        rows,
        tuples,
        coverable,
    }
}

struct Greedy<'a> {
    tuples: &'a Tuples,
    /// Every legal row.
    product: &'a [Vec<usize>],
    /// Tuples that are not covered yet.
    open: Vec<bool>,
    random: Random,
}

impl Greedy<'_> {
    fn cover(&mut self, row: &[usize]) {
        let row: Vec<Option<usize>> = row.iter().copied().map(Some).collect();
        self.tuples
            .of(&row)
            .for_each(|tuple| self.open[tuple] = false);
    }

    fn best_row(&mut self, start: usize) -> Option<Vec<usize>> {
        let mut best: Option<(usize, Vec<usize>)> = None;
        for _ in 0..CANDIDATES {
            let grown = self.grow(start);
            let gain = self
                .tuples
                .of(&grown)
                .filter(|&tuple| self.open[tuple])
                .count();
            let row: Vec<usize> = grown.into_iter().flatten().collect();
            let legal = self.product.binary_search(&row).is_ok();
            if legal && best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, row));
            }
        }
        // Greedy growth may end in illegal rows only; some legal row has the tuple.
        let start = self.tuples.row(start);
        best.map(|(_, row)| row).or_else(|| {
            self.product
                .iter()
                .find(|row| {
                    row.iter()
                        .zip(&start)
                        .all(|(&a, b)| b.is_none_or(|b| a == b))
                })
                .cloned()
        })
    }

    /// A row with the tuple `start` in it; may be illegal.
    fn grow(&mut self, start: usize) -> Vec<Option<usize>> {
        let mut row = self.tuples.row(start);
        let mut axes: Vec<usize> = (0..row.len()).filter(|&axis| row[axis].is_none()).collect();
        self.random.shuffle(&mut axes);
        for axis in axes {
            let mut best = (0, 0, 0);
            for value in 0..self.tuples.sizes[axis] {
                row[axis] = Some(value);
                let gain = self
                    .tuples
                    .with(&row, axis)
                    .filter(|&tuple| self.open[tuple])
                    .count();
                // Ties are broken at random, so that candidates differ.
                let this = (gain, self.random.bits(), value);
                if this.0 > best.0 || (this.0 == best.0 && this.1 >= best.1) {
                    best = this;
                }
            }
            row[axis] = Some(best.2);
        }
        row
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

/// Every choice of `count` of `items`, in order.
fn choose(items: &[usize], count: usize) -> Vec<Vec<usize>> {
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
