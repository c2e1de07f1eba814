//! Tokens to syntax tree, by recursive descent with bounded depth.

use super::ast::{Function, Module, Space, Statement};
use super::lexer::{Token, TokenKind, tokens};
use crate::{ParseError, ParseErrorKind};
use std::sync::Arc;

/// Nested operands and scopes deeper than this are hostile.
pub(super) const MAX_DEPTH: u32 = 16;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<Module> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    parser.module()
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    pub(super) at: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> TokenKind<'a> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, n: usize) -> TokenKind<'a> {
        self.tokens
            .get(self.at + n)
            .map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(1, |token| token.line)
    }

    pub(super) fn next(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        self.at += usize::from(kind != TokenKind::End);
        kind
    }

    pub(super) fn error<T>(&self, expected: &'static str) -> Result<T> {
        let found = self.peek().shown();
        Err(ParseError {
            line: self.line(),
            kind: ParseErrorKind::Syntax { expected, found },
        })
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        let hit = self.peek() == TokenKind::Punct(c);
        self.at += usize::from(hit);
        hit
    }

    pub(super) fn eat_dotted(&mut self, name: &str) -> bool {
        let hit = self.peek() == TokenKind::Dotted(name);
        self.at += usize::from(hit);
        hit
    }

    pub(super) fn want(&mut self, c: char, expected: &'static str) -> Result<()> {
        if self.eat(c) {
            Ok(())
        } else {
            self.error(expected)
        }
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str> {
        match self.peek() {
            TokenKind::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.error(expected),
        }
    }

    pub(super) fn int(&mut self, expected: &'static str) -> Result<u64> {
        match self.peek() {
            TokenKind::Int(value) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.error(expected),
        }
    }

    pub(super) fn too_large<T>(&self, what: &'static str, value: u64, limit: u64) -> Result<T> {
        Err(ParseError {
            line: self.line(),
            kind: ParseErrorKind::TooLarge { what, value, limit },
        })
    }

    pub(super) fn small(&mut self, what: &'static str) -> Result<u32> {
        let value = self.int(what)?;
        u32::try_from(value).or_else(|_| self.too_large(what, value, u64::from(u32::MAX)))
    }

    fn module(&mut self) -> Result<Module> {
        let mut module = Module::default();
        let mut versioned = false;
        loop {
            match self.peek() {
                TokenKind::End if versioned => return Ok(module),
                TokenKind::End => return self.error("a `.version` directive"),
                TokenKind::Punct(';') => self.at += 1,
                TokenKind::Dotted("version") => {
                    versioned = true;
                    self.at += 1;
                    match self.next() {
                        TokenKind::F64(_) => {}
                        TokenKind::Int(_) if matches!(self.peek(), TokenKind::Dotted(_)) => {
                            self.at += 1
                        }
                        _ => return self.error("a version such as 9.0"),
                    }
                }
                TokenKind::Dotted("target") => {
                    self.at += 1;
                    self.word("a target")?;
                    while self.eat(',') {
                        self.word("a target")?;
                    }
                }
                TokenKind::Dotted("address_size") => {
                    self.at += 1;
                    if self.peek() != TokenKind::Int(64) {
                        return self.error("`64`: 32-bit modules are not run");
                    }
                    self.at += 1;
                }
                TokenKind::Dotted("file") => {
                    self.at += 1;
                    let index = self.small("a file number")?;
                    let TokenKind::Text(name) = self.peek() else {
                        return self.error("a file name");
                    };
                    self.at += 1;
                    while self.eat(',') {
                        self.int("a time stamp or size")?;
                    }
                    module.files.push((index, Arc::from(name)));
                }
                TokenKind::Dotted("section") => self.section()?,
                TokenKind::Dotted("pragma") => self.skip_statement()?,
                TokenKind::Dotted(
                    "visible" | "extern" | "weak" | "common" | "entry" | "func" | "const"
                    | "global" | "shared",
                ) => self.declaration(&mut module)?,
                _ => return self.error("a module directive"),
            }
        }
    }

    fn skip_statement(&mut self) -> Result<()> {
        loop {
            match self.next() {
                TokenKind::Punct(';') => return Ok(()),
                TokenKind::End => return self.error("`;`"),
                _ => {}
            }
        }
    }

    /// Debug sections: skipped up to the closing brace.
    fn section(&mut self) -> Result<()> {
        self.at += 1;
        while self.peek() != TokenKind::Punct('{') {
            if self.next() == TokenKind::End {
                return self.error("`{`");
            }
        }
        while self.peek() != TokenKind::Punct('}') {
            if self.next() == TokenKind::End {
                return self.error("`}`");
            }
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn function(&mut self, module: &mut Module, entry: bool) -> Result<()> {
        let returns = if self.eat('(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        let name: Arc<str> = Arc::from(self.word("a function name")?);
        let params = if self.eat('(') {
            self.parameters()?
        } else {
            Vec::new()
        };
        loop {
            match self.peek() {
                TokenKind::Punct(';') => {
                    self.at += 1;
                    return Ok(());
                }
                TokenKind::Punct('{') => break,
                // Performance directives: .maxntid, .reqntid, .minnctapersm, .maxnreg, .noreturn, ...
                TokenKind::Dotted(_) => {
                    self.at += 1;
                    while matches!(self.peek(), TokenKind::Int(_) | TokenKind::Punct(',')) {
                        self.at += 1;
                    }
                }
                _ => return self.error("`{` or `;`"),
            }
        }
        let body = self.body()?;
        module.functions.push(Function {
            name,
            entry,
            returns,
            params,
            body,
        });
        Ok(())
    }

    fn body(&mut self) -> Result<Vec<Statement>> {
        self.want('{', "`{`")?;
        let mut depth = 0u32;
        let mut body = Vec::new();
        loop {
            match self.peek() {
                TokenKind::Punct('{') => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return self.error("flatter scopes");
                    }
                    self.at += 1;
                    body.push(Statement::Open);
                }
                TokenKind::Punct('}') => {
                    self.at += 1;
                    if depth == 0 {
                        return Ok(body);
                    }
                    depth -= 1;
                    body.push(Statement::Close);
                }
                TokenKind::Punct(';') => self.at += 1,
                TokenKind::Dotted("reg") => self.registers(&mut body)?,
                TokenKind::Dotted(space @ ("local" | "shared" | "param")) => {
                    self.at += 1;
                    let space = match space {
                        "local" => Space::Local,
                        "shared" => Space::Shared,
                        _ => Space::Param,
                    };
                    body.extend(self.variables(space)?.into_iter().map(Statement::Variable));
                }
                TokenKind::Dotted("loc") => {
                    self.at += 1;
                    let file = self.small("a file number")?;
                    let line = self.small("a line number")?;
                    self.int("a column")?;
                    self.inlined_at()?;
                    body.push(Statement::Loc { file, line });
                }
                TokenKind::Dotted("pragma") => self.skip_statement()?,
                TokenKind::Word(label) if self.ahead(1) == TokenKind::Punct(':') => {
                    self.at += 2;
                    if self.eat_dotted("branchtargets") {
                        let mut labels = vec![Arc::from(self.word("a label")?)];
                        while self.eat(',') {
                            labels.push(Arc::from(self.word("a label")?));
                        }
                        self.want(';', "`;`")?;
                        body.push(Statement::Targets {
                            name: Arc::from(label),
                            labels,
                        });
                    } else {
                        body.push(Statement::Label(Arc::from(label)));
                    }
                }
                TokenKind::Word(_) | TokenKind::Punct('@') => {
                    body.push(Statement::Instruction(self.instruction()?));
                }
                _ => return self.error("a statement"),
            }
        }
    }

    /// `, function_name $L__info_string0, inlined_at 1 13 3`, where present.
    fn inlined_at(&mut self) -> Result<()> {
        while self.eat(',') {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.eat('+') {
                        self.int("an offset")?;
                    }
                }
                "inlined_at" => {
                    for _ in 0..3 {
                        self.int("a number")?;
                    }
                }
                _ => return self.error("`function_name` or `inlined_at`"),
            }
        }
        Ok(())
    }
}
