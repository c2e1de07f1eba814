//! Packed f16 arithmetic with F16C: the results of [`super::half`], eight values at a time.

use crate::lower::op::Half;
use std::arch::x86_64::{
    __m128i, _MM_FROUND_TO_NEAREST_INT, _mm_and_si128, _mm_blendv_epi8, _mm_cmpgt_epi16,
    _mm_loadu_si128, _mm_set1_epi16, _mm_storeu_si128, _mm256_add_ps, _mm256_cvtph_ps,
    _mm256_cvtps_ph, _mm256_mul_ps, _mm256_sub_ps,
};

/// `op` on all 64 values of two planes. Only sums and products: f32 has more than twice the bits of f16, so that
/// rounding twice is rounding once for these.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn packed(op: Half, a: &[u32; 32], b: &[u32; 32]) -> [u32; 32] {
    let mut out = [0; 32];
    let (x, _) = a.as_chunks::<4>();
    let (y, _) = b.as_chunks::<4>();
    let (to, _) = out.as_chunks_mut::<4>();
    let (magnitude, infinite, nan) = (
        _mm_set1_epi16(0x7FFF),
        _mm_set1_epi16(0x7C00),
        _mm_set1_epi16(0x7FFF),
    );
    for ((x, y), to) in x.iter().zip(y).zip(to) {
        // SAFETY: each load reads the 16 bytes of an array, from any alignment.
        let (x, y) = unsafe {
            let load =
                |from: &[u32; 4]| _mm_loadu_si128(std::ptr::from_ref(from).cast::<__m128i>());
            (_mm256_cvtph_ps(load(x)), _mm256_cvtph_ps(load(y)))
        };
        let result = match op {
            Half::Add => _mm256_add_ps(x, y),
            Half::Sub => _mm256_sub_ps(x, y),
            _ => _mm256_mul_ps(x, y),
        };
        let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(result);
        let is_nan = _mm_cmpgt_epi16(_mm_and_si128(narrow, magnitude), infinite);
        let narrow = _mm_blendv_epi8(narrow, nan, is_nan);
        // SAFETY: the store writes the 16 bytes of the array, to any alignment.
        unsafe { _mm_storeu_si128(std::ptr::from_mut(to).cast::<__m128i>(), narrow) };
    }
    out
}
