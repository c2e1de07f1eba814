//! NVRTC's messages, each shown with the line it is about.

use crate::Source;
use crate::source::line_directive;
use std::fmt;

/// One error of a compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The template or header, by the path in its `#line`.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// The rendered line.
    pub quote: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        if let Some(quote) = &self.quote {
            write!(f, "\n{:>5} | {quote}", self.line)?;
        }
        Ok(())
    }
}

/// The errors in a compile's log, in its order.
pub(super) fn errors(log: &str, source: &Source) -> Vec<Diagnostic> {
    log.lines()
        .filter_map(|line| {
            let (place, message) = line
                .split_once(": error: ")
                .or_else(|| line.split_once(": catastrophic error: "))
                .or_else(|| split_numbered(line))?;
            let (file, number) = place.strip_suffix(')')?.rsplit_once('(')?;
            let number = number.parse().ok()?;
            Some(Diagnostic {
                file: file.to_owned(),
                line: number,
                message: message.to_owned(),
                quote: quote(source, file, number),
            })
        })
        .collect()
}

/// Splits at `: error #20:`, the form of errors that a pragma could silence.
fn split_numbered(line: &str) -> Option<(&str, &str)> {
    let (place, rest) = line.split_once(": error #")?;
    let (_, message) = rest.split_once(": ")?;
    Some((place, message))
}

/// Line `number` of what calls itself `file` in a `#line` of the source or of one of its headers.
fn quote(source: &Source, file: &str, number: u32) -> Option<String> {
    let texts = std::iter::once((source.name.as_str(), source.text.as_str())).chain(
        source
            .headers
            .iter()
            .map(|header| (header.name.as_str(), header.text.as_str())),
    );
    for (name, text) in texts {
        let mut current = (name.to_owned(), 1u32);
        for line in text.lines() {
            if let Some(next) = line_directive(line) {
                current = next;
                continue;
            }
            if current.0 == file && current.1 == number {
                return Some(line.to_owned());
            }
            current.1 = current.1.saturating_add(1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use std::sync::Arc;

    fn source() -> Source {
        Source {
            name: "/pagesmith/a.cu.tera".into(),
            text: "#line 1 \"/pagesmith/a.cu.tera\"\n#include \"b.cuh\"\nint a = x;\n".into(),
            headers: vec![Arc::new(Header {
                name: "b.cuh".into(),
                text: "#line 1 \"/pagesmith/device/b.cuh\"\n#pragma once\nint b = y;\n".into(),
            })],
            entries: vec![],
            variant: None,
        }
    }

    #[test]
    fn each_error_quotes_its_line_of_the_template_or_header() {
        let log = "/pagesmith/device/b.cuh(2): error: identifier \"y\" is undefined\n  int b = y;\n          ^\n\n\
                   /pagesmith/a.cu.tera(2): warning #177-D: variable unused\n\
                   /pagesmith/a.cu.tera(2): error #20: identifier \"x\" is undefined\n\n2 errors detected.\n";
        let found = errors(log, &source());
        assert_eq!(
            found[0].to_string(),
            "/pagesmith/device/b.cuh:2: identifier \"y\" is undefined\n    2 | int b = y;"
        );
        assert_eq!(
            found[1].to_string(),
            "/pagesmith/a.cu.tera:2: identifier \"x\" is undefined\n    2 | int a = x;"
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_line_that_no_source_has_is_reported_without_a_quote() {
        let found = errors(
            "elsewhere.h(7): catastrophic error: cannot open x",
            &source(),
        );
        assert_eq!(found[0].quote, None);
        assert_eq!(found[0].line, 7);
    }
}
