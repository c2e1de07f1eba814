//! PTX text to syntax tree.

pub(crate) mod ast;
mod declaration;
mod instruction;
mod lexer;
mod parser;

pub(crate) use parser::parse;
