#line 1 "/pagesmith/device/async_copy.cuh"
// cp.async: 16 bytes from global to shared memory past the registers and past L1 (.cg), since KV is read once.
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

__device__ __forceinline__ void copy_chunk_async(u32 shared, u64 global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// Reads nothing and writes zeros where `live` is false: whatever lies in a dead row, NaN too, stays outside.
__device__ __forceinline__ void copy_chunk_async_or_zero(u32 shared, u64 global, bool live) {
    const u32 bytes = live ? kChunkBytes : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `kPending` of this thread's newest groups are in flight.
template <u32 kPending> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace pagesmith
