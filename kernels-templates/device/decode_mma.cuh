#line 1 "/pagesmith/device/decode_mma.cuh"
// Decode attention on tensor cores, with the operands of both products swapped: S^T = K Q^T and O^T = V^T P^T.
//
// KV tokens (and head dims) fill the 16 rows of m16n8k16 and the query heads of a KV head its 8 columns, so a group of 4 wastes half
// a tile where heads in rows would waste three quarters. A lane's score and output columns are the same two heads (2t, 2t + 1):
// softmax needs no broadcasts, and the score fragment becomes the second product's B operand by one movmatrix a register.
//
// Warps split the keys. Each owns a run of tiles and a ring of kStages tile buffers, filled by cp.async and guarded by
// __syncwarp: no CTA barrier between the prologue and the final combine.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/async_copy.cuh"
#include "pagesmith/combine.cuh"
#include "pagesmith/e4m3.cuh"
#include "pagesmith/kv_copy.cuh"
#include "pagesmith/mma_softmax.cuh"
#include "pagesmith/mma_tile.cuh"
#include "pagesmith/query.cuh"
#include "pagesmith/shared.cuh"
#include "pagesmith/types.cuh"
#include "pagesmith/work.cuh"

namespace pagesmith {

template <class Config> struct MmaTraits : Config {
    static constexpr bool kE4m3 = is_same<typename Config::Kv, dtype::e4m3>;
    // e4m3 fits f16 exactly, whatever the queries are; 16-bit KV multiplies as it is stored.
    using Math = typename Choice<kE4m3, dtype::f16, typename Config::Query>::Type;

    static_assert(Config::kHeadDim % 16 == 0 && Config::kHeadTile % 8 == 0 && Config::kStages >= 2);
    static_assert(kE4m3 || is_same<typename Config::Kv, typename Config::Query>);
    static constexpr u32 kRingBytes = Config::kWarps * Config::kStages * KvCopy<Config>::kStageBytes;
    static constexpr u32 kSharedBytes = max_of(kRingBytes, Combine<Config>::kBytes);
};

// A warp's unnormalised O^T and states to where the CTA combines them. All reads of the ring, by all warps, are over.
template <class C>
__device__ __forceinline__ void leave(const Combine<C>& combine, const MmaSoftmax<C>& softmax, const typename MmaTile<C>::Outputs& o) {
    const u32 warp = warp_id(), g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
    for (u32 n = 0; n < MmaTile<C>::kHeads8; ++n) {
        const u32 head = n * 8 + t * 2;
        const float4 states = softmax.states(n);
        const float u0 = softmax.undo_rounding(n, 0, states.y), u1 = softmax.undo_rounding(n, 1, states.w);
        if (g == 0) store_shared_f32x4(combine.state(warp, head), states);
        const u32 row0 = combine.row(warp, head) + g * (C::kE4m3 ? 8 : 4);
        const u32 row1 = combine.row(warp, head + 1) + g * (C::kE4m3 ? 8 : 4);
#pragma unroll
        for (u32 d = 0; d < MmaTile<C>::kSteps; ++d) {
            const float c[4] = {o[n][d][0] * u0, o[n][d][1] * u1, o[n][d][2] * u0, o[n][d][3] * u1};
            if constexpr (C::kE4m3) {  // rows g and g + 8 are dims 2g and 2g + 1
                store_shared_f32x2(row0 + d * 64, c[0], c[2]);
                store_shared_f32x2(row1 + d * 64, c[1], c[3]);
            } else {
                store_shared_f32(row0 + d * 64, c[0]);
                store_shared_f32(row1 + d * 64, c[1]);
                store_shared_f32(row0 + d * 64 + 32, c[2]);
                store_shared_f32(row1 + d * 64 + 32, c[3]);
            }
        }
    }
}

template <class Config> __device__ __forceinline__ void decode_mma(const DecodeParams& p) {
    using C = MmaTraits<Config>;
    using Tile = MmaTile<C>;
    static_assert(C::kSharedBytes == C::kDeclaredSharedBytes);
    // Ring: [kStages][kWarps][K, V]. The queries pass through the last stage, which is filled last.
    constexpr u32 kStageStride = C::kWarps * KvCopy<C>::kStageBytes;
    constexpr u32 kQueryOffset = (C::kStages - 1) * kStageStride;
    static_assert(kQueryOffset + QueryTile<C>::kBytes <= C::kSharedBytes);
    constexpr float kUndoGain = C::kE4m3 ? 1.0f / kE4m3Gain : 1.0f;
    extern __shared__ __align__(128) unsigned char shared[];

    const WorkItem item = load_work_item(p);
    const WarpRun<C> run(item, warp_id());
    const u32 base = shared_address(shared);
    const u32 ring = base + warp_id() * KvCopy<C>::kStageBytes;

    KvCopy<C> copy(p, item, run);
    const auto start_tile = [&](u32 i, u32 stage) {
        const u32 token = run.begin + i * C::kTileTokens;
        if (i < run.tiles) copy.start(stage, token, item.kv_end - token);
        commit_copies();  // empty past the end, so that a wait counts the same everywhere
    };

    QueryTile<C>::start_copy(p, item, base + kQueryOffset);
    commit_copies();
#pragma unroll 1
    for (u32 i = 0; i + 1 < C::kStages; ++i) start_tile(i, ring + i * kStageStride);
    wait_copies<C::kStages - 1>();
    __syncthreads();
    typename Tile::Queries q;
    MmaSoftmax<C> softmax;
    QueryTile<C>::load(base + kQueryOffset, p.scale_log2 * p.k_scale * kUndoGain, q, softmax.scale);
    __syncthreads();

    const Tile tile;
    typename Tile::Outputs o = {};
    u32 stage = ring;
    u32 refill = ring + kQueryOffset;
#pragma unroll 1
    for (u32 i = 0; i < run.tiles; ++i) {
        wait_copies<C::kStages - 2>();
        __syncwarp();  // other lanes' copies of this tile have landed, and their reads of the one to refill are over
        start_tile(i + C::kStages - 1, refill);
        typename Tile::Scores s = {};
        typename Tile::Weights weights;
        tile.multiply_k(stage, q, s);
        softmax.weigh(s, item.kv_end - run.begin - i * C::kTileTokens, weights, o);
        tile.multiply_v(stage + KvCopy<C>::kTileBytes, weights, o);
        refill = stage;
        stage = stage == ring + kQueryOffset ? ring : stage + kStageStride;
    }

    wait_copies<0>();
    __syncthreads();  // the ring becomes the combine's rows
    const Combine<C> combine(base);
    leave(combine, softmax, o);
    __syncthreads();
    combine.write(p, item, p.v_scale * kUndoGain);
}

}  // namespace pagesmith
