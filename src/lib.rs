//! What a server embeds: open a tuned kernel cache, keep the KV cache in blocks, attend.
//!
//! ```text
//!   KernelCache ──> Kernels<Device> ──> AttentionBackend::decode
//!        ^               ^                     ^
//!   `autotune run`   Cuda | Emulated     Batch: lengths, block tables
//! ```
//!
//! The modules are those of `pagesmith-runtime` and the nouns of `pagesmith-spec`, under the stable
//! paths that servers (and the macros to come) name. With feature `cuda` kernels launch on an NVIDIA
//! GPU; with feature `emulated` the same kernels' PTX runs on the CPU.
//!
//! `examples/decode.rs` is the place to start reading.

pub use pagesmith_runtime::*;
