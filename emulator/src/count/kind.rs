//! The kinds by which instructions are counted.

/// What an instruction is, by the unit that runs it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[repr(u8)]
pub enum InstructionKind {
    /// Integer and bitwise arithmetic.
    Integer,
    /// f32 arithmetic.
    Float,
    /// f16 and bf16 arithmetic.
    Half,
    /// f64 arithmetic.
    Double,
    /// `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh`, `div`.
    Special,
    /// `cvt`.
    Convert,
    /// `setp`, `selp`, `set`, `slct` and predicate logic.
    Compare,
    /// `mov`, `cvta`, `prmt` and packing.
    Move,
    /// `bra`, `ret`, `exit`, `call`.
    Branch,
    /// `ld.global`, and `ld` on a generic address that is global.
    GlobalLoad,
    /// `st.global`, and `st` on a generic address that is global.
    GlobalStore,
    /// `ld.shared`.
    SharedLoad,
    /// `st.shared`.
    SharedStore,
    /// `ldmatrix`.
    LoadMatrix,
    /// `movmatrix`.
    MoveMatrix,
    /// `ld` and `st` on local memory.
    Local,
    /// `ld.param` and `ld.const`.
    Constant,
    /// `cp.async`.
    AsyncCopy,
    /// `cp.async.commit_group`, `cp.async.wait_group`.
    AsyncGroup,
    /// `atom`, `red`.
    Atomic,
    /// `mma`.
    Mma,
    /// `shfl`.
    Shuffle,
    /// `vote`, `match`, `activemask`, `redux`.
    Vote,
    /// `bar.sync` and `barrier` over the block.
    Barrier,
    /// `bar.warp.sync`.
    WarpSync,
    /// `membar`, `fence`.
    Fence,
}

impl InstructionKind {
    /// Every kind.
    pub const ALL: [Self; 26] = [
        Self::Integer,
        Self::Float,
        Self::Half,
        Self::Double,
        Self::Special,
        Self::Convert,
        Self::Compare,
        Self::Move,
        Self::Branch,
        Self::GlobalLoad,
        Self::GlobalStore,
        Self::SharedLoad,
        Self::SharedStore,
        Self::LoadMatrix,
        Self::MoveMatrix,
        Self::Local,
        Self::Constant,
        Self::AsyncCopy,
        Self::AsyncGroup,
        Self::Atomic,
        Self::Mma,
        Self::Shuffle,
        Self::Vote,
        Self::Barrier,
        Self::WarpSync,
        Self::Fence,
    ];
}
