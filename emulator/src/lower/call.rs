//! Calls: device functions are inlined, since a warp has no stack.

use super::function::{Lowerer, Result};
use super::op::{NONE, Op, Reg};
use super::scope::Symbol;
use crate::ParseErrorKind;
use crate::count::InstructionKind;
use crate::parse::ast::{Instruction, Operand};
use std::sync::Arc;

/// Calls inside calls.
const MAX_CALLS: usize = 32;

/// Label of an inlined function's end; no PTX label can be spelled so.
pub(super) const RETURN: &str = "<return>";

impl<'m> Lowerer<'m> {
    /// Inlines a call: the callee's parameters are the caller's variables, its registers are new.
    pub(super) fn call(&mut self, instruction: &'m Instruction, guard: (Reg, bool)) -> Result<()> {
        let (returns, name, arguments): (&[Operand], _, &[Operand]) = match &instruction.operands[..]
        {
            [Operand::Name(name)] => (&[], name, &[]),
            [Operand::Name(name), Operand::List(arguments)] => (&[], name, arguments),
            [Operand::List(returns), Operand::Name(name)] => (returns, name, &[]),
            [
                Operand::List(returns),
                Operand::Name(name),
                Operand::List(arguments),
            ] => (returns, name, arguments),
            _ => return self.bad_operand(instruction, "only direct calls are inlined"),
        };
        if &**name == "__assertfail" {
            return self.emit(Op::Trap, InstructionKind::Branch, guard);
        }
        let module = self.module;
        let Some(callee) = module
            .functions
            .iter()
            .find(|function| function.name == *name && !function.entry)
        else {
            return self.fail(ParseErrorKind::Unknown {
                what: "function",
                name: name.to_string(),
            });
        };
        if self.calls.contains(name) || self.calls.len() >= MAX_CALLS || guard.0 != NONE {
            return self.fail(ParseErrorKind::Unsupported(format!(
                "recursive, deep or guarded call of {name}"
            )));
        }
        if returns.len() != callee.returns.len() || arguments.len() != callee.params.len() {
            return self.bad_operand(instruction, "the callee takes another number of arguments");
        }
        let mut bound = Vec::new();
        for (operand, variable) in returns
            .iter()
            .chain(arguments)
            .zip(callee.returns.iter().chain(&callee.params))
        {
            let Operand::Name(name) = operand else {
                return self.bad_operand(instruction, "arguments are variables");
            };
            match self.find(name)? {
                Some(symbol @ Symbol::Variable { .. }) => {
                    bound.push((variable.name.clone(), symbol))
                }
                _ => return self.bad_operand(instruction, "arguments are variables"),
            }
        }
        self.emit(Op::Nop, InstructionKind::Branch, guard)?;
        self.frames += 1;
        let (frame, source) = (self.frame, self.source);
        self.frame = self.frames;
        self.calls.push(name.clone());
        self.scopes.enter();
        for (name, symbol) in bound {
            self.declare(&name, symbol)?;
        }
        self.body(&callee.body)?;
        self.scopes.leave();
        self.labels
            .insert((self.frame, Arc::from(RETURN)), self.code.len() as u32);
        self.calls.pop();
        self.frame = frame;
        self.source = source;
        Ok(())
    }
}
