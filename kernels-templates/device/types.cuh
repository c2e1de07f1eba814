#line 1 "/pagesmith/device/types.cuh"
// Integer names, storage types and table forms. NVRTC runs without an include path here, so <cstdint>, <cuda_fp16.h>
// and their kin do not exist: a 16-bit float is a bit pattern, and convert.cuh gives it meaning.
#pragma once

namespace pagesmith {

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 kWarpSize = 32;
constexpr u32 kFullWarp = 0xffffffffu;
constexpr u32 kNoSlot = 0xffffffffu;  // WorkItem::slot of an item that nobody splits
constexpr u32 kChunkBytes = 16;       // widest load, cp.async and ldmatrix row

constexpr u32 max_of(u32 a, u32 b) { return a > b ? a : b; }
constexpr u32 min_of(u32 a, u32 b) { return a < b ? a : b; }
constexpr u32 ceil_div(u32 a, u32 b) { return (a + b - 1) / b; }
constexpr u32 pow2_ceil(u32 x) {
    u32 p = 1;
    while (p < x) p *= 2;
    return p;
}
constexpr bool is_pow2(u32 x) { return x != 0 && (x & (x - 1)) == 0; }

template <class A, class B> inline constexpr bool is_same = false;
template <class A> inline constexpr bool is_same<A, A> = true;

template <bool, class Then, class Else> struct Choice { using Type = Then; };
template <class Then, class Else> struct Choice<false, Then, Else> { using Type = Else; };

// Storage types. Tags, not values: device code only ever holds packed words of them.
namespace dtype {
struct bf16 { static constexpr u32 kBytes = 2; };
struct f16 { static constexpr u32 kBytes = 2; };
struct e4m3 { static constexpr u32 kBytes = 1; };  // OCP FP8 E4M3: no infinity, NaN = 0x7f and 0xff
}  // namespace dtype

// Forms of the block table.
namespace table {
struct dense {};  // int [seqs, table_stride]
struct csr {};    // int indices[nnz], int indptr[seqs + 1]
}  // namespace table

constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u);
constexpr float kLn2 = 0.693147180559945309f;

// x, computed once: the compiler cannot see through, so it keeps the value in a register instead of recomputing it in a loop.
template <class T> __device__ __forceinline__ T hoisted(T x) {
    if constexpr (sizeof(T) == 8) {
        asm volatile("" : "+l"(x));
    } else {
        asm volatile("" : "+r"(x));
    }
    return x;
}

// base + a * b in one IMAD.WIDE. The product is written out (and volatile) because the compiler otherwise turns equally spaced
// rows into a chain of 64-bit sums, or hoists their products: two instructions a row. As mad.wide it is split again.
__device__ __forceinline__ u64 mad_wide(u32 a, u32 b, u64 base) {
    u64 product;
    asm volatile("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return base + product;
}

// `base` + `a` times 64-bit `b`, modulo 2^64: two instructions.
__device__ __forceinline__ u64 mad_wide(u32 a, u64 b, u64 base) {
    const u64 low = mad_wide(a, u32(b), base);
    const u32 high = u32(low >> 32) + a * u32(b >> 32);
    return u64(high) << 32 | u32(low);
}

__device__ __forceinline__ u32 lane_id() { return threadIdx.x % kWarpSize; }
// The same in all lanes, and told to the compiler: branches on it stay uniform.
__device__ __forceinline__ u32 warp_id() { return __shfl_sync(kFullWarp, threadIdx.x / kWarpSize, 0); }

}  // namespace pagesmith
