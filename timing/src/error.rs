//! What can be wrong with an input, by field, value and fix.

/// An input that cannot be counted or predicted from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The bytes are no ELF file that the reader understands.
    #[error("cubin: not readable as ELF: {reason}; pass the CUBIN that NVRTC returned")]
    Elf {
        /// What the ELF reader found.
        reason: String,
    },
    /// An ELF file for another machine.
    #[error("cubin: ELF machine {machine} is not CUDA (190); pass the CUBIN that NVRTC returned")]
    NotCuda {
        /// `e_machine`.
        machine: u16,
    },
    /// The CUBIN has no such kernel.
    #[error("entry: `{entry}` is not in the CUBIN; it holds {available:?}")]
    UnknownEntry {
        /// The name asked for.
        entry: String,
        /// The kernels that the CUBIN has, at most 16.
        available: Vec<String>,
    },
    /// A kernel's code is not a whole number of instructions, is empty, or is beyond any real kernel.
    #[error(
        "cubin: code of `{entry}` is {length} bytes; it must be 1..={MAX_INSTRUCTIONS} instructions of 16 bytes"
    )]
    Code {
        /// The kernel.
        entry: String,
        /// Bytes of its section.
        length: usize,
    },
    /// The line table is malformed.
    #[error("cubin: .nv_debug_line_sass at byte {offset}: {reason}; compile again with -lineinfo")]
    Lines {
        /// Where parsing stopped.
        offset: usize,
        /// What was wrong there.
        reason: &'static str,
    },
    /// The kernel has no line table, so that nothing ties its code to PTX.
    #[error("cubin: `{entry}` has no SASS line table; compile with -lineinfo")]
    NoLines {
        /// The kernel.
        entry: String,
    },
    /// A figure of a launch that cannot be.
    #[error("launch `{launch}`: {field} is {value}; {fix}")]
    Profile {
        /// The launch's name.
        launch: String,
        /// The field of the profile.
        field: &'static str,
        /// Its value.
        value: f64,
        /// What to do.
        fix: &'static str,
    },
}

/// Instructions of one kernel that are accepted: far above any real kernel, and a bound for hostile files.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 20;
