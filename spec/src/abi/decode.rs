//! The structs of the decode family and of its merge.

use super::{DevicePtr, kernel_params};

/// The slot of a work item that writes its output directly, having no other split to merge with.
pub const NO_SLOT: u32 = u32::MAX;

kernel_params! {
    /// One CTA's work: a range of one sequence's KV tokens for the query heads of one KV head.
    /// 32 bytes, one memory sector.
    #[derive(Eq, Hash)]
    pub struct WorkItem {
        /// Row of `q`, `out` and `lse`.
        pub q_token: u32,
        /// Row of the block table.
        pub seq: u32,
        /// KV head.
        pub kv_head: u32,
        /// First query head, counted inside the KV head's group; a multiple of the head tile.
        pub head_begin: u32,
        /// First KV token, a multiple of the tuning's tile.
        pub kv_begin: u32,
        /// One past the last KV token; equal to `kv_begin` for an empty sequence.
        pub kv_end: u32,
        /// Slot of the partial result, or [`NO_SLOT`].
        pub slot: u32,
        /// Zero.
        pub reserved: u32,
    }
}

kernel_params! {
    /// The partial results of one head tile that become one output. 16 bytes.
    #[derive(Eq, Hash)]
    pub struct MergeItem {
        /// Row of `out` and `lse`.
        pub q_token: u32,
        /// First query head of the head tile, counted over the whole model.
        pub q_head: u32,
        /// First slot.
        pub slot_begin: u32,
        /// Number of slots.
        pub slot_count: u32,
    }
}

kernel_params! {
    /// Parameters of `pagesmith_decode`. Strides are in elements; rows are 16-byte aligned.
    pub struct DecodeParams {
        /// Queries `[tokens, q_heads, D]`.
        pub q: DevicePtr,
        /// Keys, addressed by `k_*_stride`.
        pub k: DevicePtr,
        /// Values, addressed by `v_*_stride`.
        pub v: DevicePtr,
        /// Outputs `[tokens, q_heads, D]`.
        pub out: DevicePtr,
        /// Log-sum-exp, f32 `[tokens, q_heads]`, natural; used when the spec asks for it.
        pub lse: DevicePtr,
        /// Dense: i32 `[sequences, table_stride]`. CSR: `kv_indices`.
        pub table: DevicePtr,
        /// CSR: `kv_indptr`, i32 `[sequences + 1]`.
        pub table_indptr: DevicePtr,
        /// [`WorkItem`] `[grid.x]`.
        pub work: DevicePtr,
        /// Normalised partial outputs, f32 `[slots, head_tile, D]`.
        pub partial_out: DevicePtr,
        /// Partial log-sum-exp in base 2, f32 `[slots, head_tile]`; -inf when empty.
        pub partial_lse: DevicePtr,
        /// Elements from one row of `q` to the next.
        pub q_token_stride: i64,
        /// Elements from one head of `q` to the next.
        pub q_head_stride: i64,
        /// Elements from one row of `out` to the next.
        pub out_token_stride: i64,
        /// Elements from one head of `out` to the next.
        pub out_head_stride: i64,
        /// Elements from one block of `k` to the next.
        pub k_block_stride: i64,
        /// Elements from one token of `k` to the next.
        pub k_token_stride: i64,
        /// Elements from one head of `k` to the next.
        pub k_head_stride: i64,
        /// Elements from one block of `v` to the next.
        pub v_block_stride: i64,
        /// Elements from one token of `v` to the next.
        pub v_token_stride: i64,
        /// Elements from one head of `v` to the next.
        pub v_head_stride: i64,
        /// Entries from one row of a dense table to the next.
        pub table_stride: i64,
        /// Softmax scale times log2(e).
        pub scale_log2: f32,
        /// True key = stored × `k_scale` (1 for 16-bit caches).
        pub k_scale: f32,
        /// True value = stored × `v_scale` (1 for 16-bit caches).
        pub v_scale: f32,
        /// Query heads of the model: the row length of `lse`.
        pub q_heads: u32,
    }
}

kernel_params! {
    /// Parameters of `pagesmith_merge`.
    pub struct MergeParams {
        /// As written by `pagesmith_decode`.
        pub partial_out: DevicePtr,
        /// As written by `pagesmith_decode`.
        pub partial_lse: DevicePtr,
        /// Outputs `[tokens, q_heads, D]`.
        pub out: DevicePtr,
        /// Log-sum-exp, f32 `[tokens, q_heads]`, natural; used when the spec asks for it.
        pub lse: DevicePtr,
        /// [`MergeItem`] `[grid.x]`.
        pub items: DevicePtr,
        /// Elements from one row of `out` to the next.
        pub out_token_stride: i64,
        /// Elements from one head of `out` to the next.
        pub out_head_stride: i64,
        /// Query heads of the model: the row length of `lse`.
        pub q_heads: u32,
        /// Zero.
        pub reserved: u32,
    }
}
