//! Text to tokens. A token borrows the text, so that lexing allocates once.

use crate::{ParseError, ParseErrorKind};

/// A token and its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) line: u32,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// An identifier: letters, digits, `_`, `$`, `%`.
    Word(&'a str),
    /// `.name`; parts may hold `::`.
    Dotted(&'a str),
    /// An integer literal, without sign.
    Int(u64),
    /// The bits of a `0f` literal.
    F32(u32),
    /// The bits of a `0d` or decimal literal.
    F64(u64),
    /// A quoted string, without quotes.
    Text(&'a str),
    /// A single punctuation character.
    Punct(char),
    /// The end of the text.
    End,
}

impl TokenKind<'_> {
    /// As an error shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("`{}`", clipped(word)),
            Self::Dotted(word) => format!("`.{}`", clipped(word)),
            Self::Int(value) => format!("`{value}`"),
            Self::F32(bits) => format!("`0f{bits:08X}`"),
            Self::F64(bits) => format!("`0d{bits:016X}`"),
            Self::Text(text) => format!("\"{}\"", clipped(text)),
            Self::Punct(c) => format!("`{c}`"),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// A hostile text may hold a token of megabytes; an error need not.
fn clipped(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Splits a PTX text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    let mut all = Vec::with_capacity(text.len() / 4);
    loop {
        let token = lexer.next()?;
        all.push(token);
        if token.kind == TokenKind::End {
            return Ok(all);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn error(&self, expected: &'static str, found: String) -> ParseError {
        ParseError {
            line: self.line,
            kind: ParseErrorKind::Syntax { expected, found },
        }
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.line = self.line.saturating_add(1);
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'/', b'/') => {
                    while self.at < self.text.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                (b'/', b'*') => {
                    let rest = &self.text.as_bytes()[self.at + 2..];
                    let Some(end) = rest.windows(2).position(|pair| pair == b"*/") else {
                        return Err(self.error("`*/`", TokenKind::End.shown()));
                    };
                    let lines = rest[..end].iter().filter(|&&byte| byte == b'\n').count();
                    self.line = self
                        .line
                        .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
                    self.at += end + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.text.len() && keep(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blank()?;
        let line = self.line;
        if self.at >= self.text.len() {
            return Ok(Token {
                kind: TokenKind::End,
                line,
            });
        }
        let byte = self.peek(0);
        let kind = match byte {
            b'.' => {
                self.at += 1;
                let start = self.at;
                self.take_while(is_word);
                while self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
                    self.at += 2;
                    self.take_while(is_word);
                }
                TokenKind::Dotted(&self.text[start..self.at])
            }
            b'"' => {
                self.at += 1;
                let inner = self.take_while(|byte| byte != b'"' && byte != b'\n');
                if self.peek(0) != b'"' {
                    return Err(self.error("a closing quote", TokenKind::Text(inner).shown()));
                }
                self.at += 1;
                TokenKind::Text(inner)
            }
            b'0'..=b'9' => self.number()?,
            byte if is_word(byte) => TokenKind::Word(self.take_while(is_word)),
            byte if byte.is_ascii() => {
                self.at += 1;
                TokenKind::Punct(char::from(byte))
            }
            _ => {
                let found = self.text[self.at..]
                    .chars()
                    .next()
                    .map(|c| format!("`{c}`"))
                    .unwrap_or_default();
                return Err(self.error("PTX", found));
            }
        };
        Ok(Token { kind, line })
    }

    fn number(&mut self) -> Result<TokenKind<'a>, ParseError> {
        let start = self.at;
        let digits = self.take_while(|byte| byte.is_ascii_alphanumeric());
        let bad = |lexer: &Self| lexer.error("a number", format!("`{}`", clipped(digits)));
        let radix = |digits: &str, radix| u64::from_str_radix(digits, radix);
        let lower = digits.as_bytes().get(1).map(u8::to_ascii_lowercase);
        let kind = match (digits.as_bytes()[0], lower) {
            (b'0', Some(b'f')) if digits.len() == 10 => {
                TokenKind::F32(u32::from_str_radix(&digits[2..], 16).map_err(|_| bad(self))?)
            }
            (b'0', Some(b'd')) if digits.len() == 18 => {
                TokenKind::F64(radix(&digits[2..], 16).map_err(|_| bad(self))?)
            }
            (b'0', Some(b'x')) => {
                TokenKind::Int(radix(digits[2..].trim_end_matches('U'), 16).map_err(|_| bad(self))?)
            }
            (b'0', Some(b'b')) => {
                TokenKind::Int(radix(digits[2..].trim_end_matches('U'), 2).map_err(|_| bad(self))?)
            }
            _ if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() => {
                self.at += 1;
                self.take_while(|byte| byte.is_ascii_alphanumeric());
                if self.text[..self.at].ends_with(['e', 'E']) && matches!(self.peek(0), b'-' | b'+')
                {
                    self.at += 1;
                    self.take_while(|byte| byte.is_ascii_digit());
                }
                let value: f64 = self.text[start..self.at].parse().map_err(|_| bad(self))?;
                TokenKind::F64(value.to_bits())
            }
            (b'0', Some(b'0'..=b'9')) => {
                TokenKind::Int(radix(digits[1..].trim_end_matches('U'), 8).map_err(|_| bad(self))?)
            }
            _ => TokenKind::Int(
                digits
                    .trim_end_matches('U')
                    .parse()
                    .map_err(|_| bad(self))?,
            ),
        };
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind<'_>> {
        tokens(text)
            .unwrap()
            .into_iter()
            .map(|token| token.kind)
            .collect()
    }

    #[test]
    fn literals_keep_their_bits() {
        assert_eq!(
            kinds("0f3F800000 0d3FF8000000000000 0x1fU 42U 017 1.5 0b101"),
            [
                TokenKind::F32(0x3F80_0000),
                TokenKind::F64(0x3FF8_0000_0000_0000),
                TokenKind::Int(0x1f),
                TokenKind::Int(42),
                TokenKind::Int(0o17),
                TokenKind::F64(1.5f64.to_bits()),
                TokenKind::Int(5),
                TokenKind::End,
            ]
        );
    }

    #[test]
    fn modifiers_with_colons_are_one_token() {
        assert_eq!(
            kinds("ld.L1::no_allocate"),
            [
                TokenKind::Word("ld"),
                TokenKind::Dotted("L1::no_allocate"),
                TokenKind::End
            ]
        );
    }

    #[test]
    fn comments_count_lines() {
        let all = tokens("// a\n/* b\nc */ x").unwrap();
        assert_eq!((all[0].kind, all[0].line), (TokenKind::Word("x"), 3));
    }

    #[test]
    fn text_that_is_not_ascii_is_refused_without_panicking() {
        assert!(tokens("add é").is_err());
        assert!(tokens("\"é\"").is_ok());
        assert!(tokens("99999999999999999999999").is_err());
        assert!(tokens("/* open").is_err());
    }
}
