//! A parsed module, ready to launch.

use crate::lower::{Entry, lower_module};
use crate::memory::{Allocation, MODULE_BASE};
use crate::parse::parse;
use crate::{ParseError, ParseErrorKind};
use std::collections::HashMap;
use std::sync::Arc;

/// A line of CUDA source that an instruction was compiled from. Where code was inlined it is the innermost line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceLine<'a> {
    /// File name as in the `.file` directive.
    pub file: &'a str,
    /// One-based line.
    pub line: u32,
}

/// Where a PTX instruction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionLine<'a> {
    /// One-based line of the PTX text.
    pub ptx_line: u32,
    /// The source line, when the PTX carries `.loc` directives.
    pub source: Option<SourceLine<'a>>,
}

/// A PTX module, parsed and lowered. Cheap to clone and to share between threads; clones share the module's
/// `.global` variables.
///
/// ```
/// use pagesmith_emulator::Program;
/// let program = Program::parse(".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }")?;
/// assert_eq!(program.entries().collect::<Vec<_>>(), ["k"]);
/// # Ok::<(), pagesmith_emulator::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) module: Arc<LoadedModule>,
}

/// What clones of a program share.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    pub(crate) entries: Vec<Entry>,
    pub(crate) files: HashMap<u32, Arc<str>>,
    /// The `.const` variables.
    pub(crate) constants: Vec<u8>,
    /// The `.global` variables, when there are any.
    pub(crate) globals: Option<Arc<Allocation>>,
}

impl Program {
    /// Parses and lowers a PTX text.
    ///
    /// # Errors
    /// [`ParseError`] names the line and what it cannot accept; an unsupported instruction is refused here.
    pub fn parse(ptx: &str) -> Result<Self, ParseError> {
        let module = parse(ptx)?;
        let lowered = lower_module(&module)?;
        let bytes = lowered.globals.len() as u64;
        let mut globals = None;
        if bytes > 0 {
            let Some(allocation) =
                Allocation::new(Arc::from("module variables"), MODULE_BASE, bytes)
            else {
                let kind = ParseErrorKind::TooLarge {
                    what: "module variables",
                    value: bytes,
                    limit: 0,
                };
                return Err(ParseError { line: 0, kind });
            };
            allocation.write(0, &lowered.globals);
            allocation.mark(0, bytes);
            globals = Some(Arc::new(allocation));
        }
        let files = module.files.into_iter().collect();
        let loaded = LoadedModule {
            entries: lowered.entries,
            files,
            constants: lowered.constants,
            globals,
        };
        Ok(Self {
            module: Arc::new(loaded),
        })
    }

    /// Names of the entries, in PTX order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.module.entries.iter().map(|entry| &*entry.name)
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.module
            .entries
            .iter()
            .find(|entry| &*entry.name == name)
    }

    /// Where each instruction of an entry stands, in PTX order; empty for an unknown entry. Instructions of inlined
    /// functions appear at each call.
    pub fn instruction_lines(&self, entry: &str) -> impl Iterator<Item = InstructionLine<'_>> {
        let lines = self.entry(entry).map_or(&[][..], |entry| &entry.lines);
        lines.iter().map(|line| InstructionLine {
            ptx_line: line.ptx,
            source: self.source(line.source),
        })
    }

    pub(crate) fn source(&self, source: Option<(u32, u32)>) -> Option<SourceLine<'_>> {
        let (file, line) = source?;
        Some(SourceLine {
            file: self.module.files.get(&file)?,
            line,
        })
    }
}
