//! Tokens to syntax tree, by recursive descent with bounded depth.

use super::ast::{
    Function, Guard, Instruction, Module, Operand, RegisterDeclaration, Space, Statement, Ty,
    Variable,
};
use super::lexer::{Token, TokenKind, tokens};
use crate::{ParseError, ParseErrorKind};
use std::sync::Arc;

/// Nested operands and scopes deeper than this are hostile.
const MAX_DEPTH: u32 = 16;
/// Bytes of one variable.
const MAX_VARIABLE: u64 = 64 << 20;

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<Module> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    parser.module()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> TokenKind<'a> {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> TokenKind<'a> {
        self.tokens
            .get(self.at + n)
            .map_or(TokenKind::End, |token| token.kind)
    }

    fn line(&self) -> u32 {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(1, |token| token.line)
    }

    fn next(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        self.at += usize::from(kind != TokenKind::End);
        kind
    }

    fn error<T>(&self, expected: &'static str) -> Result<T> {
        let found = self.peek().shown();
        Err(ParseError {
            line: self.line(),
            kind: ParseErrorKind::Syntax { expected, found },
        })
    }

    fn eat(&mut self, c: char) -> bool {
        let hit = self.peek() == TokenKind::Punct(c);
        self.at += usize::from(hit);
        hit
    }

    fn eat_dotted(&mut self, name: &str) -> bool {
        let hit = self.peek() == TokenKind::Dotted(name);
        self.at += usize::from(hit);
        hit
    }

    fn want(&mut self, c: char, expected: &'static str) -> Result<()> {
        if self.eat(c) {
            Ok(())
        } else {
            self.error(expected)
        }
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str> {
        match self.peek() {
            TokenKind::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.error(expected),
        }
    }

    fn int(&mut self, expected: &'static str) -> Result<u64> {
        match self.peek() {
            TokenKind::Int(value) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.error(expected),
        }
    }

    fn too_large<T>(&self, what: &'static str, value: u64, limit: u64) -> Result<T> {
        Err(ParseError {
            line: self.line(),
            kind: ParseErrorKind::TooLarge { what, value, limit },
        })
    }

    fn small(&mut self, what: &'static str) -> Result<u32> {
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

    fn declaration(&mut self, module: &mut Module) -> Result<()> {
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
    fn variables(&mut self, space: Space) -> Result<Vec<Variable>> {
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

    fn variable_type(&mut self) -> Result<(u64, Ty, u64)> {
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

    fn variable(&mut self, space: Space, align: u64, ty: Ty, lanes: u64) -> Result<Variable> {
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

    fn initialiser(&mut self, element: u64, out: &mut Vec<u8>, depth: u32) -> Result<()> {
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

    fn parameters(&mut self) -> Result<Vec<Variable>> {
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

    fn function(&mut self, module: &mut Module, entry: bool) -> Result<()> {
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

    fn registers(&mut self, body: &mut Vec<Statement>) -> Result<()> {
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

    fn instruction(&mut self) -> Result<Instruction> {
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
