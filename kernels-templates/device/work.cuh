#line 1 "/pagesmith/device/work.cuh"
// What a CTA and each of its warps have to do.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/global.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// Two 16-byte loads of the CTA's item, the same address in every lane.
__device__ __forceinline__ WorkItem load_work_item(const DecodeParams& p) {
    const u64 address = p.work + u64(blockIdx.x) * sizeof(WorkItem);
    const uint4 a = load_u32x4(address);
    const uint4 b = load_u32x4(address + sizeof(uint4));
    return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
}

// The contiguous run of tiles that a warp takes of [kv_begin, kv_end): warps split keys, so every byte of K and V passes
// through one warp once. kv_begin is a multiple of kTile; only the last tile of the item can be partial.
template <class C> struct WarpRun {
    static constexpr u32 kTile = C::kTileTokens;
    static_assert(is_pow2(kTile) && kTile % 16 == 0 && is_pow2(C::kBlockSize) && C::kBlockSize >= 8);

    u32 begin;  // first token
    u32 tiles;

    __device__ WarpRun(const WorkItem& item, u32 warp) {
        const u32 tokens = item.kv_end - item.kv_begin;
        const u32 all = (tokens + kTile - 1) / kTile;
        const u32 each = all / C::kWarps;
        const u32 extra = all % C::kWarps;
        const u32 first = warp * each + min(warp, extra);
        tiles = each + (warp < extra);
        begin = item.kv_begin + first * kTile;
    }

    __device__ u32 first_block() const { return begin / C::kBlockSize; }
    // One past the last block with a live token of this run.
    __device__ u32 end_block(u32 kv_end) const {
        return (min(begin + tiles * kTile, kv_end) + C::kBlockSize - 1) / C::kBlockSize;
    }
};

}  // namespace pagesmith
