//! Variables, parameters and registers.

use super::ast::{Module, RegisterDeclaration, Space, Statement, Ty, Variable};
use super::lexer::TokenKind;
use super::parser::{MAX_DEPTH, Parser, Result};
use std::sync::Arc;

/// Bytes of one variable.
const MAX_VARIABLE: u64 = 64 << 20;

impl Parser<'_> {
    pub(super) fn declaration(&mut self, module: &mut Module) -> Result<()> {
        let mut external = false;
        loop {
            match self.peek() {
                TokenKind::Dotted("visible" | "weak" | "common") => self.at += 1,
                TokenKind::Dotted("extern") => {
                    external = true;
                    self.at += 1;
                }
                TokenKind::Dotted("entry") => {
                    self.at += 1;
                    return self.function(module, true);
                }
                TokenKind::Dotted("func") => {
                    self.at += 1;
                    return self.function(module, false);
                }
                TokenKind::Dotted(space @ ("const" | "global" | "shared")) => {
                    self.at += 1;
                    let space = match space {
                        "const" => Space::Const,
                        "global" => Space::Global,
                        _ => Space::Shared,
                    };
                    for variable in self.variables(space)? {
                        if variable.bytes.is_none() && !(external && space == Space::Shared) {
                            return self
                                .error("a size: only `.extern .shared` arrays may lack one");
                        }
                        module.variables.push(variable);
                    }
                    return Ok(());
                }
                _ => return self.error("`.entry`, `.func` or a variable"),
            }
        }
    }

    /// `.align 4 .b8 name[16] = {...};`, after the space; several names share the type.
    pub(super) fn variables(&mut self, space: Space) -> Result<Vec<Variable>> {
        let mut all = Vec::new();
        let (align, ty, lanes) = self.variable_type()?;
        loop {
            all.push(self.variable(space, align, ty, lanes)?);
            if !self.eat(',') {
                break;
            }
        }
        self.want(';', "`;`")?;
        Ok(all)
    }

    pub(super) fn variable_type(&mut self) -> Result<(u64, Ty, u64)> {
        let mut align = None;
        let mut lanes = 1;
        loop {
            match self.peek() {
                TokenKind::Dotted("align") => {
                    self.at += 1;
                    let value = self.int("an alignment")?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return self.too_large("alignment", value, 1 << 20);
                    }
                    align = Some(value);
                }
                TokenKind::Dotted("attribute") => {
                    self.at += 1;
                    while !self.eat(')') {
                        if self.next() == TokenKind::End {
                            return self.error("`)`");
                        }
                    }
                }
                TokenKind::Dotted("v2") => {
                    self.at += 1;
                    lanes = 2;
                }
                TokenKind::Dotted("v4") => {
                    self.at += 1;
                    lanes = 4;
                }
                TokenKind::Dotted("ptr" | "global" | "const" | "shared" | "local") => self.at += 1,
                TokenKind::Dotted(name) => {
                    let Some(ty) = Ty::parse(name) else {
                        return self.error("a type");
                    };
                    self.at += 1;
                    // `.param .u64 .ptr .global .align 4 name` puts attributes of the pointee behind the type.
                    while let TokenKind::Dotted(after) = self.peek() {
                        match after {
                            "ptr" | "global" | "const" | "shared" | "local" => self.at += 1,
                            "align" => {
                                self.at += 1;
                                self.int("an alignment")?;
                            }
                            _ => return self.error("a name"),
                        }
                    }
                    return Ok((align.unwrap_or(u64::from(ty.bytes()) * lanes), ty, lanes));
                }
                _ => return self.error("a type"),
            }
        }
    }

    pub(super) fn variable(
        &mut self,
        space: Space,
        align: u64,
        ty: Ty,
        lanes: u64,
    ) -> Result<Variable> {
        let name: Arc<str> = Arc::from(self.word("a variable name")?);
        let element = u64::from(ty.bytes()) * lanes;
        let mut bytes = Some(element);
        while self.eat('[') {
            if self.eat(']') {
                bytes = None;
                continue;
            }
            let count = self.int("an array length")?;
            self.want(']', "`]`")?;
            bytes = bytes.and_then(|bytes| bytes.checked_mul(count));
            match bytes {
                Some(bytes) if bytes <= MAX_VARIABLE => {}
                _ => return self.too_large("variable", count, MAX_VARIABLE),
            }
        }
        let mut init = Vec::new();
        if self.eat('=') {
            self.initialiser(u64::from(ty.bytes()), &mut init, MAX_DEPTH)?;
            let limit = bytes.unwrap_or(MAX_VARIABLE);
            if init.len() as u64 > limit {
                return self.too_large("initialiser", init.len() as u64, limit);
            }
        }
        Ok(Variable {
            space,
            name,
            align,
            bytes,
            init,
        })
    }

    pub(super) fn initialiser(
        &mut self,
        element: u64,
        out: &mut Vec<u8>,
        depth: u32,
    ) -> Result<()> {
        if self.eat('{') {
            if depth == 0 {
                return self.error("a flatter initialiser");
            }
            while !self.eat('}') {
                self.initialiser(element, out, depth - 1)?;
                if !self.eat(',') && self.peek() != TokenKind::Punct('}') {
                    return self.error("`,` or `}`");
                }
            }
            return Ok(());
        }
        let negative = self.eat('-');
        let bits = match self.peek() {
            TokenKind::Int(value) if negative => value.wrapping_neg(),
            TokenKind::Int(value) => value,
            TokenKind::F32(bits) => u64::from(bits),
            TokenKind::F64(bits) => bits,
            _ => return self.error("a number: addresses in initialisers are not supported"),
        };
        self.at += 1;
        let count = usize::try_from(element).unwrap_or(8).min(8);
        out.extend_from_slice(&bits.to_le_bytes()[..count]);
        Ok(())
    }

    pub(super) fn parameters(&mut self) -> Result<Vec<Variable>> {
        let mut all = Vec::new();
        while !self.eat(')') {
            if !self.eat_dotted("param") {
                return self.error("`.param`");
            }
            let (align, ty, lanes) = self.variable_type()?;
            let variable = self.variable(Space::Param, align, ty, lanes)?;
            if variable.bytes.is_none() {
                return self.error("a parameter with a size");
            }
            all.push(variable);
            if !self.eat(',') && self.peek() != TokenKind::Punct(')') {
                return self.error("`,` or `)`");
            }
        }
        Ok(all)
    }

    pub(super) fn registers(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        self.at += 1;
        let (_, ty, lanes) = self.variable_type()?;
        if lanes != 1 {
            return self.error("a scalar register");
        }
        loop {
            let line = self.line();
            let name = Arc::from(self.word("a register name")?);
            let mut count = None;
            if self.eat('<') {
                count = Some(self.small("a register count")?);
                self.want('>', "`>`")?;
            }
            body.push(Statement::Register(RegisterDeclaration {
                line,
                ty,
                name,
                count,
            }));
            if !self.eat(',') {
                break;
            }
        }
        self.want(';', "`;`")
    }
}
