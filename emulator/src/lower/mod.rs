//! Syntax tree to dense code: names become register numbers, symbols become addresses, calls are inlined and
//! every modifier is decided, so that the interpreter meets no unknown instruction.

mod arith;
mod call;
mod compare;
mod control;
mod convert;
mod entry;
mod flow;
mod function;
mod logic;
mod memory;
pub(crate) mod op;
mod operand;
mod scope;
mod unary;
mod visit;
mod warp;

pub(crate) use entry::{Entry, SpecialKind};
pub(crate) use flow::copies;
pub(crate) use function::lower_module;
