//! A lowered entry: code and everything a launch must prepare for it.

use super::op::{File, Inst, Reg};
use crate::count::InstructionKind;
use std::sync::Arc;

/// Where an instruction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) ptx: u32,
    /// File index of the module and line; file 0 is "none".
    pub(crate) source: Option<(u32, u32)>,
}

/// A special register and the plane that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Special {
    pub(crate) reg: Reg,
    pub(crate) wide: bool,
    pub(crate) kind: SpecialKind,
}

/// Special registers whose value is fixed for a warp's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SpecialKind {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    LaneMaskEq,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    SmId,
    SmCount,
    GridId,
    DynamicShared,
    TotalShared,
}

/// A lowered entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) param_bytes: u32,
    /// Static shared memory, dynamic shared memory following at the next multiple of its alignment.
    pub(crate) static_shared: u32,
    pub(crate) dynamic_base: u32,
    /// Local memory of a thread.
    pub(crate) local_bytes: u32,
    /// One instruction a PTX instruction, inlined calls included.
    pub(crate) code: Vec<Inst>,
    pub(crate) lines: Vec<Line>,
    pub(crate) kinds: Vec<InstructionKind>,
    /// Targets of `brx.idx`.
    pub(crate) tables: Vec<Vec<u32>>,
    /// Sizes of the register files.
    pub(crate) preds: u16,
    pub(crate) words: u16,
    pub(crate) doubles: u16,
    /// Registers that some path reads before it writes them.
    pub(crate) tracked: Vec<(File, Reg)>,
    pub(crate) constants32: Vec<(Reg, u32)>,
    pub(crate) constants64: Vec<(Reg, u64)>,
    pub(crate) specials: Vec<Special>,
}
