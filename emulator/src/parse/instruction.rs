//! Instructions and their operands.

use super::ast::{Guard, Instruction, Operand};
use super::lexer::TokenKind;
use super::parser::{MAX_DEPTH, Parser, Result};
use std::sync::Arc;

impl Parser<'_> {
    pub(super) fn instruction(&mut self) -> Result<Instruction> {
        let line = self.line();
        let guard = if self.eat('@') {
            let negated = self.eat('!');
            let register = Arc::from(self.word("a predicate")?);
            Some(Guard { register, negated })
        } else {
            None
        };
        let mut opcode = vec![Arc::from(self.word("an opcode")?)];
        while let TokenKind::Dotted(part) = self.peek() {
            opcode.push(Arc::from(part));
            self.at += 1;
        }
        let mut operands = Vec::new();
        while !self.eat(';') {
            operands.push(self.operand(MAX_DEPTH)?);
            if !self.eat(',') && self.peek() != TokenKind::Punct(';') {
                return self.error("`,` or `;`");
            }
        }
        Ok(Instruction {
            line,
            guard,
            opcode,
            operands,
        })
    }

    fn name(&mut self) -> Result<Arc<str>> {
        let word = self.word("a name")?;
        if word.starts_with('%')
            && let TokenKind::Dotted(part @ ("x" | "y" | "z" | "w")) = self.peek()
        {
            self.at += 1;
            return Ok(Arc::from(format!("{word}.{part}")));
        }
        Ok(Arc::from(word))
    }

    fn list(&mut self, close: char, depth: u32) -> Result<Vec<Operand>> {
        if depth == 0 {
            return self.error("a flatter operand");
        }
        let mut all = Vec::new();
        while !self.eat(close) {
            all.push(self.operand(depth - 1)?);
            if !self.eat(',') && self.peek() != TokenKind::Punct(close) {
                return self.error("`,` or a closing bracket");
            }
        }
        Ok(all)
    }

    fn signed_offset(&mut self) -> Result<Option<i64>> {
        let negative = match self.peek() {
            TokenKind::Punct('+') => {
                self.at += 1;
                self.eat('-')
            }
            TokenKind::Punct('-') => {
                self.at += 1;
                true
            }
            _ => return Ok(None),
        };
        let value = self.int("an offset")?.cast_signed();
        Ok(Some(if negative {
            value.wrapping_neg()
        } else {
            value
        }))
    }

    fn operand(&mut self, depth: u32) -> Result<Operand> {
        match self.peek() {
            TokenKind::Punct('{') => {
                self.at += 1;
                Ok(Operand::Vector(self.list('}', depth)?))
            }
            TokenKind::Punct('(') => {
                self.at += 1;
                Ok(Operand::List(self.list(')', depth)?))
            }
            TokenKind::Punct('[') => {
                self.at += 1;
                let operand = match self.peek() {
                    TokenKind::Int(value) => {
                        self.at += 1;
                        Operand::Memory {
                            base: None,
                            offset: value.cast_signed(),
                        }
                    }
                    _ => {
                        let base = Some(self.name()?);
                        let offset = self.signed_offset()?.unwrap_or(0);
                        Operand::Memory { base, offset }
                    }
                };
                self.want(']', "`]`")?;
                Ok(operand)
            }
            TokenKind::Punct('!') => {
                self.at += 1;
                Ok(Operand::NotName(self.name()?))
            }
            TokenKind::Punct('-') => {
                self.at += 1;
                match self.next() {
                    TokenKind::Int(value) => Ok(Operand::Int(value.wrapping_neg())),
                    TokenKind::F64(bits) => Ok(Operand::F64(bits ^ (1 << 63))),
                    _ => self.error("a number"),
                }
            }
            TokenKind::Int(value) => {
                self.at += 1;
                Ok(Operand::Int(value))
            }
            TokenKind::F32(bits) => {
                self.at += 1;
                Ok(Operand::F32(bits))
            }
            TokenKind::F64(bits) => {
                self.at += 1;
                Ok(Operand::F64(bits))
            }
            TokenKind::Word("_") => {
                self.at += 1;
                self.paired(Operand::Sink, depth)
            }
            TokenKind::Word(_) => {
                let name = self.name()?;
                if let Some(offset) = self.signed_offset()? {
                    return Ok(Operand::NameOffset(name, offset));
                }
                self.paired(Operand::Name(name), depth)
            }
            _ => self.error("an operand"),
        }
    }

    fn paired(&mut self, first: Operand, depth: u32) -> Result<Operand> {
        if !self.eat('|') {
            return Ok(first);
        }
        if depth == 0 {
            return self.error("a flatter operand");
        }
        let second = self.operand(depth - 1)?;
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }
}
