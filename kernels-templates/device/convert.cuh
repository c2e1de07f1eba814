#line 1 "/pagesmith/device/convert.cuh"
// 16-bit floats to and from f32, two a word, and the two special functions softmax needs.
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

// Rounds to nearest even; `lo` goes to bits 0..15.
template <class T> __device__ __forceinline__ u32 pack2(float lo, float hi) {
    u32 word;
    if constexpr (is_same<T, dtype::bf16>) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    } else {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    }
    return word;
}

template <class T> __device__ __forceinline__ float2 unpack2(u32 word) {
    float2 pair;
    if constexpr (is_same<T, dtype::bf16>) {
        pair.x = __uint_as_float(word << 16);
        pair.y = __uint_as_float(word & 0xffff0000u);
    } else {
        asm("{.reg .b16 lo, hi;\n"
            " mov.b32 {lo, hi}, %2;\n"
            " cvt.f32.f16 %0, lo;\n"
            " cvt.f32.f16 %1, hi;}"
            : "=f"(pair.x), "=f"(pair.y)
            : "r"(word));
    }
    return pair;
}

// One MUFU each: the library's exp2f and log2f add range handling that scores and sums never need.
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float log2_approx(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// y + x*0: y, unless x is infinite or NaN, and then NaN. In PTX, because a fast-math compiler may fold x*0.
__device__ __forceinline__ float poison_if_not_finite(float y, float x) {
    float z;
    asm("fma.rn.f32 %0, %1, 0f00000000, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

}  // namespace pagesmith
