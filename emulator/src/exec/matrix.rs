//! Matrix instructions on fragments.
//!
//! With g = lane / 4 and t = lane % 4, a fragment register of a 16-bit 8x8 matrix holds row g, columns 2t and 2t+1:
//! its plane of 32 lanes is the matrix in row-major order.

use super::lanes::{Words, multiversion};
use super::numeric as n;
use crate::lower::op::Reg;

/// The operands of an `mma`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragments {
    pub(super) bf16: bool,
    /// m16n8k16, else m16n8k8, which uses the first half of A and B.
    pub(super) k16: bool,
    pub(super) d: [Reg; 4],
    pub(super) a: [Reg; 4],
    pub(super) b: [Reg; 2],
    pub(super) c: [Reg; 4],
}

/// D = A B + C of `mma.m16n8k16` and `mma.m16n8k8` with f32 accumulators.
///
/// Each element is `fma(a[k], b[k], acc)` with k ascending from the accumulator.
pub(super) fn mma<const AVX2: bool>(w: &mut [Words], operands: Fragments) {
    let Fragments {
        bf16,
        k16,
        d,
        a,
        b,
        c,
    } = operands;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // SAFETY: `AVX2` is true only behind `super::has_avx2`, which asked this CPU for the features.
        return unsafe {
            match (bf16, k16) {
                (true, true) => super::mma_avx2::product::<true, 2>(w, d, a, b, c),
                (true, false) => super::mma_avx2::product::<true, 1>(w, d, a, b, c),
                (false, true) => super::mma_avx2::product::<false, 2>(w, d, a, b, c),
                (false, false) => super::mma_avx2::product::<false, 1>(w, d, a, b, c),
            }
        };
    }
    match (bf16, k16) {
        (true, true) => product::<true, 2>(w, d, a, b, c),
        (true, false) => product::<true, 1>(w, d, a, b, c),
        (false, true) => product::<false, 2>(w, d, a, b, c),
        (false, false) => product::<false, 1>(w, d, a, b, c),
    }
}

multiversion! {
    /// The transpose of an 8x8 matrix of 16-bit values, as `movmatrix` and `ldmatrix.trans` give it.
    transpose(plane: &[u32; 32]) -> [u32; 32] = transpose_body
}

/// Eight 16-bit values of a matrix row to f32.
#[inline(always)]
fn row8<const BF16: bool>(words: &[u32; 4]) -> [f32; 8] {
    let mut out = [0f32; 8];
    for i in 0..8 {
        let half = (words[i / 2] >> (16 * (i % 2))) & 0xFFFF;
        out[i] = f32::from_bits(if BF16 {
            n::bf16_to_f32(half)
        } else {
            n::f16_to_f32(half)
        });
    }
    out
}

#[inline(always)]
fn row(plane: &[u32; 32], g: usize) -> &[u32; 4] {
    let (rows, _) = plane.as_chunks::<4>();
    &rows[g]
}

/// `STEPS` slices of eight k.
fn product<const BF16: bool, const STEPS: usize>(
    w: &mut [Words],
    d: [Reg; 4],
    a: [Reg; 4],
    b: [Reg; 2],
    c: [Reg; 4],
) {
    // B by k, its columns in the order 0 2 4 6 1 3 5 7: then a row of C is two runs of four lanes.
    let mut by_k = [[0f32; 8]; 16];
    for step in 0..STEPS {
        let plane = &w[b[step] as usize].0;
        for column in 0..8 {
            let values = row8::<BF16>(row(plane, column));
            let at = column / 2 + column % 2 * 4;
            for (k, value) in values.into_iter().enumerate() {
                by_k[step * 8 + k][at] = value;
            }
        }
    }
    let mut out = [[0u32; 32]; 4];
    for half in 0..2 {
        let (even, odd) = (w[c[2 * half] as usize].0, w[c[2 * half + 1] as usize].0);
        for g in 0..8 {
            let mut acc = [0f32; 8];
            for t in 0..4 {
                acc[t] = f32::from_bits(even[4 * g + t]);
                acc[4 + t] = f32::from_bits(odd[4 * g + t]);
            }
            for step in 0..STEPS {
                let values = row8::<BF16>(row(&w[a[2 * step + half] as usize].0, g));
                for k in 0..8 {
                    for column in 0..8 {
                        acc[column] =
                            n::fma_portable(values[k], by_k[step * 8 + k][column], acc[column]);
                    }
                }
            }
            for t in 0..4 {
                out[2 * half][4 * g + t] = n::finish(acc[t], false, false);
                out[2 * half + 1][4 * g + t] = n::finish(acc[4 + t], false, false);
            }
        }
    }
    for (reg, plane) in d.into_iter().zip(out) {
        w[reg as usize].0 = plane;
    }
}

#[inline(always)]
fn transpose_body<const AVX2: bool>(plane: &[u32; 32]) -> [u32; 32] {
    let (rows, _) = plane.as_chunks::<4>();
    let mut out = [0; 32];
    // Two rows at a time: their words interleave into pairs of one column.
    for t in 0..4 {
        let (upper, lower) = (rows[2 * t], rows[2 * t + 1]);
        for word in 0..4 {
            out[8 * word + t] = upper[word] & 0xFFFF | lower[word] << 16;
            out[8 * word + 4 + t] = upper[word] >> 16 | lower[word] & 0xFFFF_0000;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    fn random(seed: u64) -> impl FnMut() -> u32 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        }
    }

    fn operands(bf16: bool, k16: bool) -> Fragments {
        Fragments {
            bf16,
            k16,
            d: [10, 11, 12, 13],
            a: [0, 1, 2, 3],
            b: [4, 5],
            c: [6, 7, 8, 9],
        }
    }

    /// Fragments of random matrices, with the matrices themselves.
    fn fragments(
        is_bf16: bool,
        k16: bool,
        seed: u64,
    ) -> (Vec<Words>, Vec<f64>, Vec<f64>, Vec<f64>) {
        let mut next = random(seed);
        let mut w = vec![Words::ZERO; 14];
        let (mut a, mut b, mut c) = (vec![0f64; 256], vec![0f64; 128], vec![0f64; 128]);
        let mut value = || (next() % 2001) as f32 / 1000.0 - 1.0;
        let encode = |v: f32| {
            u32::from(if is_bf16 {
                bf16::from_f32(v).to_bits()
            } else {
                f16::from_f32(v).to_bits()
            })
        };
        let decode = |bits: u32| {
            f64::from(if is_bf16 {
                bf16::from_bits(bits as u16).to_f32()
            } else {
                f16::from_bits(bits as u16).to_f32()
            })
        };
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            for i in 0..if k16 { 8 } else { 4 } {
                let row = if k16 {
                    g + 8 * (i / 2 % 2)
                } else {
                    g + 8 * (i / 2)
                };
                let column = 2 * t + i % 2 + if i >= 4 { 8 } else { 0 };
                let bits = encode(value());
                a[row * 16 + column] = decode(bits);
                w[i / 2].0[lane] |= bits << (16 * (i % 2));
            }
            for i in 0..if k16 { 4 } else { 2 } {
                let row = 2 * t + i % 2 + if i >= 2 { 8 } else { 0 };
                let bits = encode(value());
                b[row * 8 + g] = decode(bits);
                w[4 + i / 2].0[lane] |= bits << (16 * (i % 2));
            }
            for i in 0..4 {
                let (row, column) = (g + 8 * (i / 2), 2 * t + i % 2);
                let v = value();
                c[row * 8 + column] = f64::from(v);
                w[6 + i].0[lane] = v.to_bits();
            }
        }
        (w, a, b, c)
    }

    #[test]
    fn products_match_the_fragment_layout_of_the_isa() {
        for (is_bf16, k16) in [(true, true), (true, false), (false, true), (false, false)] {
            let (mut w, a, b, c) = fragments(is_bf16, k16, 11);
            let mut exact = w.clone();
            mma::<false>(&mut w, operands(is_bf16, k16));
            crate::exec::mma_exact::mma_exact(&mut exact, operands(is_bf16, k16));
            for lane in 0..32 {
                for i in 0..4 {
                    let (row, column) = (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
                    let sum: f64 = (0..16).map(|k| a[row * 16 + k] * b[k * 8 + column]).sum();
                    let expected = sum + c[row * 8 + column];
                    for planes in [&w, &exact] {
                        let got = f64::from(f32::from_bits(planes[10 + i].0[lane]));
                        assert!(
                            (got - expected).abs() < 1e-5,
                            "{row} {column}: {got} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_fast_product_has_the_bits_of_the_portable_one() {
        if !super::super::has_avx2() {
            return;
        }
        for seed in 0..200 {
            for (is_bf16, k16) in [(true, true), (true, false), (false, true), (false, false)] {
                let (mut w, ..) = fragments(is_bf16, k16, seed);
                if seed % 4 == 3 {
                    // Any bits: infinities, NaN, subnormals.
                    let mut next = random(seed);
                    w.iter_mut()
                        .take(10)
                        .flat_map(|plane| &mut plane.0)
                        .for_each(|word| *word = next() << 1 ^ next());
                }
                let mut other = w.clone();
                mma::<false>(&mut w, operands(is_bf16, k16));
                mma::<true>(&mut other, operands(is_bf16, k16));
                for plane in 10..14 {
                    assert_eq!(w[plane].0, other[plane].0, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn a_transpose_swaps_rows_and_columns() {
        let plane: [u32; 32] = std::array::from_fn(|i| (2 * i) as u32 | (2 * i as u32 + 1) << 16);
        let out = transpose::<false>(&plane);
        let value = |plane: &[u32; 32], row: usize, column: usize| {
            plane[4 * row + column / 2] >> (16 * (column % 2)) & 0xFFFF
        };
        for row in 0..8 {
            for column in 0..8 {
                assert_eq!(value(&out, row, column), value(&plane, column, row));
            }
        }
        assert_eq!(transpose::<false>(&out), plane);
    }
}
