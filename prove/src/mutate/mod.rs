//! Broken kernels that have to be noticed: one edit of a variant's real PTX, and what must catch it.
//!
//! ```text
//!   Image ── Mutation::apply ──> Image of the mutant ── judge ──> { Check(SharedRace), Numbers, ... }
//!                 ^                                                   must contain Mutation::expected
//!            catalogue()
//! ```
//!
//! A check that no mutant needs may be broken without anybody noticing. Edits are found by entry, opcode and
//! occurrence, never by line or register, so that they outlive changes of the kernels; one whose place is
//! gone does not apply, which is an error of the catalogue and not a pass.

mod catalogue;
mod judge;
mod kernel;
mod mutation;
mod text;

pub use catalogue::catalogue;
pub use judge::{CaughtBy, judge};
pub use kernel::MutantKernel;
pub use mutation::{Edit, Mutation, Operand, Place};
