//! How far a result is from the reference.

use serde::Serialize;

/// How far a result is from the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `‖out − reference‖ / ‖reference‖` over all rows.
    pub relative_l2: f64,
    /// The row that is furthest off.
    pub worst_row: usize,
    /// The same quotient of that row alone. A fault in one short sequence vanishes in the whole.
    pub worst_row_l2: f64,
}

/// An element that no tolerance excuses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("element {element} of row {row} is {found}, the reference is {expected}")]
pub struct Difference {
    /// The row.
    pub row: usize,
    /// The element in the row.
    pub element: usize,
    /// What was written.
    pub found: f64,
    /// What is right.
    pub expected: f64,
}

/// Compares row by row, `row` elements each.
///
/// # Errors
/// The first element that is NaN or infinite where the reference is a number, a number where the
/// reference is NaN, or anything but 0 in a row that must be 0.
///
/// # Panics
/// Never for slices of equal length; shorter ones are compared as far as both go.
pub fn compare(out: &[f64], reference: &[f64], row: usize) -> Result<Comparison, Difference> {
    let mut comparison = Comparison {
        relative_l2: 0.0,
        worst_row: 0,
        worst_row_l2: 0.0,
    };
    let (mut all_error, mut all_norm) = (0.0, 0.0);
    let rows = out.chunks(row.max(1)).zip(reference.chunks(row.max(1)));
    for (index, (out, reference)) in rows.enumerate() {
        let (mut error, mut norm) = (0.0, 0.0);
        let zero = reference.iter().all(|&expected| expected == 0.0);
        for (element, (&found, &expected)) in out.iter().zip(reference).enumerate() {
            let agree = if expected.is_nan() {
                found.is_nan()
            } else {
                found.is_finite() && !(zero && found != 0.0)
            };
            if !agree {
                return Err(Difference {
                    row: index,
                    element,
                    found,
                    expected,
                });
            }
            if !expected.is_nan() {
                error += (found - expected) * (found - expected);
                norm += expected * expected;
            }
        }
        all_error += error;
        all_norm += norm;
        let quotient = quotient(error, norm);
        if quotient > comparison.worst_row_l2 {
            comparison.worst_row = index;
            comparison.worst_row_l2 = quotient;
        }
    }
    comparison.relative_l2 = quotient(all_error, all_norm);
    Ok(comparison)
}

fn quotient(error: f64, norm: f64) -> f64 {
    if error == 0.0 {
        0.0
    } else {
        (error / norm).sqrt()
    }
}

/// The largest `|lse − reference| / max(1, |reference|)`.
///
/// The log-sum-exp weighs a partial result by `exp`, so that its absolute error counts; at large
/// magnitudes an f32 cannot hold more than its relative one.
///
/// # Errors
/// The first element that is NaN or infinite where the reference is not, or the other way round.
pub fn largest_lse_error(lse: &[f64], reference: &[f64], row: usize) -> Result<f64, Difference> {
    let mut largest = 0.0f64;
    for (index, (&found, &expected)) in lse.iter().zip(reference).enumerate() {
        let agree = if expected.is_finite() {
            found.is_finite()
        } else {
            found == expected || (found.is_nan() && expected.is_nan())
        };
        if !agree {
            return Err(Difference {
                row: index / row.max(1),
                element: index % row.max(1),
                found,
                expected,
            });
        }
        if expected.is_finite() {
            largest = largest.max((found - expected).abs() / expected.abs().max(1.0));
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_short_row_is_seen_although_the_whole_hides_it() {
        let mut reference = vec![1000.0; 1000];
        reference.extend([0.01; 10]);
        let mut out = reference.clone();
        out[1005] = 0.02;
        let comparison = compare(&out, &reference, 10).unwrap();
        assert!(comparison.relative_l2 < 1e-6);
        assert_eq!(comparison.worst_row, 100);
        assert!(comparison.worst_row_l2 > 0.3);
    }

    #[test]
    fn nan_and_infinity_are_never_within_a_tolerance() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let difference = compare(&[1.0, bad], &[1.0, 1.0], 1).unwrap_err();
            assert_eq!((difference.row, difference.element), (1, 0));
        }
        assert!(compare(&[1.0], &[f64::NAN], 1).is_err());
        assert!(compare(&[f64::NAN, 2.0], &[f64::NAN, 2.0], 2).is_ok());
    }

    #[test]
    fn a_row_that_must_be_zero_has_no_tolerance() {
        assert!(compare(&[1e-30], &[0.0], 1).is_err());
        assert_eq!(compare(&[-0.0], &[0.0], 1).unwrap().worst_row_l2, 0.0);
    }

    #[test]
    fn the_lse_of_an_empty_sequence_must_be_minus_infinity() {
        let empty = f64::NEG_INFINITY;
        assert_eq!(largest_lse_error(&[empty], &[empty], 1), Ok(0.0));
        for bad in [0.0, f64::INFINITY, f64::NAN, -1e30] {
            assert!(largest_lse_error(&[bad], &[empty], 1).is_err(), "{bad}");
        }
    }
}
