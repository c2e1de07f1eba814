//! What a kernel has to compute, in f64, and how far a result is from it.
//!
//! ```text
//!   case::Case ──attend──> Attention { out, lse }  ──compare──> Comparison { relative_l2, worst_row }
//!                                                      ^
//!                                     what a device wrote, decoded
//! ```
//!
//! The code is straightforward on purpose and shares nothing with the kernels or with the runtime's plan.

mod attention;
mod compare;

pub use attention::{Attention, attend};
pub use compare::{Comparison, Difference, compare, largest_lse_error};
