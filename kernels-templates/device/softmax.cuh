#line 1 "/pagesmith/device/softmax.cuh"
// Online softmax in the exp2 domain: a state is (maximum m, sum l of 2^(x - m)), and two states merge.
#pragma once
#include "pagesmith/convert.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// How far a score may pass the running maximum before the state is rescaled. p then stays below 2^8, harmless in f16 and
// in the f32 sums, and after the first tiles the rescale almost never runs: one vote a tile remains.
constexpr float kLazyMargin = 8.0f;

// A scale of 0 (or one that underflows, as with a query of zeros) weighs all tokens alike; but a masked score is -inf, and
// -inf * 0 is NaN. The smallest normal number gives the same weights and keeps the mask.
constexpr float kSmallestScale = 0x1p-126f;

// m, or 0 where nothing was seen: keeps -inf - -inf out of exponents.
__device__ __forceinline__ float exponent_base(float m) { return m == -kInfinity ? 0.0f : m; }

// Factor from a state at maximum `from` to one at `to`; 0 for an empty state.
__device__ __forceinline__ float rescale_factor(float from, float to) { return exp2_approx(from - exponent_base(to)); }

// kFirst..kLast: lane-xor distances, doubling.
template <u32 kFirst, u32 kLast> __device__ __forceinline__ float lanes_max(float x) {
#pragma unroll
    for (u32 d = kFirst; d <= kLast; d *= 2) x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, d));
    return x;
}
template <u32 kFirst, u32 kLast> __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (u32 d = kFirst; d <= kLast; d *= 2) x += __shfl_xor_sync(kFullWarp, x, d);
    return x;
}

}  // namespace pagesmith
