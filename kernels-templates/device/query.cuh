#line 1 "/pagesmith/device/query.cuh"
// The queries of a work item as B fragments of m16n8k16, held in registers for the whole kernel.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/async_copy.cuh"
#include "pagesmith/convert.cuh"
#include "pagesmith/e4m3.cuh"
#include "pagesmith/mma.cuh"
#include "pagesmith/shared.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/swizzle.cuh"
#include "pagesmith/types.cuh"
#include "pagesmith/work.cuh"

namespace pagesmith {

// Rows are read once a CTA, through shared memory ([kHeadTile, D], swizzled): each warp reading fragments from global memory
// costs 2.6 % more sectors than the whole KV cache of a Llama-3-8B decode step.
template <class C> class QueryTile {
  public:
    static constexpr u32 kChunks = C::kHeadDim * 2 / kChunkBytes;  // a row
    static constexpr u32 kBytes = C::kHeadTile * kChunks * kChunkBytes;
    static constexpr u32 kHeads8 = C::kHeadTile / 8;  // n-tiles
    static constexpr u32 kSteps = C::kHeadDim / 16;   // k-steps
    static constexpr bool kE4m3 = is_same<typename C::Kv, dtype::e4m3>;
    // e4m3 fits f16 exactly and bf16 does not have its bits to spare after scaling: fp8 KV always multiplies in f16.
    using Math = typename C::Math;

    __device__ static void start_copy(const DecodeParams& p, const WorkItem& item, u32 shared) {
        const u32 live = min(C::kHeadTile, C::kGroup - item.head_begin);
        const u64 rows = p.q + (item.q_token * p.q_token_stride + (item.kv_head * C::kGroup + item.head_begin) * p.q_head_stride) * 2;
#pragma unroll
        for (u32 first = 0; first < C::kHeadTile * kChunks; first += C::kThreads) {
            const u32 i = first + threadIdx.x;
            const u32 row = i / kChunks;
            const u32 column = i % kChunks;
            if (C::kHeadTile * kChunks % C::kThreads != 0 && row >= C::kHeadTile) break;
            copy_chunk_async_or_zero(shared + offset(row, column), rows + row * p.q_head_stride * 2 + column * kChunkBytes, row < live);
        }
    }

    // After a barrier. scale: log2 softmax scale, K scale included. score_scale[n][j] becomes what turns a raw score of head
    // 8n + 2t + j into exp2's argument.
    __device__ static void load(u32 shared, float scale, u32 (&q)[kHeads8][kSteps][2], float (&score_scale)[kHeads8][2]) {
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
            score_scale[n][0] = score_scale[n][1] = scale;
            if constexpr (kE4m3) {
                load_for_bytes(shared, n, scale, q[n], score_scale[n]);
            } else {
                load_for_halves(shared, n, q[n]);
            }
#pragma unroll
            for (u32 h = 0; h < 2; ++h) score_scale[n][h] = fmaxf(score_scale[n][h], kSmallestScale);
        }
    }

  private:
    using Swizzled = Swizzle<kChunks>;
    using PairSwizzled = PairSwizzle<kChunks>;

    __device__ static u32 offset(u32 row, u32 column) {
        return kE4m3 ? PairSwizzled::offset(row, column) : Swizzled::offset(row, column);
    }

    // b0 of k-step j is chunk 2j, b1 chunk 2j + 1, in K's order of dims.
    __device__ static void load_for_halves(u32 shared, u32 n, u32 (&q)[kSteps][2]) {
        const u32 lane = lane_id();
#pragma unroll
        for (u32 j = 0; j + 1 < kSteps; j += 2) {
            u32 r[4];
            load_matrix_x4(r, shared + Swizzled::offset(n * 8 + lane % 8, 2 * j + lane / 8));
            q[j][0] = r[0];
            q[j][1] = r[1];
            q[j + 1][0] = r[2];
            q[j + 1][1] = r[3];
        }
        if constexpr (kSteps % 2 == 1) {
            load_matrix_x2(q[kSteps - 1], shared + Swizzled::offset(n * 8 + lane % 8, 2 * (kSteps - 1) + lane / 8 % 2));
        }
    }

    // A register of K bytes holds dims 4t..4t+3 of a 16-dim step: even ones become k = 2t, 2t+1, odd ones k = 2t+8, 2t+9.
    __device__ static void load_for_bytes(u32 shared, u32 n, float scale, u32 (&q)[kSteps][2], float (&score_scale)[2]) {
        const u32 g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (u32 j = 0; j < kSteps; ++j) {
            const u32 address = shared + PairSwizzled::offset(n * 8 + g, 2 * j + t / 2) + t % 2 * 8;
            const uint2 x = load_shared_u32x2(address);
            q[j][0] = __byte_perm(x.x, x.y, 0x5410);
            q[j][1] = __byte_perm(x.x, x.y, 0x7632);
        }
        if constexpr (is_same<typename C::Query, dtype::bf16>) narrow_to_f16(q, score_scale);
    }

    // bf16 queries to f16, by a power of two per head that puts the head's largest element near 2^14: exact but for elements
    // 2^-28 of the largest and smaller. The owner of a head's scores undoes it.
    __device__ static void narrow_to_f16(u32 (&q)[kSteps][2], float (&score_scale)[2]) {
        float largest = 0.0f;
#pragma unroll
        for (u32 j = 0; j < kSteps; ++j) {
#pragma unroll
            for (u32 i = 0; i < 2; ++i) {
                const float2 x = unpack2<dtype::bf16>(q[j][i]);
                largest = fmaxf(largest, fmaxf(fabsf(x.x), fabsf(x.y)));
            }
        }
        // Biased; from 15 up both factors below are normal.
        const u32 exponent = max(__float_as_uint(lanes_max<1, 2>(largest)) >> 23, 15u);
        const float shrink = __uint_as_float((127 + 14 + 127 - exponent) << 23);
        const float grow = __uint_as_float((exponent - 14) << 23);
#pragma unroll
        for (u32 j = 0; j < kSteps; ++j) {
#pragma unroll
            for (u32 i = 0; i < 2; ++i) {
                const float2 x = unpack2<dtype::bf16>(q[j][i]);
                q[j][i] = pack2<dtype::f16>(x.x * shrink, x.y * shrink);
            }
        }
        // Head g's factor sits in lanes 4g..4g+3; this lane keeps the scores of heads 2t and 2t + 1.
        const u32 t = lane_id() % 4;
        score_scale[0] *= __shfl_sync(kFullWarp, grow, 8 * t);
        score_scale[1] *= __shfl_sync(kFullWarp, grow, 8 * t + 4);
    }
};

}  // namespace pagesmith
