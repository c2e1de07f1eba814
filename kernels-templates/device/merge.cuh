#line 1 "/pagesmith/device/merge.cuh"
// Merges the partial slots of one (query token, head tile) into the output. 128 threads an item: a warp a head, a lane
// 4 dims (8 above d128).
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/convert.cuh"
#include "pagesmith/global.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

constexpr u32 kMergeWarps = 4;
constexpr u32 kMergeCtas = 8;  // a multiprocessor; 12 spill

// partial_out: float [slots, kHeadTile, D], normalised; partial_lse: float [slots, kHeadTile], base 2, -inf when empty.
template <class C> __device__ __forceinline__ void merge_partials(const MergeParams& p) {
    constexpr u32 kStep = kWarpSize * 4;
    constexpr u32 kPieces = ceil_div(C::kHeadDim, kStep);
    const uint4 words = load_u32x4(p.items + u64(blockIdx.x) * sizeof(MergeItem));
    const MergeItem item = {words.x, words.y, words.z, words.w};
    const u32 live = min(C::kHeadTile, C::kGroup - item.q_head % C::kGroup);
    const u32 lane = lane_id();

    for (u32 head = warp_id(); head < live; head += kMergeWarps) {
        const u64 first = u64(item.slot_begin) * C::kHeadTile + head;
        const u64 lse = p.partial_lse + first * sizeof(float);
        const u64 rows = p.partial_out + (first * C::kHeadDim + lane * 4) * sizeof(float);
        float m = -kInfinity, l = 0.0f;
        float4 acc[kPieces] = {};
        // 32 slots at a time: a lane weighs a slot, then all lanes add the slots' rows.
        for (u32 begin = 0; begin < item.slot_count; begin += kWarpSize) {
            const u32 count = min(kWarpSize, item.slot_count - begin);
            const float x = lane < count ? load_f32(mad_wide(begin + lane, u32(C::kHeadTile * sizeof(float)), lse)) : -kInfinity;
            const float m_new = fmaxf(m, lanes_max<1, 16>(x));
            const float keep = rescale_factor(m, m_new);
            const float weight = rescale_factor(x, m_new);
            l = l * keep + lanes_sum<1, 16>(weight);
            m = m_new;
#pragma unroll
            for (u32 i = 0; i < kPieces; ++i) {
                acc[i] = {acc[i].x * keep, acc[i].y * keep, acc[i].z * keep, acc[i].w * keep};
            }
#pragma unroll 4
            for (u32 s = 0; s < count; ++s) {
                const float w = __shfl_sync(kFullWarp, weight, s);
                const u64 row = mad_wide(begin + s, u32(C::kHeadTile * C::kHeadDim * sizeof(float)), rows);
#pragma unroll
                for (u32 i = 0; i < kPieces; ++i) {
                    if (lane * 4 + i * kStep < C::kHeadDim) {
                        const float4 o = load_f32x4(row + i * kStep * sizeof(float));
                        acc[i] = {acc[i].x + w * o.x, acc[i].y + w * o.y, acc[i].z + w * o.z, acc[i].w + w * o.w};
                    }
                }
            }
        }
        const float norm = l == 0.0f ? 0.0f : 1.0f / l;  // 0: every slot is empty
        const i64 element = item.q_token * p.out_token_stride + (item.q_head + head) * p.out_head_stride + lane * 4;
#pragma unroll
        for (u32 i = 0; i < kPieces; ++i) {
            if (lane * 4 + i * kStep < C::kHeadDim) {
                store_u32x2(p.out + (element + i * kStep) * 2, pack2<typename C::Query>(acc[i].x * norm, acc[i].y * norm),
                            pack2<typename C::Query>(acc[i].z * norm, acc[i].w * norm));
            }
        }
        if constexpr (C::kLse) {
            if (lane == 0) {
                store_f32(p.lse + (u64(item.q_token) * p.q_heads + item.q_head + head) * sizeof(float),
                          l == 0.0f ? -kInfinity : (m + log2_approx(l)) * kLn2);
            }
        }
    }
}

}  // namespace pagesmith
