//! Model shapes: what an attention kernel, a plan and a memory budget must know of a model.
//!
//! ```text
//!   builtin.toml ──by_name──────────┐
//!   config.json ──from_config_json──┼──> ModelFields ──new: checks──> ModelShape
//!   x.gguf ───────from_gguf_header──┘
//!   "NAME|config.json|x.gguf" ──> ModelSource   which of the three, for a caller that does the I/O
//! ```
//!
//! All three sources are foreign data: sizes are bounded, nothing is allocated on the word of a
//! file, and every refusal names the field, what it held, and what to do.
//!
//! ```
//! use pagesmith_spec::{KvDtype, ModelShape};
//!
//! let shape = ModelShape::by_name("llama-3-70b")?;
//! assert_eq!((shape.head_dim(), shape.group()), (128, 8));
//! assert_eq!(shape.kv_bytes_per_token(KvDtype::Bf16), 320 * 1024);
//! # Ok::<(), pagesmith_spec::model::ModelError>(())
//! ```

mod attention;
mod builtin;
mod config_json;
mod error;
mod gguf;
mod rope;
mod shape;
mod source;

pub use attention::{Window, WindowedLayers};
pub use error::ModelError;
pub use gguf::GgufError;
pub use rope::{Rope, RopeScaling};
pub use shape::{ModelFields, ModelShape};
pub use source::ModelSource;
