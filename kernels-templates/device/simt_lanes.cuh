#line 1 "/pagesmith/device/simt_lanes.cuh"
// What lanes of the CUDA-core engine do with a row: 16 bytes of it a lane, and sums over the lanes of a token.
#pragma once
#include "pagesmith/convert.cuh"
#include "pagesmith/e4m3.cuh"
#include "pagesmith/global.cuh"
#include "pagesmith/types.cuh"

namespace pagesmith {

// 16 bytes of a KV row.
template <class Kv> struct Chunk {
    static constexpr u32 kElements = kChunkBytes / Kv::kBytes;

    u32 words[4] = {};

    __device__ void load(u64 address) {
        const uint4 x = load_u32x4(address);
        words[0] = x.x;
        words[1] = x.y;
        words[2] = x.z;
        words[3] = x.w;
    }

    // e4m3: times kE4m3Gain, a NaN code as an infinity.
    __device__ void to_f32(float (&x)[kElements]) const {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            if constexpr (is_same<Kv, dtype::e4m3>) {
                const float2 even = unpack2<dtype::f16>(decode_even_e4m3(words[i]));
                const float2 odd = unpack2<dtype::f16>(decode_odd_e4m3(words[i]));
                x[i * 4] = even.x;
                x[i * 4 + 1] = odd.x;
                x[i * 4 + 2] = even.y;
                x[i * 4 + 3] = odd.y;
            } else {
                const float2 pair = unpack2<Kv>(words[i]);
                x[i * 2] = pair.x;
                x[i * 2 + 1] = pair.y;
            }
        }
    }
};

// Sums x[0..kN] over groups of kLanes lanes, spread: lane j of a group ends with the sum of x[j / (kLanes / kN)] (the first kN / kLanes
// sums from j * (kN / kLanes) where a lane has several). Halving what is exchanged at each step takes kN + log2 shuffles where reducing
// one by one takes kN * log2(kLanes).
template <u32 kN, u32 kLanes> __device__ __forceinline__ void spread_sums(float (&x)[kN]) {
    u32 n = kN;
#pragma unroll
    for (u32 d = kLanes / 2; d >= 1; d /= 2) {
        if (n > 1) {
            n /= 2;
            const bool upper = lane_id() & d;
#pragma unroll
            for (u32 i = 0; i < kN / 2; ++i) {
                if (i < n) {
                    const float sent = upper ? x[i] : x[i + n];
                    const float kept = upper ? x[i + n] : x[i];
                    x[i] = kept + __shfl_xor_sync(kFullWarp, sent, d);
                }
            }
        } else {
            x[0] += __shfl_xor_sync(kFullWarp, x[0], d);
        }
    }
}

}  // namespace pagesmith
