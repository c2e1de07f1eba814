//! Skeleton.

mod error;
mod lines;
pub mod sass;

pub use error::TimingError;
