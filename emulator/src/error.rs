//! What can go wrong, each error naming where and what to change.

use std::fmt;

/// Why a PTX text was refused. Everything the interpreter cannot run is refused here, so that a launch
/// never meets an unknown instruction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {kind}")]
pub struct ParseError {
    /// One-based line in the PTX text.
    pub line: u32,
    /// What is wrong with that line.
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text is not PTX at this point.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// What the grammar wants here.
        expected: &'static str,
        /// The token that stands here instead.
        found: String,
    },
    /// A well-formed instruction that the emulator does not run.
    #[error("unsupported instruction `{0}`")]
    Unsupported(String),
    /// An operand of the wrong kind or size for its instruction.
    #[error("bad operand of `{instruction}`: {why}")]
    Operand {
        /// The opcode with its modifiers.
        instruction: String,
        /// What does not fit.
        why: String,
    },
    /// A name that nothing declares.
    #[error("unknown {what} `{name}`")]
    Unknown {
        /// What kind of name is missing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that is declared twice in one scope.
    #[error("`{0}` is declared twice")]
    Duplicate(String),
    /// A declared size beyond what the emulator accepts; guards against hostile lengths.
    #[error("{what} of {value} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its declared size.
        value: u64,
        /// The largest accepted size.
        limit: u64,
    },
}

/// Why a call on [`crate::Memory`] was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Zero bytes, or more than the emulated address space holds.
    #[error(
        "allocation `{name}` of {bytes} bytes: sizes from 1 byte to {limit} bytes are possible"
    )]
    Size {
        /// Name given to the allocation.
        name: String,
        /// Requested size.
        bytes: u64,
        /// Largest size that still fits.
        limit: u64,
    },
    /// The host has no memory for it.
    #[error("allocation `{name}` of {bytes} bytes: the host is out of memory")]
    HostOutOfMemory {
        /// Name given to the allocation.
        name: String,
        /// Requested size.
        bytes: u64,
    },
    /// The address range is not inside one live allocation.
    #[error("{bytes} bytes at {address} are not inside one live allocation{}", Near(.near))]
    OutOfBounds {
        /// Start of the range.
        address: crate::Address,
        /// Length of the range.
        bytes: u64,
        /// The allocation just below the address, where there is one.
        near: Option<String>,
    },
    /// The address is not the start of a live allocation.
    #[error("{0} is not the start of a live allocation")]
    NotAnAllocation(crate::Address),
}

struct Near<'a>(&'a Option<String>);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, " (nearest below: `{name}`)"),
            None => Ok(()),
        }
    }
}

/// Why a launch did not run to its end. Faults of the kernel itself are [`crate::Finding`]s, not errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program has no such entry.
    #[error("no entry `{entry}` in the program; it has {}", .known.join(", "))]
    UnknownEntry {
        /// The requested entry.
        entry: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A grid or block dimension that no GPU accepts.
    #[error("{field} is {value}: {why}")]
    Dimension {
        /// `grid`, `block` or a component of them.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The limit it breaks.
        why: &'static str,
    },
    /// More shared memory than a block can have.
    #[error(
        "{bytes} bytes of shared memory (static {fixed}, dynamic {dynamic}) exceed the limit of {limit}"
    )]
    SharedMemory {
        /// Static and dynamic together.
        bytes: u64,
        /// Declared in the PTX.
        fixed: u64,
        /// Asked for by the launch.
        dynamic: u64,
        /// What the emulator grants a block.
        limit: u64,
    },
    /// The parameter bytes do not fit the entry's parameter list.
    #[error("entry `{entry}` takes {expected} bytes of parameters, the launch gives {given}")]
    Parameters {
        /// The entry.
        entry: String,
        /// Size of its parameter space.
        expected: u64,
        /// Bytes given.
        given: u64,
    },
    /// A selected block that the grid does not have.
    #[error("block {block:?} is outside the grid {grid:?}")]
    NoSuchBlock {
        /// The block.
        block: [u32; 3],
        /// The grid.
        grid: [u32; 3],
    },
    /// The worker threads could not be started.
    #[error("cannot start {threads} worker threads: {why}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        why: String,
    },
}
