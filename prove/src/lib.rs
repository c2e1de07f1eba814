//! Skeleton.
pub mod case;
mod random;
pub mod reference;
pub use random::{Random, Seed};
