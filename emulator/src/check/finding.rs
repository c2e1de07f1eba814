//! A fault of the kernel under test, and where it was seen.

use std::fmt;

/// The kinds of fault.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Outside every live allocation (global), or outside shared, local or parameter space.
    OutOfBounds,
    /// Inside an allocation that was freed.
    UseAfterFree,
    /// The address is no multiple of the access size.
    Misaligned,
    /// Bytes of memory that nothing wrote.
    UninitialisedMemory,
    /// A register that nothing wrote on the path taken.
    UninitialisedRegister,
    /// Two threads touch the same shared bytes, at least one writes, and no barrier orders them.
    SharedRace,
    /// Shared bytes are touched between the issue of the cp.async that writes them and its wait.
    InFlightCopy,
    /// A barrier in a diverged warp.
    DivergentBarrier,
    /// Some warps of the block wait at a barrier that the others never reach.
    Deadlock,
    /// A `.sync` instruction whose member mask names lanes that are not executing it.
    InactiveLane,
    /// The block ran into the instruction limit.
    InstructionLimit,
    /// The kernel executed `trap`.
    Trap,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfBounds => "out of bounds",
            Self::UseAfterFree => "use after free",
            Self::Misaligned => "misaligned",
            Self::UninitialisedMemory => "uninitialised memory",
            Self::UninitialisedRegister => "uninitialised register",
            Self::SharedRace => "shared-memory race",
            Self::InFlightCopy => "in-flight cp.async data",
            Self::DivergentBarrier => "divergent barrier",
            Self::Deadlock => "deadlock",
            Self::InactiveLane => "inactive lane",
            Self::InstructionLimit => "instruction limit",
            Self::Trap => "trap",
        })
    }
}

/// A line of the source that the PTX was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Location {
    /// File name as in the `.file` directive.
    pub file: String,
    /// One-based line.
    pub line: u32,
}

/// One fault, first seen by this block, warp and lane. Later ones of the same kind at the same PTX line only
/// raise `occurrences`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// Entry that was launched.
    pub kernel: String,
    /// Block index.
    pub block: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// One-based line of the PTX text.
    pub ptx_line: u32,
    /// Source line, when the PTX carries `.loc` directives.
    pub source: Option<Location>,
    /// The address, where one is involved: a global address, or an offset in its own space.
    pub address: Option<u64>,
    /// The global allocation concerned, where one is.
    pub allocation: Option<String>,
    /// One sentence for a person.
    pub message: String,
    /// How often it was seen in the launch, over all lanes.
    pub occurrences: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(
            f,
            "{}: {} in `{}`, block ({x}, {y}, {z}) warp {} lane {}, PTX line {}",
            self.kind, self.message, self.kernel, self.warp, self.lane, self.ptx_line
        )?;
        if let Some(source) = &self.source {
            write!(f, ", {}:{}", source.file, source.line)?;
        }
        if self.occurrences > 1 {
            write!(f, " ({} times)", self.occurrences)?;
        }
        Ok(())
    }
}
