#line 1 "/pagesmith/device/combine.cuh"
// The end of a work item: each warp leaves its unnormalised rows and softmax states in shared memory, then the CTA merges them
// and writes either the output or the item's partial slot.
#pragma once
#include "pagesmith/abi.cuh"
#include "pagesmith/convert.cuh"
#include "pagesmith/global.cuh"
#include "pagesmith/shared.cuh"
#include "pagesmith/softmax.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// C: kHeadDim, kGroup, kWarps, kHeadTile, kLse, Query, Kv.
template <class C> class Combine {
  public:
    // Addresses. float rows[kWarps][kHeadTile][kRow]: the 4 floats of padding put the heads 2t of an mma fragment's column pair on
    // different banks (2 * kRow % 32 == 8), and keep rows 16-byte aligned.
    static constexpr u32 kRow = C::kHeadDim + 4;
    static_assert(kRow % 16 == 4);
    // float2 states[kWarps][kHeadTile] = (m, l), after the rows.
    static constexpr u32 kRowsBytes = C::kWarps * C::kHeadTile * kRow * sizeof(float);
    static constexpr u32 kBytes = kRowsBytes + C::kWarps * C::kHeadTile * sizeof(float2);
    static_assert(kBytes == 4 * C::kWarps * C::kHeadTile * (C::kHeadDim + 6));

    __device__ explicit Combine(u32 shared) : shared_(shared) {}

    __device__ u32 row(u32 warp, u32 head) const { return shared_ + (warp * C::kHeadTile + head) * (kRow * sizeof(float)); }
    __device__ u32 state(u32 warp, u32 head) const {
        return shared_ + kRowsBytes + (warp * C::kHeadTile + head) * sizeof(float2);
    }

    // After a barrier. A warp takes a head, a lane 4 dims: conflict-free reads, full sectors out.
    __device__ void write(const DecodeParams& p, const WorkItem& item, float v_scale) const {
        const u32 live = min(C::kHeadTile, C::kGroup - item.head_begin);
        const u32 first_head = item.kv_head * C::kGroup + item.head_begin;
        for (u32 head = warp_id(); head < live; head += C::kWarps) {
            float m[C::kWarps], l[C::kWarps];
            float m_all = -kInfinity;
#pragma unroll
            for (u32 w = 0; w < C::kWarps; ++w) {
                const float2 ml = load_shared_f32x2(state(w, head));
                m[w] = ml.x;
                l[w] = ml.y;
                m_all = fmaxf(m_all, ml.x);
            }
            float l_all = 0.0f;
#pragma unroll
            for (u32 w = 0; w < C::kWarps; ++w) {
                m[w] = rescale_factor(m[w], m_all);
                l_all += m[w] * l[w];
            }
            const float norm = l_all == 0.0f ? 0.0f : v_scale / l_all;  // 0: no live token
#pragma unroll
            for (u32 w = 0; w < C::kWarps; ++w) m[w] *= norm;

            write_lse(p, item, first_head, head, l_all == 0.0f ? -kInfinity : m_all + log2_approx(l_all));
#pragma unroll
            for (u32 first = 0; first < C::kHeadDim; first += kWarpSize * 4) {
                const u32 d = first + lane_id() * 4;
                if (first + kWarpSize * 4 > C::kHeadDim && d >= C::kHeadDim) break;
                float4 sum = {0, 0, 0, 0};
#pragma unroll
                for (u32 w = 0; w < C::kWarps; ++w) {
                    const float4 x = load_shared_f32x4(row(w, head) + d * sizeof(float));
                    sum.x += m[w] * x.x;
                    sum.y += m[w] * x.y;
                    sum.z += m[w] * x.z;
                    sum.w += m[w] * x.w;
                }
                write_dims(p, item, first_head, head, d, sum);
            }
        }
    }

  private:
    __device__ static void write_lse(const DecodeParams& p, const WorkItem& item, u32 first_head, u32 head, float lse2) {
        if (lane_id() != 0) return;
        if (item.slot != kNoSlot) {
            store_f32(p.partial_lse + (u64(item.slot) * C::kHeadTile + head) * sizeof(float), lse2);
        } else if constexpr (C::kLse) {
            store_f32(p.lse + (u64(item.q_token) * p.q_heads + first_head + head) * sizeof(float), lse2 * kLn2);
        }
    }

    __device__ static void write_dims(const DecodeParams& p, const WorkItem& item, u32 first_head, u32 head, u32 d, float4 x) {
        if constexpr (is_same<typename C::Kv, dtype::e4m3>) {
            x = {poison_if_not_finite(x.x, x.x), poison_if_not_finite(x.y, x.y), poison_if_not_finite(x.z, x.z),
                 poison_if_not_finite(x.w, x.w)};
        }
        if (item.slot != kNoSlot) {
            const u64 row = u64(item.slot) * C::kHeadTile + head;
            store_f32x4(p.partial_out + (row * C::kHeadDim + d) * sizeof(float), x);
        } else {
            const i64 element = item.q_token * p.out_token_stride + (first_head + head) * p.out_head_stride + d;
            store_u32x2(p.out + element * 2, pack2<typename C::Query>(x.x, x.y), pack2<typename C::Query>(x.z, x.w));
        }
    }

    u32 shared_;
};

}  // namespace pagesmith
