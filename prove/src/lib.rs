//! Is this image right? An f64 reference, hostile cases, a matrix over the whole family, and mutants that
//! show that a wrong image does not pass.
//!
//! ```text
//!   matrix   covering arrays over every axis of a spec ──────────┐
//!   mutate   broken PTX, and what has to notice it ────────────┐ │
//!                                                              v v
//!   proof    an image on a device: run, judge ─────────────> Verdict
//!   case     inputs of a launch, from a seed       ↑
//!   reference  what is right, in f64  ─────────────┘
//! ```
//!
//! A variant from its image to a verdict, on a machine without a GPU:
//!
//! ```no_run
//! use pagesmith_codegen::{Compiler, Search, forge};
//! use pagesmith_prove::{Seed, case::Effort, prove};
//! use pagesmith_spec::{Gpu, ModelShape, Settings, TuningSpace, Variant};
//!
//! let gpu = Gpu::by_name("a100-sxm4-80gb")?;
//! let spec = Settings::default().kernels(&ModelShape::by_name("llama-3-8b")?)?.remove(0);
//! let tuning = TuningSpace::enumerate(&spec, gpu.arch).legal()[0];
//! let variant = Variant::new(spec, tuning)?;
//! let image = forge(&variant, gpu.arch, &Compiler::find(&Search::from_env())?)?;
//!
//! let verdict = prove(&variant, &image, &gpu, Effort::Standard, Seed::fresh())?;
//! assert!(verdict.passed(), "{:?}", verdict.failures);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod case;
pub mod matrix;
pub mod mutate;
pub mod proof;
mod random;
pub mod reference;

pub use proof::{ProveError, Verdict, prove, prove_cases, prove_on};
pub use random::{Random, Seed};
