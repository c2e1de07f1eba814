#line 1 "/pagesmith/device/mma_softmax.cuh"
// Softmax on the score fragments of a tile: each lane keeps the states of the heads whose columns it holds (8n + 2t, + 1), and
// the same lane holds those heads' columns of O^T, so that nothing is broadcast.
#pragma once
#include "pagesmith/convert.cuh"
#include "pagesmith/mma.cuh"
#include "pagesmith/mma_tile.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

template <class C> class MmaSoftmax {
  public:
    using Tile = MmaTile<C>;
    using Scores = typename Tile::Scores;
    static constexpr u32 kHeads8 = Tile::kHeads8;
    static constexpr u32 kTokens16 = Tile::kTokens16;

    float scale[kHeads8][2];  // turns a raw score into exp2's argument

    __device__ MmaSoftmax() {
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
            m_[n][0] = m_[n][1] = -kInfinity;
            l_[n][0] = l_[n][1] = 0.0f;
            rounded_[n][0] = rounded_[n][1] = rounded_[n][2] = rounded_[n][3] = 0.0f;
        }
    }

    // Raw scores of a tile, whose tokens from `live` on do not exist, to weights; rescales `o` where a maximum moved.
    __device__ __forceinline__ void weigh(Scores& s, u32 live, typename Tile::Weights& p, typename Tile::Outputs& o) {
        if constexpr (C::kE4m3) poison(s);
        if (live < C::kTileTokens) mask(s, live);
        float top[kHeads8][2];
        bool passed = false;
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                top[n][h] = s[n][0][h];
#pragma unroll
                for (u32 e = 1; e < kTokens16 * 2; ++e) top[n][h] = fmaxf(top[n][h], s[n][e / 2][h + e % 2 * 2]);
                top[n][h] *= scale[n][h];
                passed |= top[n][h] > m_[n][h] + kLazyMargin;
            }
        }
        if (__any_sync(kFullWarp, passed)) rescale(top, o);
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 i = 0; i < kTokens16; ++i) {
                float (&x)[4] = s[n][i];
#pragma unroll
                for (u32 e = 0; e < 4; ++e) {
                    x[e] = exp2_approx(__fmaf_rn(x[e], scale[n][e % 2], -m_[n][e % 2]));
                    l_[n][e % 2] += x[e];
                }
                p[n][i][0] = transpose_8x8(pack2<typename C::Math>(x[0], x[1]));
                p[n][i][1] = transpose_8x8(pack2<typename C::Math>(x[2], x[3]));
                mma_16x8x16<typename C::Math>(rounded_[n], kOnes, p[n][i]);
            }
        }
    }

    // (m, l) of heads 8n + 2t and + 1, over all lanes.
    __device__ __forceinline__ float4 states(u32 n) const {
        return {m_[n][0], lanes_sum<4, 16>(l_[n][0]), m_[n][1], lanes_sum<4, 16>(l_[n][1])};
    }

    // What O of head 8n + 2t + h is multiplied by so that dividing it by l divides it by the sum of the weights that it was made
    // of, which are rounded. A token with most of the weight would otherwise be off by its own rounding, 2^-9 on average in
    // bf16: more than all other errors. One product in 16 (d128) buys that.
    __device__ __forceinline__ float undo_rounding(u32 n, u32 h, float l) const {
        return rounded_[n][h] == 0.0f ? 1.0f : l / rounded_[n][h];  // 0: no token
    }

  private:
    static constexpr u32 kOne2 = is_same<typename C::Math, dtype::bf16> ? 0x3f803f80 : 0x3c003c00;
    static constexpr u32 kOnes[4] = {kOne2, kOne2, kOne2, kOne2};  // an A fragment

    // A NaN code among e4m3 keys made a score infinite or NaN: its head's sum becomes NaN.
    __device__ __forceinline__ void poison(const Scores& s) {
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 i = 0; i < kTokens16; ++i) {
#pragma unroll
                for (u32 e = 0; e < 4; ++e) l_[n][e % 2] = poison_if_not_finite(l_[n][e % 2], s[n][i][e]);
            }
        }
    }

    // A branch around this, taken for one tile of an item, instead of a second copy of the loop body: two instructions a tile for
    // half the code and compile time.
    __device__ __forceinline__ static void mask(Scores& s, u32 live) {
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

    // Moves every head's state to the maximum including `top`: rare after a run's first tile.
    __device__ __forceinline__ void rescale(const float (&top)[kHeads8][2], typename Tile::Outputs& o) {
#pragma unroll
        for (u32 n = 0; n < kHeads8; ++n) {
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                const float m = fmaxf(m_[n][h], lanes_max<4, 16>(top[n][h]));
                const float keep = rescale_factor(m_[n][h], m);
                m_[n][h] = m;
                l_[n][h] *= keep;
                rounded_[n][h] *= keep;
#pragma unroll
                for (u32 d = 0; d < Tile::kSteps; ++d) {
                    o[n][d][h] *= keep;
                    o[n][d][h + 2] *= keep;
                }
            }
        }
    }

    float m_[kHeads8][2];  // running maximum, the same in all lanes of a head
    float l_[kHeads8][2];  // this lane's share of the sum
    float rounded_[kHeads8][4];  // C fragment of ones times P^T: sums over all lanes of the weights as O sees them (c0, c1)
};

}  // namespace pagesmith
