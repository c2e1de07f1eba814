//! GPUs: what one product is made of, and what fits on it.
//!
//! ```text
//!   gpus/*.toml ──> Gpu ── arch ──> Arch          limits of a compute capability
//!                    └──── occupancy(footprint)   resident blocks of a kernel
//! ```
//!
//! A description is a data file whose comments name the source of each number. Five are built in;
//! [`Gpu::from_toml`] reads others.
//!
//! ```
//! use pagesmith_spec::Gpu;
//! use pagesmith_spec::gpu::Bytes;
//!
//! let gpu = Gpu::by_name("a100-sxm4-80gb")?;
//! assert_eq!(gpu.sms, 108);
//! // The KV cache of Llama-3-8B, 4 sequences of 4,096 tokens in bf16, one layer: 67 MB.
//! let floor = gpu.memory.peak_bytes_per_s.seconds(Bytes(4 * 4096 * 8 * 128 * 2 * 2));
//! assert!((32e-6..34e-6).contains(&floor));
//! # Ok::<(), pagesmith_spec::gpu::GpuError>(())
//! ```

mod arch;
mod builtin;
mod description;
mod error;
mod occupancy;
mod units;

pub use arch::{Arch, UnknownArch};
pub use description::{Gpu, L2, Latency, Memory, Throughput};
pub use error::GpuError;
pub use occupancy::{Footprint, Limit, Occupancy};
pub use units::{Bytes, BytesPerSecond, Cycles, Megahertz, PerClock};
