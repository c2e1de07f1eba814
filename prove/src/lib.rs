//! Skeleton.
pub mod case;
pub mod matrix;
mod random;
pub mod reference;
pub use random::{Random, Seed};
