//! The nouns of pagesmith: what a model needs, what a kernel computes, how it may compute it, and
//! what a compiled kernel and its record look like. No CUDA, no I/O beyond parsing.
//!
//! ```text
//!   model::ModelShape ─┐
//!                      ├─> kernel::KernelSpec ──> tuning::TuningSpace ──> variant::Variant
//!   settings::Settings ┘         (legality)         (on a gpu::Arch)           │
//!                                                                              v
//!   gpu::Gpu                                   record::TuningRecord  <──  image::Image
//!   abi::DecodeParams  the bytes a launch passes, declared once for Rust and CUDA
//! ```
//!
//! From a model to its variants:
//!
//! ```
//! use pagesmith_spec::{Arch, ModelShape, Settings, TuningSpace, Variant};
//!
//! let shape = ModelShape::by_name("llama-3-8b")?;
//! let specs = Settings::default().kernels(&shape)?;
//! let space = TuningSpace::enumerate(&specs[0], Arch::SM_80);
//! let variant = Variant::new(specs[0].clone(), space.legal()[0])?;
//! assert!(variant.id().starts_with("decode-d128-g4-b16-bf16-bf16-nhd-dense-"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod abi;
pub mod dtype;
pub mod e4m3;
pub mod gpu;
pub mod hash;
pub mod image;
pub mod kernel;
pub mod layout;
pub mod model;
pub mod record;
pub mod settings;
pub mod tuning;
pub mod variant;

pub use dtype::{KvDtype, QueryDtype};
pub use gpu::{Arch, Gpu};
pub use hash::ContentHash;
pub use image::{Image, ImageEntry, Resources};
pub use kernel::{KernelSpec, Lse, Operation, SpecError};
pub use layout::{KvLayout, TableForm};
pub use model::ModelShape;
pub use record::{Provenance, TuningRecord, Workload};
pub use settings::Settings;
pub use tuning::{Engine, Exclusion, Tuning, TuningSpace};
pub use variant::Variant;
