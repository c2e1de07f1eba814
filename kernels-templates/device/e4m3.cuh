#line 1 "/pagesmith/device/e4m3.cuh"
// e4m3 to f16 without a conversion instruction (sm_80 has none): 2 lane-operations a code, exact, NaN noticed.
//
// A code's magnitude bits, shifted so that its exponent field ends where f16's does, read as f16 value * 2^-8 (subnormals
// too: both formats scale linearly there). One packed multiply by 146 * 2^8 = 37376 then gives value * 146: exact,
// because 73 has 7 bits and a code 4, and f16 has 11. 448 becomes 65408, still finite; the NaN codes, which read as 480, become
// 70080 and overflow to infinity. So a NaN code in is an infinity out, and nothing else is. Callers turn infinity
// into NaN where that is cheap (poison_if_not_finite) and fold 1/146 into their scales.
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

constexpr float kE4m3Gain = 146.0f;

__device__ __forceinline__ u32 times_37376(u32 half2) {
    u32 product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(half2), "r"(0x78907890u));
    return product;
}

// Codes in bytes 0 and 2 of `codes`, as f16 value * 146 in the low and high half.
__device__ __forceinline__ u32 decode_even_e4m3(u32 codes) {
    // A byte permute that copies sign bits (selector bit 3) puts each code's sign in bits 15..7 of its half. After the
    // shift bit 14 holds a copy of the sign that the mask clears.
    u32 wide;
    asm("prmt.b32 %0, %1, 0, 0xa280;" : "=r"(wide) : "r"(codes));
    return times_37376((wide << 7) & 0xbf80bf80u);
}

// Codes in bytes 1 and 3.
__device__ __forceinline__ u32 decode_odd_e4m3(u32 codes) {
    return times_37376(((codes >> 1) & 0x3f803f80u) | (codes & 0x80008000u));
}

}  // namespace pagesmith
