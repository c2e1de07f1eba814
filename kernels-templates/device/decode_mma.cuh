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
#include "pagesmith/convert.cuh"
#include "pagesmith/e4m3.cuh"
#include "pagesmith/kv_copy.cuh"
#include "pagesmith/mma.cuh"
#include "pagesmith/query.cuh"
#include "pagesmith/shared.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/types.cuh"
#include "pagesmith/work.cuh"

namespace pagesmith {

template <class C> struct MmaTraits : C {
    static constexpr bool kE4m3 = is_same<typename C::Kv, dtype::e4m3>;
    // e4m3 values are exact in f16, and their products with an f16 query in the f32 sum.
    struct E4m3Math { using Type = dtype::f16; };
    struct QueryMath { using Type = typename C::Query; };
    template <bool, class A, class B> struct Either { using Type = typename A::Type; };
    template <class A, class B> struct Either<false, A, B> { using Type = typename B::Type; };
    using Math = typename Either<kE4m3, E4m3Math, QueryMath>::Type;

    static_assert(C::kHeadDim % 16 == 0 && C::kHeadTile % 8 == 0 && C::kStages >= 2);
    static_assert(kE4m3 || is_same<typename C::Kv, typename C::Query>);
    static constexpr u32 kRingBytes = C::kWarps * C::kStages * KvCopy<C>::kStageBytes;
    static constexpr u32 kSharedBytes = max_of(kRingBytes, Combine<C>::kBytes);
};

// One warp's share of a work item.
template <class C> class MmaWarp {
  public:
    static constexpr u32 kHeads8 = C::kHeadTile / 8;
    static constexpr u32 kSteps = C::kHeadDim / 16;
    static constexpr u32 kTokens16 = C::kTileTokens / 16;
    static constexpr u32 kChunks = KvCopy<C>::kChunks;
    using Swizzled = Swizzle<kChunks>;
    using Math = typename C::Math;

    __device__ MmaWarp() {
        const u32 lane = lane_id();
        // K: registers of a step are (tokens 0-7, 8-15) of one chunk, then of the next. V, transposed, wants the two chunks of
        // tokens 0-7 first; bytes hold both rows of V^T in one register and take K's order.
        k_lane_ = hoisted(Swizzled::offset(lane % 16, lane / 16));
        v_lane_ = C::kE4m3 ? k_lane_ : hoisted(Swizzled::offset(lane / 16 * 8 + lane % 8, lane / 8 % 2));
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
            m_[n][0] = m_[n][1] = -kInfinity;
            l_[n][0] = l_[n][1] = 0.0f;
#pragma unroll
            for (u32 d = 0; d < kSteps; ++d) o_[n][d][0] = o_[n][d][1] = o_[n][d][2] = o_[n][d][3] = 0.0f;
        }
    }

    __device__ void load_query(u32 shared, float scale) { QueryTile<C>::load(shared, scale, q_, scale_); }

    // Attends to the tile in `stage`. Its rows from `live` on, if any, are zeros and get no weight.
    __device__ __forceinline__ void attend(u32 stage, u32 live) {
        float s[kHeads8][kTokens16][4] = {};
        multiply_k(stage + k_lane_, s);
        u32 p[kHeads8][kTokens16][2];
        poison(s);
        if (live < C::kTileTokens) mask(s, live);
        weigh(s, p);
        multiply_v(stage + KvCopy<C>::kTileBytes + v_lane_, p);
    }

    // Leaves rows and states for the CTA's combine. All ring reads of all warps are over.
    __device__ void leave(const Combine<C>& combine) {
        const u32 warp = warp_id(), g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
            const float l0 = lanes_sum<4, 16>(l_[n][0]);
            const float l1 = lanes_sum<4, 16>(l_[n][1]);
            const u32 head = n * 8 + t * 2;
            if (g == 0) store_shared_f32x4(combine.state(warp, head), {m_[n][0], l0, m_[n][1], l1});
            const u32 row0 = combine.row(warp, head) + g * (C::kE4m3 ? 8 : 4);
            const u32 row1 = combine.row(warp, head + 1) + g * (C::kE4m3 ? 8 : 4);
#pragma unroll
            for (u32 d = 0; d < kSteps; ++d) {
                const float(&o)[4] = o_[n][d];
                if constexpr (C::kE4m3) {  // rows g and g + 8 are dims 2g and 2g + 1
                    store_shared_f32x2(row0 + d * 64, o[0], o[2]);
                    store_shared_f32x2(row1 + d * 64, o[1], o[3]);
                } else {
                    store_shared_f32(row0 + d * 64, o[0]);
                    store_shared_f32(row1 + d * 64, o[1]);
                    store_shared_f32(row0 + d * 64 + 32, o[2]);
                    store_shared_f32(row1 + d * 64 + 32, o[3]);
                }
            }
        }
    }

  private:
    // s[n][i]: tokens 16i + g (+ 8), heads 8n + 2t, + 1.
    __device__ __forceinline__ void multiply_k(u32 k, float (&s)[kHeads8][kTokens16][4]) {
        if constexpr (!C::kE4m3) {
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
                    for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(kAlternate && j % 2 == 1 ? odd : s[n][i], a, q_[n][j]);
                }
            }
            if constexpr (kAlternate) {
#pragma unroll
                for (u32 e = 0; e < 4; ++e) s[0][0][e] += odd[e];
            }
        } else {
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
                        for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(s[n][i], a, q_[n][j + h]);
                    }
                }
            }
        }
    }

    __device__ __forceinline__ void multiply_v(u32 v, const u32 (&p)[kHeads8][kTokens16][2]) {
#pragma unroll
        for (u32 i = 0; i < kTokens16; ++i) {
            if constexpr (!C::kE4m3) {
#pragma unroll
                for (u32 d = 0; d < kSteps; ++d) {
                    u32 a[4];
                    load_matrix_x4_trans(a, row16(v, i, 2 * d));
#pragma unroll
                    for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(o_[n][d], a, p[n][i]);
                }
            } else {
#pragma unroll
                for (u32 d = 0; d < kSteps; d += 2) {
                    u32 r[4];
                    load_bytes<true>(r, row16(v, i, d), d);
#pragma unroll
                    for (u32 h = 0; h < 2 && d + h < kSteps; ++h) {
                        // Even bytes of two tokens: dim 2g, row g of V^T; odd bytes: dim 2g + 1, row g + 8.
                        const u32 a[4] = {decode_even_e4m3(r[2 * h]), decode_odd_e4m3(r[2 * h]),
                                          decode_even_e4m3(r[2 * h + 1]), decode_odd_e4m3(r[2 * h + 1])};
#pragma unroll
                        for (u32 n = 0; n < kHeads8; ++n) mma_16x8x16<Math>(o_[n][d + h], a, p[n][i]);
                    }
                }
            }
        }
    }

    // A NaN code among e4m3 keys made a score infinite or NaN: its head's sum becomes NaN.
    __device__ __forceinline__ void poison(const float (&s)[kHeads8][kTokens16][4]) {
        if constexpr (C::kE4m3) {
#pragma unroll
            for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
                for (u32 i = 0; i < kTokens16; ++i) {
#pragma unroll
                    for (u32 e = 0; e < 4; ++e) l_[n][e % 2] = poison_if_not_finite(l_[n][e % 2], s[n][i][e]);
                }
            }
        }
    }

    // A branch around this, taken for one tile of an item, instead of a second copy of the loop body: two instructions a tile for
    // half the code and compile time.
    __device__ __forceinline__ void mask(float (&s)[kHeads8][kTokens16][4], u32 live) {
#pragma unroll
        for (u32 i = 0; i < kTokens16; ++i) {
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                const bool dead = i * 16 + half * 8 + lane_id() / 4 >= live;
#pragma unroll
                for (u32 n = 0; n < kHeads8; ++n) {
                    if (dead) s[n][i][half * 2] = s[n][i][half * 2 + 1] = -kInfinity;
                }
            }
        }
    }

    // Scores to weights, as B fragments of the second product.
    __device__ __forceinline__ void weigh(float (&s)[kHeads8][kTokens16][4], u32 (&p)[kHeads8][kTokens16][2]) {
        float top[kHeads8][2];
        bool passed = false;
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 i = 0; i < kTokens16; ++i) {
#pragma unroll
                for (u32 e = 0; e < 4; ++e) {
                    top[n][e % 2] = i == 0 && e < 2 ? s[n][i][e] : fmaxf(top[n][e % 2], s[n][i][e]);
                }
            }
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                top[n][h] *= scale_[n][h];
                passed |= top[n][h] > m_[n][h] + kLazyMargin;
            }
        }
        if (__any_sync(kFullWarp, passed)) rescale(top);
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 i = 0; i < kTokens16; ++i) {
                float (&x)[4] = s[n][i];
#pragma unroll
                for (u32 e = 0; e < 4; ++e) {
                    x[e] = exp2_approx(__fmaf_rn(x[e], scale_[n][e % 2], -m_[n][e % 2]));
                    l_[n][e % 2] += x[e];
                }
                p[n][i][0] = transpose_8x8(pack2<Math>(x[0], x[1]));
                p[n][i][1] = transpose_8x8(pack2<Math>(x[2], x[3]));
            }
        }
    }

    // Moves every head's state to the maximum including `top`: rare after a run's first tile.
    __device__ __forceinline__ void rescale(const float (&top)[kHeads8][2]) {
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                const float m = fmaxf(m_[n][h], lanes_max<4, 16>(top[n][h]));
                const float keep = rescale_factor(m_[n][h], m);
                m_[n][h] = m;
                l_[n][h] *= keep;
#pragma unroll
                for (u32 d = 0; d < kSteps; ++d) {
                    o_[n][d][h] *= keep;
                    o_[n][d][h + 2] *= keep;
                }
            }
        }
    }

    // Address of 16 tokens' rows, from this lane's address in the tile. `column` is a multiple of 2.
    __device__ static u32 row16(u32 tile, u32 i, u32 column) {
        return Swizzled::step(tile, column) + i * 16 * kChunks * kChunkBytes;
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

    u32 q_[kHeads8][kSteps][2];    // B fragments of Q^T
    float scale_[kHeads8][2];      // raw score to exp2 argument
    float m_[kHeads8][2];          // running maximum, the same in all lanes of a head
    float l_[kHeads8][2];          // this lane's share of the sum
    float o_[kHeads8][kSteps][4];  // O^T, unnormalised
    u32 k_lane_, v_lane_;
};

template <class Config> __device__ __forceinline__ void decode_mma(const DecodeParams& p) {
    using C = MmaTraits<Config>;
    static_assert(C::kSharedBytes == C::kDeclaredSharedBytes);
    // Ring: [kStages][kWarps][K, V]. The queries pass through the last stage, which is filled last.
    constexpr u32 kStageStride = C::kWarps * KvCopy<C>::kStageBytes;
    constexpr u32 kQueryOffset = (C::kStages - 1) * kStageStride;
    static_assert(kQueryOffset + QueryTile<C>::kBytes <= C::kSharedBytes);
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
    MmaWarp<C> warp;
    warp.load_query(base + kQueryOffset, p.scale_log2 * p.k_scale * (C::kE4m3 ? 1.0f / kE4m3Gain : 1.0f));
    __syncthreads();

    u32 stage = ring;
    u32 refill = ring + kQueryOffset;
#pragma unroll 1
    for (u32 i = 0; i < run.tiles; ++i) {
        wait_copies<C::kStages - 2>();
        __syncwarp();  // other lanes' copies of this tile have landed, and their reads of the one to refill are over
        start_tile(i + C::kStages - 1, refill);
        warp.attend(stage, item.kv_end - run.begin - i * C::kTileTokens);
        refill = stage;
        stage = stage == ring + kQueryOffset ? ring : stage + kStageStride;
    }

    wait_copies<0>();
    __syncthreads();  // the ring becomes the combine's rows
    const Combine<C> combine(base);
    warp.leave(combine);
    __syncthreads();
    combine.write(p, item, p.v_scale * (C::kE4m3 ? 1.0f / kE4m3Gain : 1.0f));
}

}  // namespace pagesmith
