//! The command line: arguments in, one answer out.
//!
//! ```text
//! args::Cli ──verb──> Answer ──┬── text(Page)   for people
//!                     Failure ─┴── json         for programs
//! ```

mod answer;
mod args;
mod failure;
mod page;
mod progress;
mod verbs;

pub(crate) use answer::present;
pub(crate) use args::Cli;
pub(crate) use verbs::answer;
