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
        ids_.move_to(token / C::kBlockSize);
        if (live >= C::kTileTokens) {
            start_full(stage, token);
        } else {
            start_partial(stage, token, live);
        }
    }

  private:
    static constexpr u32 kColumns = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : kChunks % 2 == 0 ? 2 : kChunks;
    static constexpr u32 kRows = kChunks % 2 == 0 ? kWarpSize / kColumns : 4;
    // Rows that one look-up of block ids covers.
    static constexpr u32 kSpan = max_of(kRows, min_of(C::kTileTokens, C::kBlockSize));
    static_assert(kColumns * kRows <= kWarpSize && kChunks % kColumns == 0);
    static_assert(C::kTileTokens % kSpan == 0 && kSpan % kRows == 0);
    // Where one instruction's rows span blocks, a span is one instruction, and each lane looks up its own block.
    static_assert(kRows <= C::kBlockSize || kSpan == kRows);

    __device__ __forceinline__ void start_full(u32 stage, u32 token) const {
#pragma unroll
        for (u32 span = 0; span < C::kTileTokens; span += kSpan) {
            const u32 id = ids_.id(token / C::kBlockSize + span / C::kBlockSize + lane_block());
            const u32 offset = C::kBlockSize > C::kTileTokens ? token % C::kBlockSize : 0;
            start_span(stage, span, k_, k_.row(k_.block(id), offset));
            start_span(stage + kTileBytes, span, v_, v_.row(v_.block(id), offset));
        }
    }

    __device__ __forceinline__ void start_span(u32 tile, u32 span, const KvRows& rows, u64 first) const {
        if (idle()) return;
#pragma unroll
        for (u32 r = 0; r < kSpan; r += kRows) {
            const u64 global = rows.row(first, r);
            const u32 shared = tile + shared_row(span + r);
#pragma unroll
            for (u32 c = 0; c < kChunks; c += kColumns) copy_chunk_async(shared + c * kChunkBytes, global + c * kChunkBytes);
        }
    }

    // Rolled up: an item has at most one partial tile, and unrolled it would make the kernel a fifth larger.
    __device__ __forceinline__ void start_partial(u32 stage, u32 token, u32 live) const {
#pragma unroll 1
        for (u32 r = 0; r < C::kTileTokens; r += kRows) {
            const u32 id = ids_.id((token + r) / C::kBlockSize + lane_block());
            if (idle()) continue;
            const u32 offset = kRows > C::kBlockSize ? 0 : (token + r) % C::kBlockSize;
            const u64 k = k_.row(k_.block(id), offset);
            const u64 v = v_.row(v_.block(id), offset);
            const u32 shared = stage + shared_row(r);
#pragma unroll
            for (u32 c = 0; c < kChunks; c += kColumns) {
                copy_chunk_async_or_zero(shared + c * kChunkBytes, k + c * kChunkBytes, r + row_ < live);
                copy_chunk_async_or_zero(shared + kTileBytes + c * kChunkBytes, v + c * kChunkBytes, r + row_ < live);
            }
        }
    }

    __device__ bool idle() const { return kColumns * kRows < kWarpSize && row_ >= kRows; }
    // Block of this lane's row, from that of the instruction's first row.
    __device__ u32 lane_block() const { return kRows > C::kBlockSize ? row_ / C::kBlockSize : 0; }
    // This lane's chunk in a tile, for the instruction whose rows start at `row`. Below 8 rows an instruction, successive ones
    // alternate the row bits that the swizzle reads.
    __device__ u32 shared_row(u32 row) const {
        return (shared_ ^ (row & 7 & Swizzled::kMask) * kChunkBytes) + row * kChunks * kChunkBytes;
    }

    BlockIds ids_;
    u32 row_;  // of this lane within an instruction
    KvRows k_, v_;
    u32 shared_;  // this lane's chunk in a tile
};

}  // namespace pagesmith
