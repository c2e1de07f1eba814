//! The CUDA of pagesmith, embedded as text: plain device headers, and the templates that configure and enter them.
//!
//! Nothing is parsed or compiled here; `pagesmith-codegen` renders a template and hands it, with the headers it
//! includes, to NVRTC. Device code includes no CUDA or C++ header, only its siblings and the generated
//! `pagesmith/abi.cuh`.
//!
//! ```text
//! templates/decode.cu.tera            configuration struct, entries pagesmith_decode and pagesmith_merge
//!   ├─ decode_mma                     tensor cores: S^T = K Q^T, O^T = V^T P^T, a cp.async ring a warp
//!   │    ├─ query, mma_tile, mma_softmax   fragments, the two products, weights
//!   │    ├─ kv_copy ── swizzle        paged KV tiles into the ring
//!   │    └─ mma, async_copy           the instructions
//!   ├─ decode_simt ── simt_lanes      CUDA cores: few query heads a KV head
//!   │    └─ (both) work, paged        what a warp reads, and where it lies
//!   │              softmax, convert, e4m3, global, shared, types
//!   │              combine            warps of a CTA -> output or partial slot
//!   └─ merge                          partial slots -> output
//! templates/echo.cu.tera              copies the parameter structs: do host and device agree on them?
//! ```
//!
//! Contracts of the decode kernels beyond the parameter structs' own:
//!
//! - a work item's `kv_begin` is a multiple of the tuning's `tile_tokens`;
//! - a block's rows span less than 2^32 bytes (`block_size * token_stride`); block strides are 64 bits wide;
//! - rows of `q`, K, V, `out` and the partials start on 16-byte boundaries;
//! - table entries past the last block with a live token are never read, nor rows past the last live token;
//! - NaN in live K makes its KV head's outputs NaN, NaN in live V its dimension, in every dtype.
//!
//! ```
//! let (_, text) = pagesmith_kernels::HEADERS
//!     .iter()
//!     .find(|(name, _)| *name == "pagesmith/softmax.cuh")
//!     .expect("the softmax header is embedded");
//! assert!(text.starts_with("#line 1 \"/pagesmith/device/softmax.cuh\"\n"));
//! ```

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("pagesmith/", $name, ".cuh"),
            include_str!(concat!("../device/", $name, ".cuh")),
        )),*]
    };
}

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../templates/", $name)))),*]
    };
}

/// The device headers as (name in `#include`, text).
pub const HEADERS: &[(&str, &str)] = headers![
    "async_copy",
    "combine",
    "convert",
    "decode_mma",
    "decode_simt",
    "e4m3",
    "global",
    "kv_copy",
    "merge",
    "mma",
    "mma_softmax",
    "mma_tile",
    "paged",
    "query",
    "shared",
    "simt_lanes",
    "softmax",
    "swizzle",
    "types",
    "work",
];

/// The templates as (name, text), with the delimiters `@{ }@`, `@[ ]@` and `@# #@`.
pub const TEMPLATES: &[(&str, &str)] = templates!["decode.cu.tera", "echo.cu.tera"];

#[cfg(test)]
mod tests;
