// A pipelined tile loop as attention kernels have it: cp.async double buffer, ldmatrix, mma, a vote and shuffles.
typedef unsigned int u32;
typedef unsigned long long u64;
struct Params {
    u64 k;            // bf16, [blocks][tiles][warps][2048]: 4 KiB a warp and tile
    u64 out;          // float4, [blocks][threads]
    long long stride; // bytes from one tile to the next
    float scale;
    u32 tiles;
};
__device__ __forceinline__ void copy16(u32 to, const void* from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load_matrix(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const u32 (&a)[4], const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern __shared__ __align__(16) unsigned char smem[];
extern "C" __global__ void __launch_bounds__(128, 4) pipeline(const __grid_constant__ Params p) {
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    u32 s = (u32)__cvta_generic_to_shared(smem) + warp * 8192;
    const char* k = (const char*)p.k + (long long)blockIdx.x * p.tiles * p.stride + warp * 4096;
    float c[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[i][j] = 0;
    u32 q[2] = {0x3f803f80u, 0x3f803f80u};
    for (int i = 0; i < 8; i++) copy16(s + i * 512 + ((i * 2 + (lane >> 4)) & 7 ^ (lane & 15)) * 16 + (lane >> 4) * 256, k + i * 512 + lane * 16, 16);
    asm volatile("cp.async.commit_group;" ::: "memory");
    float m = -__int_as_float(0x7f800000), sum = 0;
    for (u32 t = 0; t < p.tiles; t++) {
        if (t + 1 < p.tiles) {
            k += p.stride;
            for (int i = 0; i < 8; i++)
                copy16(s + ((t + 1) & 1) * 4096 + i * 512 + ((i * 2 + (lane >> 4)) & 7 ^ (lane & 15)) * 16 + (lane >> 4) * 256, k + i * 512 + lane * 16, 16);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        u32 a[4];
        for (int i = 0; i < 4; i++) {
            load_matrix(a, s + (t & 1) * 4096 + (lane & 15) * 256 + (((lane >> 4) + 2 * i) ^ (lane & 7)) * 16);
            mma(c[i], a, q);
        }
        float high = fmaxf(c[0][0], c[1][1]);
        if (__any_sync(~0u, high > m + 8.f)) {
            for (int o = 16; o; o >>= 1) high = fmaxf(high, __shfl_xor_sync(~0u, high, o));
            m = fmaxf(m, high);
        }
        sum += exp2f(c[0][0] * p.scale - m);
        __syncwarp();
    }
    __syncthreads();
    float* f = (float*)smem;
    for (int i = 0; i < 4; i++) f[threadIdx.x * 4 + i] = c[i][0] + c[i][1] + c[i][2] + c[i][3] + sum;
    __syncthreads();
    float4 v = ((float4*)smem)[(threadIdx.x + 32) & 127];
    ((float4*)p.out)[blockIdx.x * 128 + threadIdx.x] = v;
}
