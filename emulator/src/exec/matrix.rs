//! Matrix instructions on fragments.
//!
//! With g = lane / 4 and t = lane % 4, a fragment register of a 16-bit 8x8 matrix holds row g, columns 2t and 2t+1:
//! its plane of 32 lanes is the matrix in row-major order.

use super::lanes::{Words, multiversion};
use super::numeric as n;
use crate::lower::op::Reg;

multiversion! {
    /// D = A B + C of `mma.m16n8k16` and `mma.m16n8k8` with f32 accumulators.
    ///
    /// Each element is `fma(a[k], b[k], acc)` with k ascending from the accumulator.
    mma(w: &mut [Words], bf16: bool, k16: bool, d: [Reg; 4], a: [Reg; 4], b: [Reg; 2], c: [Reg; 4]) = mma_body
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

#[inline(always)]
fn mma_body<const AVX2: bool>(
    w: &mut [Words],
    bf16: bool,
    k16: bool,
    d: [Reg; 4],
    a: [Reg; 4],
    b: [Reg; 2],
    c: [Reg; 4],
) {
    match (bf16, k16) {
        (true, true) => product::<AVX2, true, 2>(w, d, a, b, c),
        (true, false) => product::<AVX2, true, 1>(w, d, a, b, c),
        (false, true) => product::<AVX2, false, 2>(w, d, a, b, c),
        (false, false) => product::<AVX2, false, 1>(w, d, a, b, c),
    }
}

/// `STEPS` slices of eight k.
#[inline(always)]
fn product<const AVX2: bool, const BF16: bool, const STEPS: usize>(
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
                            n::fma::<AVX2>(values[k], by_k[step * 8 + k][column], acc[column]);
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
    let mut out = [0; 32];
    for g in 0..8 {
        for t in 0..4 {
            let value = |row: usize| (plane[4 * row + g / 2] >> (16 * (g % 2))) & 0xFFFF;
            out[4 * g + t] = value(2 * t) | value(2 * t + 1) << 16;
        }
    }
    out
}
