#line 1 "/pagesmith/device/decode_simt.cuh"
// Decode attention on the CUDA cores, for few query heads per KV head: f32 arithmetic, KV straight from global memory to
// registers, no shared-memory pipeline. Latency is hidden by the loads of a whole tile in flight in every warp.
//
// A warp is kRowsAtOnce groups of kLanes lanes; a group takes a token, a lane 16 bytes of its K and V rows, converted to f32
// once for all heads.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/combine.cuh"
#include "pagesmith/convert.cuh"
#include "pagesmith/e4m3.cuh"
#include "pagesmith/paged.cuh"
#include "pagesmith/shared.cuh"
#include "pagesmith/simt_lanes.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/types.cuh"
#include "pagesmith/work.cuh"

namespace pagesmith {

template <class Config> struct SimtTraits : Config {
    static constexpr bool kE4m3 = is_same<typename Config::Kv, dtype::e4m3>;
    static constexpr u32 kChunks = Config::kHeadDim * Config::Kv::kBytes / kChunkBytes;  // a row
    static constexpr u32 kLanes = pow2_ceil(kChunks);  // a token; those past kChunks idle at d80, d96, d112, d192
    static constexpr u32 kRowsAtOnce = kWarpSize / kLanes;
    static constexpr u32 kSlots = Config::kTileTokens / kRowsAtOnce;  // tokens of a lane in a tile
    // After spread_sums a lane holds kOwned scores a head, or kCopies lanes hold the same one.
    static constexpr u32 kOwned = kSlots > kLanes ? kSlots / kLanes : 1;
    static constexpr u32 kCopies = kLanes > kSlots ? kLanes / kSlots : 1;

    static_assert(Config::kStages == 1 && Config::kHeadTile >= 1 && Config::kHeadTile <= 8);
    static_assert(kRowsAtOnce <= Config::kBlockSize && kRowsAtOnce <= Config::kTileTokens);
    static constexpr u32 kSharedBytes = Combine<Config>::kBytes;
};

template <class C> class SimtWarp {
  public:
    using Row = Chunk<typename C::Kv>;
    static constexpr u32 kElements = Row::kElements;
    static constexpr u32 kHeads = C::kHeadTile;

    __device__ SimtWarp(const DecodeParams& p, const WorkItem& item)
        : row_(lane_id() / C::kLanes),
          column_(lane_id() % C::kLanes),
          k_(k_rows<C>(p, item.kv_head, row_, column_)),
          v_(v_rows<C>(p, item.kv_head, row_, column_)) {
        scale_ = fmaxf(p.scale_log2 * p.k_scale * (C::kE4m3 ? 1.0f / kE4m3Gain : 1.0f), kSmallestScale);
        load_query(p, item);
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
            m_[h] = -kInfinity;
            l_[h] = 0.0f;
#pragma unroll
            for (u32 e = 0; e < kElements; ++e) o_[h][e] = 0.0f;
        }
    }

    // Attends to the tile at `token`, of which `live` tokens exist.
    __device__ __forceinline__ void attend(BlockIds& ids, u32 token, u32 live) {
        // With many heads the registers for a tile of V are needed first for scores, whose arithmetic hides K's latency anyway.
        constexpr bool kLateV = kHeads > 4;
        ids.move_to(token / C::kBlockSize);
        Row k[C::kSlots], v[C::kSlots];
        load_tile(ids, token, live, k_, k);
        if constexpr (!kLateV) load_tile(ids, token, live, v_, v);
        float s[kHeads][C::kSlots];
#pragma unroll
        for (u32 i = 0; i < C::kSlots; ++i) {
            float x[kElements];
            k[i].to_f32(x);
#pragma unroll
            for (u32 h = 0; h < kHeads; ++h) {
                s[h][i] = 0.0f;
#pragma unroll
                for (u32 e = 0; e < kElements; ++e) s[h][i] += q_[h][e] * x[e];
            }
        }
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) spread_sums<C::kSlots, C::kLanes>(s[h]);
        if constexpr (kLateV) load_tile(ids, token, live, v_, v);
        weigh(s, live);
#pragma unroll
        for (u32 i = 0; i < C::kSlots; ++i) {
            float x[kElements];
            v[i].to_f32(x);
            const u32 owner = row_ * C::kLanes + i / C::kOwned * C::kCopies;
#pragma unroll
            for (u32 h = 0; h < kHeads; ++h) {
                const float p = __shfl_sync(kFullWarp, s[h][i % C::kOwned], owner);
#pragma unroll
                for (u32 e = 0; e < kElements; ++e) o_[h][e] += p * x[e];
            }
        }
    }

    // Leaves rows and states for the CTA's combine.
    __device__ void leave(const Combine<C>& combine) {
        const u32 warp = warp_id();
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
            const float l = lanes_sum<1, 16>(l_[h]) * (1.0f / C::kCopies);
            if (lane_id() == 0) store_shared_f32x2(combine.state(warp, h), m_[h], l);
#pragma unroll
            for (u32 e = 0; e < kElements; ++e) o_[h][e] = lanes_sum<C::kLanes, 16>(o_[h][e]);
            if (row_ == 0 && column_ < C::kChunks) store(combine.row(warp, h) + column_ * (kElements * sizeof(float)), o_[h]);
        }
    }

  private:
    __device__ void load_query(const DecodeParams& p, const WorkItem& item) {
        const u32 live = min(kHeads, C::kGroup - item.head_begin);
        const u64 rows = p.q + (item.q_token * p.q_token_stride + (item.kv_head * C::kGroup + item.head_begin) * p.q_head_stride) * 2;
        using QueryChunk = Chunk<typename C::Query>;
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
#pragma unroll
            for (u32 part = 0; part < kElements / QueryChunk::kElements; ++part) {
                QueryChunk chunk;
                const u64 address = rows + h * p.q_head_stride * 2 + (column_ * kElements + part * QueryChunk::kElements) * 2;
                if (h < live && column_ < C::kChunks) chunk.load(address);
                float x[QueryChunk::kElements];
                chunk.to_f32(x);
#pragma unroll
                for (u32 e = 0; e < QueryChunk::kElements; ++e) q_[h][part * QueryChunk::kElements + e] = x[e];
            }
        }
    }

    // Dead rows, and lanes past the end of a row, stay zero.
    __device__ __forceinline__ void load_tile(const BlockIds& ids, u32 token, u32 live, const KvRows& rows, Row (&x)[C::kSlots]) const {
        constexpr u32 kSpan = min_of(C::kTileTokens, C::kBlockSize) / C::kRowsAtOnce;  // slots a block
        u64 block = 0;
#pragma unroll
        for (u32 i = 0; i < C::kSlots; ++i) {
            if (i % kSpan == 0) {
                block = rows.block(ids.id(token / C::kBlockSize + i / kSpan));
                if constexpr (C::kBlockSize > C::kTileTokens) block = rows.row(block, token % C::kBlockSize);
            }
            if (column_ < C::kChunks && i * C::kRowsAtOnce + row_ < live) {
                x[i].load(rows.row(block, i % kSpan * C::kRowsAtOnce));
            }
        }
    }

    // Scores to weights, each in the lane (or lanes) that owns it.
    __device__ __forceinline__ void weigh(float (&s)[kHeads][C::kSlots], u32 live) {
        bool passed = false;
        float top[kHeads];
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
#pragma unroll
            for (u32 j = 0; j < C::kOwned; ++j) {
                if constexpr (C::kE4m3) s[h][j] = poison_if_not_finite(s[h][j], s[h][j]);
                if (owned_token(j) >= live) s[h][j] = -kInfinity;
                top[h] = j == 0 ? s[h][j] : fmaxf(top[h], s[h][j]);
            }
            top[h] *= scale_;
            passed |= top[h] > m_[h] + kLazyMargin;
        }
        if (__any_sync(kFullWarp, passed)) rescale(top);
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
#pragma unroll
            for (u32 j = 0; j < C::kOwned; ++j) {
                s[h][j] = exp2_approx(__fmaf_rn(s[h][j], scale_, -m_[h]));
                l_[h] += s[h][j];
            }
        }
    }

    __device__ __forceinline__ void rescale(const float (&top)[kHeads]) {
#pragma unroll
        for (u32 h = 0; h < kHeads; ++h) {
            const float m = fmaxf(m_[h], lanes_max<1, 16>(top[h]));
            const float keep = rescale_factor(m_[h], m);
            m_[h] = m;
            l_[h] *= keep;
#pragma unroll
            for (u32 e = 0; e < kElements; ++e) o_[h][e] *= keep;
        }
    }

    // Consecutive lanes' chunks are 32 or 64 bytes apart: each lane starts at another 16-byte quad, so that 8 lanes cover all banks.
    __device__ __forceinline__ void store(u32 chunk, const float (&x)[kElements]) const {
        constexpr u32 kQuads = kElements / 4;
        const u32 key = column_ / (8 / kQuads) % kQuads;
        float4 quads[kQuads];
#pragma unroll
        for (u32 i = 0; i < kQuads; ++i) quads[i] = {x[i * 4], x[i * 4 + 1], x[i * 4 + 2], x[i * 4 + 3]};
#pragma unroll
        for (u32 bit = 1; bit < kQuads; bit *= 2) {
#pragma unroll
            for (u32 i = 0; i < kQuads; ++i) {
                if ((i & bit) == 0 && (key & bit) != 0) {
                    const float4 swapped = quads[i];
                    quads[i] = quads[i | bit];
                    quads[i | bit] = swapped;
                }
            }
        }
#pragma unroll
        for (u32 i = 0; i < kQuads; ++i) store_shared_f32x4(chunk + (i ^ key) * kChunkBytes, quads[i]);
    }

    // Token, within the tile, of this lane's j-th score.
    __device__ u32 owned_token(u32 j) const {
        return (column_ / C::kCopies * C::kOwned + j) * C::kRowsAtOnce + row_;
    }

    u32 row_, column_;
    KvRows k_, v_;
    float scale_;
    float q_[kHeads][kElements];
    float m_[kHeads];  // the same in all lanes
    float l_[kHeads];  // this lane's share
    float o_[kHeads][kElements];
};

template <class Config> __device__ __forceinline__ void decode_simt(const DecodeParams& p) {
    using C = SimtTraits<Config>;
    static_assert(C::kSharedBytes == C::kDeclaredSharedBytes);
    extern __shared__ __align__(128) unsigned char shared[];

    const WorkItem item = load_work_item(p);
    const WarpRun<C> run(item, warp_id());
    BlockIds ids(block_row<typename C::Table>(p, item.seq), run.first_block(), run.end_block(item.kv_end));
    SimtWarp<C> warp(p, item);
#pragma unroll 1
    for (u32 i = 0; i < run.tiles; ++i) {
        const u32 token = run.begin + i * C::kTileTokens;
        warp.attend(ids, token, item.kv_end - token);
    }

    const Combine<C> combine(shared_address(shared));
    warp.leave(combine);
    __syncthreads();
    combine.write(p, item, p.v_scale * (C::kE4m3 ? 1.0f / kE4m3Gain : 1.0f));
}

}  // namespace pagesmith
