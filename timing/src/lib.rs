//! Skeleton.

pub mod carry;
mod error;
mod lines;
pub mod model;
pub mod sass;

pub use carry::{LineCounts, SassCounts, count_sass};
pub use error::TimingError;
pub use model::{Bound, LaunchProfile, MODEL_VERSION, Prediction, predict};
