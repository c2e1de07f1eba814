//! Tunes paged-attention kernels: what the `autotune` binary does, as a library.
//!
//! ```text
//!   load_model ─> Request ─enumerate─> SpecPlan ─┐
//!   matrix cells ────────────────────────────────┴─> Group ─tune─> Outcome
//!                                                              │
//!        forge     render, compile, refuse spills              │ for each variant:
//!        recall    what the cache already knows                │ recall ─> forge ─> prove ─> time ─> keep
//!        modelled  the workload emulated, counted, predicted   │
//!        measured  the workload timed on a GPU                 v
//!   doctor   what this machine has and lacks              KernelCache
//! ```
//!
//! What a model needs, before anything is compiled:
//!
//! ```
//! use pagesmith_autotune::{Effort, Request, enumerate, load_model};
//! use pagesmith_spec::{Gpu, Settings};
//!
//! let plans = enumerate(&Request {
//!     shape: load_model("llama-3-8b")?,
//!     settings: Settings::default(),
//!     gpu: Gpu::by_name("a100-sxm4-80gb")?,
//!     effort: Effort::Quick,
//! })?;
//! assert_eq!(plans.len(), 2); // a bf16 and an fp8 cache
//! assert!(plans[0].excluded.iter().all(|(_, reason)| !reason.to_string().is_empty()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
pub mod doctor;
mod effort;
mod enumerate;
mod error;
mod forge;
mod judge;
mod kernel;
mod matrix;
mod measured;
mod model;
mod modelled;
mod observe;
mod pipeline;
mod proof;
mod recall;
mod remeasure;
mod reprove;
mod work;
mod workload;

pub use effort::Effort;
pub use enumerate::{Request, SpecPlan, enumerate};
pub use error::TuneError;
pub use forge::{Rendered, Toolshop, forge, rendered, spilled};
pub use judge::Failed;
pub use kernel::{Kernel, KernelReport};
pub use matrix::matrix_groups;
pub use measured::{Measured, MeasuredError, measure};
pub use model::load_model;
pub use modelled::{
    DECODE, Launched, MERGE, Modelled, ModelledError, Modeller, compulsory_bytes, kv_bytes,
};
pub use observe::{Event, Observer};
pub use pipeline::{Group, Means, Outcome, SpecOutcome, tune};
pub use proof::Bench;
pub use remeasure::{Remeasured, RemeasuredKernel, remeasure};
pub use reprove::{Reproved, reprove};
pub use work::{LaunchWork, Work};
pub use workload::{Tensors, WorkloadError};
