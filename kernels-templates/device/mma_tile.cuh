#line 1 "/pagesmith/device/mma_tile.cuh"
// The two products of a tile in a warp's ring: S^T = K Q^T and O^T += V^T P^T.
#pragma once
#include "pagesmith/e4m3.cuh"
#include "pagesmith/kv_copy.cuh"
#include "pagesmith/mma.cuh"
#include "pagesmith/swizzle.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// 16-bit elements go to the tensor cores as ldmatrix brings them. Bytes come as pairs where 16-bit elements are expected, and are
// decoded in registers into exactly one A fragment a 16-byte chunk:
//   K    a register holds codes 4t..4t+3 of token g; the even two are k = 2t, 2t+1, the odd two k = 2t+8, 2t+9 (the queries' dims
//        are ordered to match);
//   V^T  a register holds codes 2g, 2g+1 of tokens 2t and 2t+1; the even two are row g, the odd two row g+8 of the fragment, so
//        that rows g and g+8 of O^T are dims 2g and 2g+1 of the chunk.
template <class C> class MmaTile {
  public:
    static constexpr u32 kHeads8 = C::kHeadTile / 8;
    static constexpr u32 kSteps = C::kHeadDim / 16;
    static constexpr u32 kTokens16 = C::kTileTokens / 16;
    using Scores = float[kHeads8][kTokens16][4];   // [n][i]: tokens 16i + g (c0, c1) and + 8, heads 8n + 2t and + 1
    using Queries = u32[kHeads8][kSteps][2];       // B fragments of Q^T
    using Weights = u32[kHeads8][kTokens16][2];    // B fragments of P^T
    using Outputs = float[kHeads8][kSteps][4];     // C fragments of O^T

    __device__ MmaTile() {
        const u32 lane = lane_id();
        // K: registers of a step are (tokens 0-7, 8-15) of one chunk, then of the next. V^T of 16-bit elements wants the two chunks of
        // tokens 0-7 first; bytes hold both rows of V^T in one register and take K's order.
        k_lane_ = hoisted(Swizzled::offset(lane % 16, lane / 16));
        v_lane_ = C::kE4m3 ? k_lane_ : hoisted(Swizzled::offset(lane / 16 * 8 + lane % 8, lane / 8 % 2));
    }

    __device__ __forceinline__ void multiply_k(u32 tile, const Queries& q, Scores& s) const {
        const u32 k = tile + k_lane_;
        if constexpr (C::kE4m3) {
#pragma unroll
            for (u32 j = 0; j < kSteps; j += 2) {
#pragma unroll
                for (u32 i = 0; i < kTokens16; ++i) {
                    u32 r[4];
                    load_bytes<false>(r, row16(k, i, j), j);
#pragma unroll
                    for (u32 h = 0; h < 2 && j + h < kSteps; ++h) {
                        const u32 a[4] = {decode_even_e4m3(r[2 * h]), decode_even_e4m3(r[2 * h + 1]),
                                          decode_odd_e4m3(r[2 * h]), decode_odd_e4m3(r[2 * h + 1])};
#pragma unroll
                        for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(s[n][i], a, q[n][j + h]);
                    }
                }
            }
        } else {
            // Products into the same registers wait for each other. Where a tile has no second sum to alternate with, even and odd
            // steps get one each (e4m3 fills the wait with decoding).
            constexpr bool kAlternate = kTokens16 * kHeads8 == 1;
            float odd[4] = {};
#pragma unroll
            for (u32 j = 0; j < kSteps; ++j) {
#pragma unroll
                for (u32 i = 0; i < kTokens16; ++i) {
                    u32 a[4];
                    load_matrix_x4(a, row16(k, i, 2 * j));
#pragma unroll
                    for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(kAlternate && j % 2 == 1 ? odd : s[n][i], a, q[n][j]);
                }
            }
            if constexpr (kAlternate) {
#pragma unroll
                for (u32 e = 0; e < 4; ++e) s[0][0][e] += odd[e];
            }
        }
    }

    __device__ __forceinline__ void multiply_v(u32 tile, const Weights& p, Outputs& o) const {
        const u32 v = tile + v_lane_;
#pragma unroll
        for (u32 i = 0; i < kTokens16; ++i) {
            if constexpr (C::kE4m3) {
#pragma unroll
                for (u32 d = 0; d < kSteps; d += 2) {
                    u32 r[4];
                    load_bytes<true>(r, row16(v, i, d), d);
#pragma unroll
                    for (u32 h = 0; h < 2 && d + h < kSteps; ++h) {
                        const u32 a[4] = {decode_even_e4m3(r[2 * h]), decode_odd_e4m3(r[2 * h]),
                                          decode_even_e4m3(r[2 * h + 1]), decode_odd_e4m3(r[2 * h + 1])};
#pragma unroll
                        for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(o[n][d + h], a, p[n][i]);
                    }
                }
            } else {
#pragma unroll
                for (u32 d = 0; d < kSteps; ++d) {
                    u32 a[4];
                    load_matrix_x4_trans(a, row16(v, i, 2 * d));
#pragma unroll
                    for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(o[n][d], a, p[n][i]);
                }
            }
        }
    }

  private:
    using Math = typename C::Math;
    using Swizzled = typename KvCopy<C>::Swizzled;
    static constexpr u32 kChunks = KvCopy<C>::kChunks;

    // Address of 16 tokens' rows, from this lane's address in the tile. `column` is a multiple of 2.
    __device__ static u32 row16(u32 lane, u32 i, u32 column) {
        return Swizzled::step(lane, column) + i * 16 * kChunks * kChunkBytes;
    }

    // Chunks `column` and, where the row has it, `column` + 1 of 16 tokens.
    template <bool kTrans> __device__ static void load_bytes(u32 (&r)[4], u32 address, u32 column) {
        if (column + 1 < kChunks) {
            if constexpr (kTrans) load_matrix_x4_trans(r, address); else load_matrix_x4(r, address);
        } else {
            u32 half[2];
            if constexpr (kTrans) load_matrix_x2_trans(half, address); else load_matrix_x2(half, address);
            r[0] = half[0];
            r[1] = half[1];
        }
    }

    u32 k_lane_, v_lane_;  // this lane's row address of ldmatrix, relative to a tile
};

}  // namespace pagesmith
