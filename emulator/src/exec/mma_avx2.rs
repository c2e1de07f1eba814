//! `mma` with AVX2, FMA and F16C: the sums of [`super::matrix`] in the same order, eight columns at a time.

use super::lanes::Words;
use super::numeric::NAN_F32;
use crate::lower::op::Reg;
use std::arch::x86_64::{
    __m128i, __m256, _CMP_UNORD_Q, _mm_loadu_ps, _mm_loadu_si128, _mm_storeu_ps, _mm256_blendv_ps,
    _mm256_broadcast_ss, _mm256_castps128_ps256, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_cmp_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_extractf128_ps, _mm256_fmadd_ps,
    _mm256_insertf128_ps, _mm256_permute2f128_ps, _mm256_set1_epi32, _mm256_setzero_ps,
    _mm256_shuffle_ps, _mm256_slli_epi32, _mm256_storeu_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

/// Row `g` of a fragment plane, eight 16-bit values, as f32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn row<const BF16: bool>(plane: &[u32; 32], g: usize) -> __m256 {
    let (rows, _) = plane.as_chunks::<4>();
    let row: &[u32; 4] = &rows[g];
    // SAFETY: the load reads the 16 bytes of the array, from any alignment.
    let halves = unsafe { _mm_loadu_si128(std::ptr::from_ref(row).cast::<__m128i>()) };
    if BF16 {
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
    } else {
        _mm256_cvtph_ps(halves)
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn transpose(r: [__m256; 8]) -> [__m256; 8] {
    let pair = |i: usize| {
        (
            _mm256_unpacklo_ps(r[i], r[i + 1]),
            _mm256_unpackhi_ps(r[i], r[i + 1]),
        )
    };
    let ((a0, a1), (a2, a3), (a4, a5), (a6, a7)) = (pair(0), pair(2), pair(4), pair(6));
    let low = |x, y| _mm256_shuffle_ps::<0x44>(x, y);
    let high = |x, y| _mm256_shuffle_ps::<0xEE>(x, y);
    let b = [low(a0, a2), high(a0, a2), low(a1, a3), high(a1, a3)];
    let c = [low(a4, a6), high(a4, a6), low(a5, a7), high(a5, a7)];
    let mut out = [_mm256_setzero_ps(); 8];
    for i in 0..4 {
        out[i] = _mm256_permute2f128_ps::<0x20>(b[i], c[i]);
        out[4 + i] = _mm256_permute2f128_ps::<0x31>(b[i], c[i]);
    }
    out
}

/// `STEPS` slices of eight k.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn product<const BF16: bool, const STEPS: usize>(
    w: &mut [Words],
    d: [Reg; 4],
    a: [Reg; 4],
    b: [Reg; 2],
    c: [Reg; 4],
) {
    // Columns in the order 0 2 4 6 1 3 5 7: then a row of C is two runs of four lanes.
    const ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
    let mut by_k = [_mm256_setzero_ps(); 16];
    for step in 0..STEPS {
        let plane = &w[b[step] as usize].0;
        let mut columns = [_mm256_setzero_ps(); 8];
        for i in 0..8 {
            columns[i] = row::<BF16>(plane, ORDER[i]);
        }
        by_k[8 * step..8 * step + 8].copy_from_slice(&transpose(columns));
    }
    let nan = _mm256_castsi256_ps(_mm256_set1_epi32(NAN_F32.cast_signed()));
    let mut out = [Words::ZERO; 4];
    for half in 0..2 {
        let mut values = [[0f32; 16]; 8];
        for step in 0..STEPS {
            let plane = &w[a[2 * step + half] as usize].0;
            for g in 0..8 {
                let to: &mut [f32] = &mut values[g][8 * step..8 * step + 8];
                // SAFETY: the store writes eight f32, the length of the slice, to any alignment.
                unsafe { _mm256_storeu_ps(to.as_mut_ptr(), row::<BF16>(plane, g)) };
            }
        }
        let (even, odd) = (&w[c[2 * half] as usize].0, &w[c[2 * half + 1] as usize].0);
        let mut acc = [_mm256_setzero_ps(); 8];
        for g in 0..8 {
            let (even, odd): (&[u32], &[u32]) = (&even[4 * g..4 * g + 4], &odd[4 * g..4 * g + 4]);
            // SAFETY: both loads read four words, the length of the slices, from any alignment.
            let (even, odd) = unsafe {
                (
                    _mm_loadu_ps(even.as_ptr().cast()),
                    _mm_loadu_ps(odd.as_ptr().cast()),
                )
            };
            acc[g] = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(even), odd);
        }
        for k in 0..8 * STEPS {
            let b = by_k[k];
            for g in 0..8 {
                acc[g] = _mm256_fmadd_ps(_mm256_broadcast_ss(&values[g][k]), b, acc[g]);
            }
        }
        for g in 0..8 {
            let unordered = _mm256_cmp_ps::<_CMP_UNORD_Q>(acc[g], acc[g]);
            let result = _mm256_blendv_ps(acc[g], nan, unordered);
            let (even, odd) = (
                _mm256_castps256_ps128(result),
                _mm256_extractf128_ps::<1>(result),
            );
            let to: &mut [u32] = &mut out[2 * half].0[4 * g..4 * g + 4];
            // SAFETY: the store writes four words, the length of the slice, to any alignment.
            unsafe { _mm_storeu_ps(to.as_mut_ptr().cast(), even) };
            let to: &mut [u32] = &mut out[2 * half + 1].0[4 * g..4 * g + 4];
            // SAFETY: as above.
            unsafe { _mm_storeu_ps(to.as_mut_ptr().cast(), odd) };
        }
    }
    for (reg, plane) in d.into_iter().zip(out) {
        w[reg as usize] = plane;
    }
}
