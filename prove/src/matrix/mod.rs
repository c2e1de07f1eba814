//! The whole family in few variants: covering arrays over every axis of a decode spec.
//!
//! ```text
//!   axes: head dim × group × block size × query dtype × KV dtype × engine × table × LSE
//!     │ covering_array(strength)     every pair, or every triple, of values in at least one row
//!     v
//!   Cell ──variant──> Variant ──forge──> Image ──prove──> Verdict        verify_matrix: all rows
//! ```

mod axes;
mod covering;
mod tuning;
mod verify;

pub use axes::{Axis, Cell, GROUPS, KvChoice, axes};
pub use covering::{CoveringArray, Strength, UnknownStrength, covering_array};
pub use tuning::{default_tuning, varied_tuning};
pub use verify::{
    MatrixFailure, MatrixFinding, MatrixProgress, MatrixReport, MatrixRequest, RowError,
    verify_matrix,
};
