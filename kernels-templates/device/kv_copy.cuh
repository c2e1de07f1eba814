#line 1 "/pagesmith/device/kv_copy.cuh"
// A warp's copies of KV tiles from the paged cache into its shared-memory ring.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/async_copy.cuh"
#include "pagesmith/paged.cuh"
#include "pagesmith/swizzle.cuh"
#include "pagesmith/types.cuh"
#include "pagesmith/work.cuh"

namespace pagesmith {

// A stage of a warp: K [kTileTokens, D], then V [kTileTokens, D], swizzled, rows packed.
//
// One instruction copies kRows rows by kColumns chunks, and a lane keeps its chunk column: whole 128-byte lines where the row
// has them, so that along a row both addresses move by immediates and a 64-bit address is computed once per 4 rows (two rows by
// 256 bytes, the linear order, needs twice as many).
template <class C> class KvCopy {
  public:
    static constexpr u32 kChunks = C::kHeadDim * C::Kv::kBytes / kChunkBytes;  // a row
    static constexpr u32 kTileBytes = C::kTileTokens * kChunks * kChunkBytes;
    static constexpr u32 kStageBytes = 2 * kTileBytes;
    using Swizzled = Swizzle<kChunks>;

    __device__ KvCopy(const DecodeParams& p, const WorkItem& item, const WarpRun<C>& run)
        : ids_(block_row<typename C::Table>(p, item.seq), run.first_block(), run.end_block(item.kv_end)),
          row_(lane_id() / kColumns),
          k_(k_rows<C>(p, item.kv_head, row_ % C::kBlockSize, lane_id() % kColumns)),
          v_(v_rows<C>(p, item.kv_head, row_ % C::kBlockSize, lane_id() % kColumns)),
          shared_(hoisted(Swizzled::offset(row_, lane_id() % kColumns))) {}

    // Starts the copies of the tile at `token` into the stage at `stage`; rows from `live` on become zeros.
    __device__ __forceinline__ void start(u32 stage, u32 token, u32 live) {
        if (live >= C::kTileTokens) {
            start_tile<false>(stage, token, live);
        } else {
            start_tile<true>(stage, token, live);
        }
    }

  private:
    template <bool kPartial> __device__ __forceinline__ void start_tile(u32 stage, u32 token, u32 live) {
        const u32 first_block = token / C::kBlockSize;
        ids_.move_to(first_block);
#pragma unroll
        for (u32 span = 0; span < C::kTileTokens; span += kSpan) {
            const u32 lane_block = kRows > C::kBlockSize ? row_ / C::kBlockSize : 0;
            const u32 id = ids_.id(first_block + span / C::kBlockSize + lane_block);
            u64 k_block = k_.block(id);
            u64 v_block = v_.block(id);
            if constexpr (C::kBlockSize > C::kTileTokens) {
                k_block = k_.row(k_block, token % C::kBlockSize);
                v_block = v_.row(v_block, token % C::kBlockSize);
            }
            start_span<kPartial>(stage, span, k_, k_block, live);
            start_span<kPartial>(stage + kTileBytes, span, v_, v_block, live);
        }
    }

    static constexpr u32 kColumns = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : kChunks % 2 == 0 ? 2 : kChunks;
    static constexpr u32 kRows = kChunks % 2 == 0 ? kWarpSize / kColumns : 4;
    // Rows that one look-up of block ids covers.
    static constexpr u32 kSpan = max_of(kRows, min_of(C::kTileTokens, C::kBlockSize));
    static_assert(kColumns * kRows <= kWarpSize && kChunks % kColumns == 0);
    static_assert(C::kTileTokens % kSpan == 0 && kSpan % kRows == 0);
    // Where one instruction's rows span blocks, a span is one instruction, and each lane looks up its own block.
    static_assert(kRows <= C::kBlockSize || kSpan == kRows);

    template <bool kPartial>
    __device__ __forceinline__ void start_span(u32 tile, u32 span, const KvRows& rows, u64 block, u32 live) const {
        if (kColumns * kRows < kWarpSize && row_ >= kRows) return;
#pragma unroll
        for (u32 r = 0; r < kSpan; r += kRows) {
            const u64 global = rows.row(block, r);
            // Below 8 rows an instruction, successive ones alternate the row bits that the swizzle reads.
            const u32 flip = ((span + r) & 7 & Swizzled::kMask) * kChunkBytes;
            const u32 shared = tile + (shared_ ^ flip) + (span + r) * kChunks * kChunkBytes;
#pragma unroll
            for (u32 c = 0; c < kChunks; c += kColumns) {
                if constexpr (kPartial) {
                    copy_chunk_async_or_zero(shared + c * kChunkBytes, global + c * kChunkBytes, span + r + row_ < live);
                } else {
                    copy_chunk_async(shared + c * kChunkBytes, global + c * kChunkBytes);
                }
            }
        }
    }

    BlockIds ids_;
    u32 row_;  // of this lane within an instruction
    KvRows k_, v_;
    u32 shared_;  // this lane's chunk in a tile
};

}  // namespace pagesmith
