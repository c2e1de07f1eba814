#line 1 "/pagesmith/device/swizzle.cuh"
// Where the 16-byte chunks of a tile's rows lie in shared memory. Rows are packed without padding; a chunk's column is
// XORed with a few bits of its row, so that the same column of 8 successive rows (one ldmatrix phase) falls on 8 different
// bank groups, and 8 successive chunks (one phase of a linear write) still do.
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

// kChunks: 16-byte chunks a row. 8 rows already differ in (row * kChunks) % 8 by as much as kChunks is odd; the XOR
// supplies what is missing.
template <u32 kChunks> struct Swizzle {
    static constexpr u32 kMask = kChunks % 8 == 0 ? 7 : kChunks % 4 == 0 ? 3 : kChunks % 2 == 0 ? 1 : 0;
    static constexpr u32 kShift = kMask == 7 ? 0 : kMask == 3 ? 1 : 2;

    __device__ static u32 key(u32 row) { return (row >> kShift) & kMask; }
    // Byte offset of chunk `column` of `row`.
    __device__ static u32 offset(u32 row, u32 column) { return (row * kChunks + (column ^ key(row))) * kChunkBytes; }

    // `offset(row, c0 + column)` from `offset(row, c0)`, for a compile-time `column` whose bits do not overlap c0's
    // below the mask: XOR where the swizzle acts, a plain sum (an immediate of the load) above it.
    __device__ static u32 step(u32 offset, u32 column) {
        return (offset ^ ((column & kMask) * kChunkBytes)) + (column & ~kMask) * kChunkBytes;
    }
};

// For 8-byte reads, whose phase is 4 rows by 2 chunks: pairs of chunks are swizzled, a pair stays together.
template <u32 kChunks> struct PairSwizzle {
    static_assert(kChunks % 2 == 0);
    static constexpr u32 kMask = kChunks % 8 == 0 ? 3 : kChunks % 4 == 0 ? 1 : 0;
    static constexpr u32 kShift = kMask == 3 ? 0 : 1;

    __device__ static u32 offset(u32 row, u32 column) {
        return (row * kChunks + (column ^ (((row >> kShift) & kMask) * 2))) * kChunkBytes;
    }
};

}  // namespace pagesmith
