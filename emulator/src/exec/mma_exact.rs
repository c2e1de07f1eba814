//! `mma` as the tensor cores of the A100 add (arXiv 2511.10909, section on the Ampere FDPA).
//!
//! A k16 instruction is two steps of eight k. In each, the eight products are exact; they and the accumulator are cut,
//! toward zero, to 24 fractional bits below the largest exponent among them; their sum is exact; and it is rounded toward
//! zero to f32. The second step accumulates onto the first.

use super::lanes::Words;
use super::matrix::Fragments;
use super::numeric::{self as n, NAN_F32};

/// Fractional bits kept below the largest exponent.
const FRACTION: i32 = 24;

/// D = A B + C.
pub(super) fn mma_exact(w: &mut [Words], operands: Fragments) {
    let Fragments {
        bf16,
        k16,
        d,
        a,
        b,
        c,
    } = operands;
    let decode = |bits: u32| {
        f32::from_bits(if bf16 {
            n::bf16_to_f32(bits & 0xFFFF)
        } else {
            n::f16_to_f32(bits & 0xFFFF)
        })
    };
    // With g = lane / 4 and t = lane % 4: A has row g (+8 for odd registers) and k 2t, 2t+1 (+8 for the later two);
    // B has column g and k 2t, 2t+1 (+8 for the later one).
    let half = |word: u32, k: usize| decode(word >> (16 * (k % 2)));
    let mut out = [[0u32; 32]; 4];
    for lane in 0..32 {
        for (i, plane) in out.iter_mut().enumerate() {
            let (row, column) = (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
            let mut sum = w[c[i] as usize].0[lane];
            for step in 0..if k16 { 2 } else { 1 } {
                let mut products = [(0f32, 0f32); 8];
                for (k, product) in products.iter_mut().enumerate() {
                    let from_a = w[a[2 * step + row / 8] as usize].0[row % 8 * 4 + k / 2];
                    let from_b = w[b[step] as usize].0[column * 4 + k / 2];
                    *product = (half(from_a, k), half(from_b, k));
                }
                sum = dot(&products, f32::from_bits(sum));
            }
            plane[lane] = sum;
        }
    }
    for (reg, plane) in d.into_iter().zip(out) {
        w[reg as usize].0 = plane;
    }
}

/// A finite value as `mantissa * 2^exponent`.
fn split(value: f64) -> (i128, i32) {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i32;
    let fraction = i128::from(bits & ((1 << 52) - 1));
    // Products of f16 and bf16 values and f32 accumulators are normal in f64, or zero.
    let mantissa = if exponent == 0 { 0 } else { fraction | 1 << 52 };
    (
        if value.is_sign_negative() {
            -mantissa
        } else {
            mantissa
        },
        exponent - 1075,
    )
}

/// One step; gives the bits of the new accumulator.
fn dot(products: &[(f32, f32); 8], accumulator: f32) -> u32 {
    let mut terms = [f64::from(accumulator); 9];
    for (term, (a, b)) in terms.iter_mut().zip(products) {
        *term = f64::from(*a) * f64::from(*b);
    }
    // Infinities and NaN need no alignment: f64 gives what IEEE demands of them.
    if terms.iter().any(|term| !term.is_finite()) {
        let sum: f64 = terms.iter().sum();
        return if sum.is_nan() {
            NAN_F32
        } else {
            (sum as f32).to_bits()
        };
    }
    let exponent = |value: f64| {
        if value == 0.0 {
            i32::MIN
        } else {
            split(value).1 + 52
        }
    };
    let largest = terms
        .iter()
        .map(|term| exponent(*term))
        .max()
        .unwrap_or(i32::MIN);
    if largest == i32::MIN {
        // Zeros only: negative when all are.
        return if terms.iter().all(|term| term.is_sign_negative()) {
            0x8000_0000
        } else {
            0
        };
    }
    let unit = largest - FRACTION;
    let sum: i128 = terms
        .iter()
        .map(|term| {
            let (mantissa, exponent) = split(*term);
            let shift = unit - exponent;
            // Dividing cuts toward zero, where a shift would round down.
            if shift >= 64 {
                0
            } else {
                mantissa / (1 << shift)
            }
        })
        .sum();
    toward_zero(sum, unit)
}

/// `sum * 2^unit` rounded toward zero to f32.
fn toward_zero(sum: i128, unit: i32) -> u32 {
    let sign = if sum < 0 { 0x8000_0000 } else { 0 };
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let top = 127 - magnitude.leading_zeros() as i32;
    let exponent = top + unit;
    if exponent > 127 {
        return sign | 0x7F80_0000;
    }
    // The last bit that f32 has at this exponent.
    let last = (exponent - 23).max(-149);
    let drop = last - unit;
    let mantissa = if drop >= 128 {
        0
    } else if drop >= 0 {
        magnitude >> drop
    } else {
        magnitude << -drop
    } as u32;
    if exponent < -126 {
        sign | mantissa
    } else {
        sign | ((exponent + 127) as u32) << 23 | mantissa & 0x7F_FFFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(products: &[(f32, f32)], accumulator: f32) -> f32 {
        let mut all = [(0.0, 0.0); 8];
        all[..products.len()].copy_from_slice(products);
        f32::from_bits(dot(&all, accumulator))
    }

    #[test]
    fn small_sums_are_exact() {
        assert_eq!(step(&[(1.5, 2.0), (3.0, -1.0)], 0.25), 0.25);
        assert_eq!(step(&[(1.0, 1.0); 8], -8.0), 0.0);
        assert_eq!(step(&[], 0.1), 0.1);
    }

    #[test]
    fn the_sum_is_rounded_toward_zero() {
        let ulp = 2f32.powi(-23);
        // 1 + 0.75 ulp would round up to nearest.
        assert_eq!(step(&[(0.75 * 2f32.powi(-20), 2f32.powi(-3))], 1.0), 1.0);
        assert_eq!(step(&[(-0.75 * 2f32.powi(-20), 2f32.powi(-3))], -1.0), -1.0);
        assert_eq!(step(&[(1.0, 1.0), (1.0, ulp)], 0.0), 1.0 + ulp);
    }

    #[test]
    fn terms_are_cut_before_they_are_summed() {
        // Each of the seven terms is below 2^-24 of the largest and vanishes, although together they would count.
        let tiny = (2f32.powi(-13), 2f32.powi(-12));
        assert_eq!(step(&[tiny; 7], 1.0), 1.0);
        // At 2^-24 they are kept: seven make 3.5 ulp, cut to 3.
        let kept = (2f32.powi(-12), 2f32.powi(-12));
        assert_eq!(step(&[kept; 7], 1.0), 1.0 + 3.0 * 2f32.powi(-23));
    }

    #[test]
    fn special_values_follow_ieee() {
        assert_eq!(step(&[(f32::INFINITY, 1.0)], 1.0), f32::INFINITY);
        assert!(step(&[(f32::INFINITY, 0.0)], 1.0).is_nan());
        assert!(step(&[(f32::INFINITY, 1.0)], f32::NEG_INFINITY).is_nan());
        assert_eq!(step(&[(3e38, 3e38)], 0.0), f32::INFINITY);
        assert_eq!(step(&[], 1e-40), 1e-40);
    }
}
