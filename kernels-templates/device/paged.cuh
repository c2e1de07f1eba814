#line 1 "/pagesmith/device/paged.cuh"
// From a token's position to the address of its K or V row: table -> block id -> 64-bit address.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/global.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// The ids of one sequence's blocks. dense: int [seqs, table_stride]; csr: int indices[nnz] from indptr[seq].
template <class Table> __device__ __forceinline__ u64 block_row(const DecodeParams& p, u32 seq) {
    if constexpr (is_same<Table, table::csr>) {
        return p.table + u64(load_u32(p.table_indptr + u64(seq) * sizeof(int))) * sizeof(int);
    } else {
        return p.table + seq * p.table_stride * sizeof(int);
    }
}

// The block ids of a warp's run of tokens, 32 at a time, one a lane: a coalesced load a window instead of a load a row,
// and the next window is on its way while this one is used. Entries outside [begin, end) are never read: a table's
// tail may hold anything.
class BlockIds {
  public:
    __device__ BlockIds(u64 row, u32 begin, u32 end) : row_(hoisted(row)), end_(end), first_(begin) {
        current_ = fetch(begin);
        next_ = fetch(begin + kWarpSize);
    }

    // Before `id`: moves the window so that it holds `block`, and the blocks after it up to a multiple of 32 from
    // `begin`. Called in ascending order by all lanes.
    __device__ void move_to(u32 block) {
        if (block - first_ >= kWarpSize) {
            first_ += kWarpSize;
            current_ = next_;
            next_ = fetch(first_ + kWarpSize);
        }
    }

    // Past `end` this is 0, a block that exists, for copies that read nothing from it.
    __device__ u32 id(u32 block) const { return __shfl_sync(kFullWarp, current_, block - first_); }

  private:
    __device__ u32 fetch(u32 begin) const {
        const u32 block = begin + lane_id();
        return block < end_ ? load_u32(mad_wide(block, u32(sizeof(int)), row_)) : 0;
    }

    u64 row_;
    u32 end_, first_;
    u32 current_, next_;
};

// K or V of one KV head, as one lane sees it. Strides in bytes. [blocks, block_size, kv_heads, D] in any order of the
// outer three axes.
struct KvRows {
    u64 base;          // this lane's chunk of row `row` of block 0
    u64 block_stride;  // 64 bits: block * stride passes 2^32 in real caches
    u32 token_stride;  // the host checks block_size * token_stride < 2^32, so that a row step is one IMAD.WIDE

    __device__ u64 block(u32 id) const { return mad_wide(id, block_stride, base); }
    __device__ u64 row(u64 block, u32 row) const { return mad_wide(row, token_stride, block); }
};

template <class C> __device__ __forceinline__ KvRows k_rows(const DecodeParams& p, u32 head, u32 row, u32 column) {
    constexpr u32 kBytes = C::Kv::kBytes;
    const u32 token_stride = u32(p.k_token_stride) * kBytes;
    return {hoisted(p.k + head * (p.k_head_stride * kBytes) + u64(row) * token_stride + column * kChunkBytes),
            hoisted(u64(p.k_block_stride) * kBytes), hoisted(token_stride)};
}

template <class C> __device__ __forceinline__ KvRows v_rows(const DecodeParams& p, u32 head, u32 row, u32 column) {
    constexpr u32 kBytes = C::Kv::kBytes;
    const u32 token_stride = u32(p.v_token_stride) * kBytes;
    return {hoisted(p.v + head * (p.v_head_stride * kBytes) + u64(row) * token_stride + column * kChunkBytes),
            hoisted(u64(p.v_block_stride) * kBytes), hoisted(token_stride)};
}

}  // namespace pagesmith
