//! Skeleton.

pub mod carry;
mod error;
mod lines;
pub mod sass;

pub use carry::{LineCounts, SassCounts, count_sass};
pub use error::TimingError;
