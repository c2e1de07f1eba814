//! Names: registers, variables and labels, in nested scopes.

use super::op::{File, Reg};
use crate::parse::ast::{Space, Ty};
use std::collections::HashMap;
use std::sync::Arc;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Symbol {
    Register {
        ty: Ty,
        reg: Reg,
    },
    /// A variable and its address in its space.
    Variable {
        space: Space,
        address: u64,
    },
}

/// The file a register of this type lives in.
pub(super) const fn file_of(ty: Ty) -> Option<File> {
    match ty {
        Ty::Pred => Some(File::Pred),
        Ty::B128 => None,
        _ if ty.bytes() == 8 => Some(File::W64),
        _ => Some(File::W32),
    }
}

/// A declared range `%r<7>`: registers are made when they are first named, so that a hostile count costs nothing.
#[derive(Debug)]
struct Range {
    prefix: Arc<str>,
    ty: Ty,
    count: u32,
}

#[derive(Debug, Default)]
struct Scope {
    names: HashMap<Arc<str>, Symbol>,
    ranges: Vec<Range>,
}

/// The scopes open at one point, innermost last.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    open: Vec<Scope>,
}

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.open.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        self.open.pop();
    }

    /// Declares a name in the innermost scope; false when it is already declared there.
    pub(super) fn declare(&mut self, name: &Arc<str>, symbol: Symbol) -> bool {
        self.open
            .last_mut()
            .is_some_and(|scope| scope.names.insert(name.clone(), symbol).is_none())
    }

    pub(super) fn declare_range(&mut self, prefix: &Arc<str>, ty: Ty, count: u32) {
        if let Some(scope) = self.open.last_mut() {
            scope.ranges.push(Range {
                prefix: prefix.clone(),
                ty,
                count,
            });
        }
    }

    /// Finds a name; `make` numbers a register of a range when it is first named.
    pub(super) fn find<E>(
        &mut self,
        name: &str,
        make: impl FnOnce(Ty) -> Result<Reg, E>,
    ) -> Result<Option<Symbol>, E> {
        for scope in self.open.iter_mut().rev() {
            if let Some(symbol) = scope.names.get(name) {
                return Ok(Some(*symbol));
            }
            let in_range = |range: &&Range| {
                name.strip_prefix(&*range.prefix).is_some_and(|digits| {
                    let plain = digits == "0" || !digits.starts_with(['0', '+']);
                    plain && digits.parse::<u32>().is_ok_and(|index| index < range.count)
                })
            };
            if let Some(range) = scope.ranges.iter().find(in_range) {
                let symbol = Symbol::Register {
                    ty: range.ty,
                    reg: make(range.ty)?,
                };
                scope.names.insert(Arc::from(name), symbol);
                return Ok(Some(symbol));
            }
        }
        Ok(None)
    }
}
