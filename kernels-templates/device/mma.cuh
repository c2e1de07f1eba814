#line 1 "/pagesmith/device/mma.cuh"
// Tensor-core instructions of sm_80 (PTX ISA "Matrix multiply-accumulate": fragments of m16n8k16 and ldmatrix).
// Throughout, lane = 4*g + t:
//   A (16x16): a0 (g, 2t..) a1 (g+8, 2t..) a2 (g, 2t+8..) a3 (g+8, 2t+8..), two 16-bit elements a register
//   B (16x8):  b0 (2t.., g) b1 (2t+8.., g)
//   C (16x8):  c0 (g, 2t) c1 (g, 2t+1) c2 (g+8, 2t) c3 (g+8, 2t+1)
#pragma once
#include "pagesmith/types.cuh"

namespace pagesmith {

// Lane l gives the address of row l%8 of matrix l/8; register i gets row g, words t of matrix i.
__device__ __forceinline__ void load_matrix_x4(u32 (&r)[4], u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
__device__ __forceinline__ void load_matrix_x2(u32 (&r)[2], u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared)
                 : "memory");
}

// Transposed: register i gets elements (2t, g) and (2t+1, g) of matrix i.
__device__ __forceinline__ void load_matrix_x4_trans(u32 (&r)[4], u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
__device__ __forceinline__ void load_matrix_x2_trans(u32 (&r)[2], u32 shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared)
                 : "memory");
}

// An 8x8 matrix of 16-bit elements, row g in words t, transposed within the warp's registers.
__device__ __forceinline__ u32 transpose_8x8(u32 word) {
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(word));
    return out;
}

// c += a * b with T-typed operands and f32 sums.
template <class T> __device__ __forceinline__ void mma_16x8x16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    if constexpr (is_same<T, dtype::bf16>) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
}

}  // namespace pagesmith
