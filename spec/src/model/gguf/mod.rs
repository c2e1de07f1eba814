//! The shape in a GGUF file's header.
//!
//! ```text
//!   "GGUF", version u32, tensors u64, entries u64,
//!   entries x { key string, type u32, value }      <- read up to here
//!   tensor table, alignment, tensors
//! ```
//!
//! `reader` walks the bytes, `metadata` keeps the few entries that a shape needs and skips the
//! rest, `shape` makes the shape. Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

mod error;
mod metadata;
mod reader;
mod shape;

pub use error::GgufError;
