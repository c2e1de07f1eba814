//! What was written, held against the reference.

use super::run::{GUARD, LSE_POISON, POISON, Written};
use super::verdict::Failure;
use crate::case::{Case, element};
use crate::reference::{attend, compare, largest_lse_error};
use pagesmith_spec::Lse;

/// How much further than the whole output the row of one token may be off. A row of few heads scatters: its
/// rounding errors are not many enough to average out. A fault in one row is far above.
pub(super) const ROW_SLACK: f64 = 2.0;
/// Largest error of a log-sum-exp, of 1 or of its magnitude where that is larger. Approximate exponentials
/// and f32 sums cost about 1e-6.
const LSE_TOLERANCE: f64 = 1e-4;

/// What one case says about a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Relative L2 error of the whole output.
    pub relative_l2: f64,
    /// Largest relative L2 error of the row of one token.
    pub row_l2: f64,
    /// Largest error of the log-sum-exp.
    pub lse_error: f64,
    /// What is wrong.
    pub failures: Vec<Failure>,
}

/// Judges what a case's launch wrote.
pub fn judge(case: &Case, written: &Written) -> Judgement {
    let mut judgement = Judgement::default();
    let right = attend(case);
    let tolerance = case.kernel.query.tolerance();
    let row = case.q_heads() as usize * case.head_dim();
    match out(case, &written.out) {
        Err(failure) => judgement.failures.push(failure),
        Ok(out) => match compare(&out, &right.out, row) {
            Err(difference) => judgement.failures.push(Failure::Element {
                tensor: "out",
                difference,
            }),
            Ok(comparison) => {
                judgement.relative_l2 = comparison.relative_l2;
                judgement.row_l2 = comparison.worst_row_l2;
                if comparison.relative_l2 > tolerance
                    || comparison.worst_row_l2 > ROW_SLACK * tolerance
                {
                    judgement.failures.push(Failure::Inaccurate {
                        comparison,
                        tolerance,
                    });
                }
            }
        },
    }
    if case.kernel.lse == Lse::Written {
        match lse(&written.lse) {
            Err(failure) => judgement.failures.push(failure),
            Ok(lse) => match largest_lse_error(&lse, &right.lse, case.q_heads() as usize) {
                Err(difference) => judgement.failures.push(Failure::Element {
                    tensor: "lse",
                    difference,
                }),
                Ok(error) => {
                    judgement.lse_error = error;
                    if error > LSE_TOLERANCE {
                        judgement.failures.push(Failure::Lse {
                            error,
                            tolerance: LSE_TOLERANCE,
                        });
                    }
                }
            },
        }
    }
    judgement
}

/// The rows of the output, after making sure that nothing else was written.
fn out(case: &Case, bytes: &[u8]) -> Result<Vec<f64>, Failure> {
    let words: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|word| u16::from_le_bytes([word[0], word[1]]))
        .collect();
    let dim = case.head_dim();
    let mut rows = Vec::new();
    let mut end = 0;
    for token in 0..case.lengths.len() {
        for head in 0..case.q_heads() as usize {
            let start = GUARD / 2 + token * case.out_strides.token + head * case.out_strides.head;
            untouched("out", &words[end..start], end, POISON)?;
            end = start + dim;
            rows.extend_from_slice(&words[start..end]);
        }
    }
    untouched("out", &words[end..], end, POISON)?;
    written("out", &rows, POISON)?;
    let bytes: Vec<u8> = rows.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(element::decode_all(case.kernel.query.as_kv(), &bytes))
}

fn lse(bytes: &[u8]) -> Result<Vec<f64>, Failure> {
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let (guard, rest) = words.split_at(GUARD / 4);
    let (live, after) = rest.split_at(rest.len() - GUARD / 4);
    untouched("lse", guard, 0, LSE_POISON)?;
    untouched("lse", after, guard.len() + live.len(), LSE_POISON)?;
    written("lse", live, LSE_POISON)?;
    Ok(live
        .iter()
        .map(|&bits| f64::from(f32::from_bits(bits)))
        .collect())
}

fn untouched<T: PartialEq + Copy>(
    tensor: &'static str,
    words: &[T],
    start: usize,
    poison: T,
) -> Result<(), Failure> {
    match words.iter().position(|&word| word != poison) {
        None => Ok(()),
        Some(at) => Err(Failure::Stray {
            tensor,
            element: (start + at) as i64 - (GUARD / size_of::<T>()) as i64,
        }),
    }
}

fn written<T: PartialEq + Copy>(
    tensor: &'static str,
    words: &[T],
    poison: T,
) -> Result<(), Failure> {
    let count = words.iter().filter(|&&word| word == poison).count();
    match words.iter().position(|&word| word == poison) {
        None => Ok(()),
        Some(first) => Err(Failure::Unwritten {
            tensor,
            first,
            count,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CaseSpec;
    use crate::case::tests::kernel;
    use crate::{Seed, case::Strides};
    use half::f16;
    use pagesmith_spec::KvDtype;

    fn case() -> Case {
        let spec = CaseSpec {
            kv_heads: 2,
            strides: Strides::Padded,
            ..CaseSpec::of_lengths("t", vec![0, 30, 3])
        };
        Case::generate(&kernel(KvDtype::F16), &spec, Seed(11))
    }

    /// What a perfect kernel writes.
    fn perfect(case: &Case) -> Written {
        let right = attend(case);
        let elements = case.row_extent(case.out_strides) + GUARD;
        let mut out = POISON.to_le_bytes().repeat(elements);
        let heads = case.q_heads() as usize;
        for (index, value) in right.out.iter().enumerate() {
            let (row, element) = (index / case.head_dim(), index % case.head_dim());
            let at = (row / heads) * case.out_strides.token + (row % heads) * case.out_strides.head;
            let at = GUARD + 2 * (at + element);
            out[at..at + 2].copy_from_slice(&f16::from_f64(*value).to_le_bytes());
        }
        let guard = LSE_POISON.to_le_bytes().repeat(GUARD / 4);
        let mut lse = guard.clone();
        lse.extend(right.lse.iter().flat_map(|&lse| (lse as f32).to_le_bytes()));
        lse.extend(guard);
        Written { out, lse }
    }

    #[test]
    fn a_perfect_result_passes_with_the_error_of_rounding() {
        let case = case();
        let judgement = judge(&case, &perfect(&case));
        assert_eq!(judgement.failures, []);
        assert!(judgement.relative_l2 > 1e-5 && judgement.relative_l2 < 4e-4);
        assert!(judgement.lse_error < 1e-6);
    }

    /// What a judgement says when one thing is broken.
    fn failures(break_one: impl Fn(&Case, &mut Written)) -> Vec<Failure> {
        let case = case();
        let mut written = perfect(&case);
        break_one(&case, &mut written);
        judge(&case, &written).failures
    }

    #[test]
    fn a_write_outside_the_rows_is_seen_wherever_it_lands() {
        let last = |written: &Written| written.out.len() - 1;
        for at in [0, GUARD - 1] {
            let failures = failures(|_, written| written.out[at] ^= 1);
            assert!(matches!(
                failures[..],
                [Failure::Stray { tensor: "out", .. }]
            ));
        }
        let failures_after = failures(|_, written| {
            let at = last(written);
            written.out[at] ^= 1;
        });
        assert!(matches!(failures_after[..], [Failure::Stray { .. }]));
        // The gap after the first head.
        let gap = failures(|case, written| written.out[GUARD + 2 * case.head_dim()] ^= 1);
        assert!(
            matches!(
                gap[..],
                [Failure::Stray {
                    tensor: "out",
                    element: 64
                }]
            ),
            "{gap:?}"
        );
        let lse = failures(|_, written| written.lse[GUARD - 4] ^= 1);
        assert!(
            matches!(
                lse[..],
                [Failure::Stray {
                    tensor: "lse",
                    element: -1
                }]
            ),
            "{lse:?}"
        );
    }

    #[test]
    fn an_element_that_was_not_written_is_called_that() {
        let failures = failures(|_, written| {
            written.out[GUARD..GUARD + 2].copy_from_slice(&POISON.to_le_bytes());
            written.lse[GUARD..GUARD + 4].copy_from_slice(&LSE_POISON.to_le_bytes());
        });
        let unwritten = |tensor| Failure::Unwritten {
            tensor,
            first: 0,
            count: 1,
        };
        assert_eq!(failures, [unwritten("out"), unwritten("lse")]);
    }

    #[test]
    fn nan_wrong_numbers_and_a_wrong_lse_are_each_named() {
        let at = |case: &Case| GUARD + 2 * case.out_strides.token;
        let nan = failures(|case, written| {
            written.out[at(case)..][..2].copy_from_slice(&f16::NAN.to_le_bytes());
        });
        assert!(matches!(nan[..], [Failure::Element { tensor: "out", .. }]));
        let wrong = failures(|case, written| {
            written.out[at(case)..][..2].copy_from_slice(&f16::ONE.to_le_bytes());
        });
        assert!(matches!(wrong[..], [Failure::Inaccurate { .. }]));
        let lse = failures(|_, written| {
            written.lse[GUARD + 4 * 6..][..4].copy_from_slice(&1f32.to_le_bytes());
        });
        assert!(matches!(lse[..], [Failure::Lse { .. }]));
    }
}
