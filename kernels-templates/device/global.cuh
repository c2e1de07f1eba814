#line 1 "/pagesmith/device/global.cuh"
// Global memory by 64-bit address, in the widths that matter. Parameters carry addresses as integers, and from those the compiler
// emits generic accesses, and four scalar stores for a float4.
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

__device__ __forceinline__ u32 load_u32(u64 address) {
    u32 x;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(address));
    return x;
}
__device__ __forceinline__ float load_f32(u64 address) { return __uint_as_float(load_u32(address)); }
// 16-byte aligned.
__device__ __forceinline__ uint4 load_u32x4(u64 address) {
    uint4 x;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(address));
    return x;
}
__device__ __forceinline__ float4 load_f32x4(u64 address) {
    float4 x;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(address));
    return x;
}
__device__ __forceinline__ void store_f32(u64 address, float x) {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(address), "f"(x) : "memory");
}
__device__ __forceinline__ void store_f32x4(u64 address, float4 x) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
}
// 8-byte aligned.
__device__ __forceinline__ void store_u32x2(u64 address, u32 x, u32 y) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(x), "r"(y) : "memory");
}

}  // namespace pagesmith
