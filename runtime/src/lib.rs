//! The runtime that LLM servers embed: devices, the kernel cache, plans and attention backends.
//!
//! ```text
//!   cache::KernelCache ── image ──> attention::Kernels<D> ── launch ──> device::Device
//!   plan::Batch ──> plan::Plan ────────────┘                             ├ Emulated  (feature `emulated`)
//!        (host lengths and block table)                                  └ Cuda      (feature `cuda`)
//! ```
//!
//! There are no threads, clocks or I/O of its own in here, apart from reading and writing a kernel
//! cache. A batch is validated on the host before anything reaches a device:
//!
//! ```
//! use pagesmith_runtime::plan::{Batch, CacheBlocks};
//!
//! let cache = CacheBlocks { block_size: 16, count: 8 };
//! // Sequence 1 has 20 tokens, and its second block id is -1.
//! let error = Batch::dense(cache, &[16, 20], &[0, -1, 1, -1], 2).unwrap_err();
//! assert!(error.to_string().contains("sequence 1: block id -1"));
//! ```
//!
//! Where to begin: [`cache::KernelCache::open`], [`attention::Kernels::from_cache`],
//! [`plan::Batch::dense`], then [`attention::AttentionBackend::plan_decode`] once a step and
//! [`attention::AttentionBackend::decode`] once a layer.

pub mod attention;
pub mod cache;
pub mod device;
pub mod plan;

pub use attention::{AttentionBackend, AttentionError, Kernels};
pub use cache::KernelCache;
#[cfg(feature = "cuda")]
pub use device::Cuda;
#[cfg(feature = "emulated")]
pub use device::Emulated;
pub use device::{Device, DeviceError, LoadError};
pub use plan::{Batch, Plan};

/// The nouns: specs, tunings, images, records, GPUs.
pub use pagesmith_spec as spec;
