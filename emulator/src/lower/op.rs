//! The lowered instruction: dense register numbers, every modifier decided.

use crate::parse::ast::Ty;

/// Number of a register in its file.
pub(crate) type Reg = u16;

/// Stands for "no register".
pub(crate) const NONE: Reg = Reg::MAX;

/// The register files. 16-bit registers live zero-extended in the 32-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum File {
    Pred,
    W32,
    W64,
}

/// How an instruction uses a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A lowered instruction.
#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// Guard predicate, or [`NONE`].
    pub(crate) guard: Reg,
    pub(crate) guard_not: bool,
    /// Reads or writes a register that some path leaves unwritten.
    pub(crate) tracked: bool,
}

/// `[base + offset]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Reg,
    pub(crate) wide: bool,
    pub(crate) offset: i32,
}

/// State spaces of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Param,
    Const,
}

/// 32-bit operations of one operand. Names ending in 16 work on 16-bit values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary32 {
    Mov,
    Not,
    Not16,
    Neg,
    Neg16,
    Abs,
    Abs16,
    Popc,
    Clz,
    Brev,
    FindU,
    FindS,
    FindShiftU,
    FindShiftS,
    Zext8,
    Zext16,
    Sext8,
    Sext16,
    FMov,
    FNeg,
    FAbs,
    Ex2,
    Lg2,
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Tanh,
    S32ToF32,
    U32ToF32,
    F32ToS32Trunc,
    F16ToF32,
    BF16ToF32,
    F32ToF16,
    F32ToBF16,
}

/// 32-bit operations of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary32 {
    Add,
    Add16,
    Sub,
    Sub16,
    Mul,
    Mul16,
    MulHiS,
    MulHiU,
    MulHiS16,
    MulHiU16,
    MulWideS16,
    DivS,
    DivU,
    DivS16,
    RemS,
    RemU,
    RemS16,
    MinS,
    MinU,
    MinS16,
    MaxS,
    MaxU,
    MaxS16,
    And,
    Or,
    Xor,
    Shl,
    Shl16,
    ShrU,
    ShrS,
    ShrS16,
    Mul24S,
    Mul24U,
    AddSatS,
    SubSatS,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FMin,
    FMax,
    FMinNan,
    FMaxNan,
    FCopySign,
    /// High half from `a`, low half from `b`, as `cvt.rn.f16x2.f32` does.
    PackF16,
    PackBF16,
}

/// 32-bit operations of three operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ternary32 {
    Mad,
    Mad16,
    MadHiS,
    MadHiU,
    /// Signed 16-bit product added to 32 bits.
    MadWideS16,
    Prmt,
    ShfLWrap,
    ShfLClamp,
    ShfRWrap,
    ShfRClamp,
    BfeU,
    BfeS,
    Dp4aSS,
    Dp4aUU,
    SadS,
    SadU,
    /// `c >= 0 ? a : b`.
    SlctS,
    SlctF,
    FFma,
}

/// f16 and bf16 operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Add,
    Sub,
    Mul,
    Fma,
    Min,
    Max,
    MinNan,
    MaxNan,
    Neg,
    Abs,
    Ex2,
    Tanh,
}

/// The format of a [`Half`] operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HalfFormat {
    pub(crate) bf16: bool,
    /// Two values in a register.
    pub(crate) packed: bool,
}

/// 64-bit operations of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary64 {
    Mov,
    Not,
    Neg,
    Abs,
    Brev,
    DNeg,
    DAbs,
    DRcp,
    DSqrt,
    DRsqrt,
}

/// 64-bit operations of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary64 {
    Add,
    Sub,
    Mul,
    MulHiS,
    MulHiU,
    DivS,
    DivU,
    RemS,
    RemU,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
    DAdd,
    DSub,
    DMul,
    DDiv,
    DMin,
    DMax,
}

/// 64-bit operations of three operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ternary64 {
    Mad,
    DFma,
}

/// 64-bit shifts, whose amount is 32-bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift64 {
    Shl,
    ShrU,
    ShrS,
}

/// 32 to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widen {
    Zext,
    Sext,
}

/// 64 to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrow {
    Trunc,
    Popc,
    Clz,
    FindU,
    FindS,
    FindShiftU,
    FindShiftS,
}

/// Rounding of conversions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Even,
    Zero,
    Down,
    Up,
}

/// A conversion that has no operation of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) from: Ty,
    pub(crate) to: Ty,
    pub(crate) round: Round,
    /// Rounds to an integral value of the floating-point type.
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) saturate: bool,
    pub(crate) relu: bool,
}

/// Comparisons. The `..u` ones are true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CmpTy {
    U32,
    S32,
    S16,
    F32,
    F16,
    BF16,
    U64,
    S64,
    F64,
}

/// How `setp` joins its comparison with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Set,
    And,
    Or,
    Xor,
}

/// Flags of floating-point operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
}

/// Atomic operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Inc,
    Dec,
}

/// Shuffles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// Votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Warp reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduce {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
}

/// What a block-wide barrier does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    /// Counts the true predicates.
    ReducePopc,
    ReduceAnd,
    ReduceOr,
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Scheduling hints, prefetches, fences: no effect that the emulator models.
    Nop,
    Unary32 {
        op: Unary32,
        flags: Flags,
        d: Reg,
        a: Reg,
    },
    Binary32 {
        op: Binary32,
        flags: Flags,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary32 {
        op: Ternary32,
        flags: Flags,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Lop3 {
        lut: u8,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    /// Bit-field insert of `a` into `b` at `c`, `len` bits.
    Bfi32 {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        len: Reg,
    },
    Half {
        op: Half,
        format: HalfFormat,
        flags: Flags,
        relu: bool,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Unary64 {
        op: Unary64,
        d: Reg,
        a: Reg,
    },
    Binary64 {
        op: Binary64,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary64 {
        op: Ternary64,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Shift64 {
        op: Shift64,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Bfe64 {
        signed: bool,
        d: Reg,
        a: Reg,
        b: Reg,
        len: Reg,
    },
    Bfi64 {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        len: Reg,
    },
    Widen {
        op: Widen,
        d: Reg,
        a: Reg,
    },
    Narrow {
        op: Narrow,
        d: Reg,
        a: Reg,
    },
    MulWide {
        signed: bool,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MadWide {
        signed: bool,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Convert {
        how: Conversion,
        d: Reg,
        a: Reg,
    },
    Set {
        ty: CmpTy,
        cmp: Cmp,
        ftz: bool,
        d: Reg,
        e: Reg,
        a: Reg,
        b: Reg,
        join: Join,
        c: Reg,
        c_not: bool,
    },
    /// `set`: a 32-bit result, all ones (or 1.0) where true.
    SetValue {
        ty: CmpTy,
        cmp: Cmp,
        ftz: bool,
        float: bool,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Select32 {
        d: Reg,
        a: Reg,
        b: Reg,
        p: Reg,
    },
    Select64 {
        d: Reg,
        a: Reg,
        b: Reg,
        p: Reg,
    },
    PredMov {
        d: Reg,
        a: Reg,
        not: bool,
    },
    PredConst {
        d: Reg,
        value: bool,
    },
    PredLogic {
        join: Join,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Pack16 {
        d: Reg,
        lo: Reg,
        hi: Reg,
    },
    Unpack16 {
        lo: Reg,
        hi: Reg,
        a: Reg,
    },
    Pack32 {
        d: Reg,
        lo: Reg,
        hi: Reg,
    },
    Unpack32 {
        lo: Reg,
        hi: Reg,
        a: Reg,
    },
    Pack16x4 {
        d: Reg,
        parts: [Reg; 4],
    },
    Unpack16x4 {
        parts: [Reg; 4],
        a: Reg,
    },
    Load {
        space: Space,
        ty: Ty,
        count: u8,
        wide: bool,
        d: [Reg; 4],
        address: Address,
    },
    Store {
        space: Space,
        ty: Ty,
        count: u8,
        wide: bool,
        a: [Reg; 4],
        address: Address,
    },
    Atomic {
        space: Space,
        op: Atomic,
        ty: Ty,
        d: Reg,
        address: Address,
        b: Reg,
        c: Reg,
    },
    /// `size` bytes; `src` is the register with the bytes to read, or [`NONE`].
    AsyncCopy {
        size: u8,
        to: Address,
        from: Address,
        src: Reg,
    },
    AsyncCommit,
    /// Waits until at most `pending` groups of the thread are open; `all` also takes uncommitted copies.
    AsyncWait {
        pending: u32,
        all: bool,
    },
    LoadMatrix {
        count: u8,
        trans: bool,
        d: [Reg; 4],
        address: Address,
    },
    MoveMatrix {
        d: Reg,
        a: Reg,
    },
    /// m16n8k16 or m16n8k8, f32 accumulators.
    Mma {
        bf16: bool,
        k16: bool,
        d: [Reg; 4],
        a: [Reg; 4],
        b: [Reg; 2],
        c: [Reg; 4],
    },
    Shuffle {
        how: Shuffle,
        d: Reg,
        p: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        members: Reg,
    },
    Vote {
        how: Vote,
        d: Reg,
        a: Reg,
        a_not: bool,
        members: Reg,
    },
    ActiveMask {
        d: Reg,
    },
    MatchAny {
        d: Reg,
        a: Reg,
        members: Reg,
    },
    Reduce {
        how: Reduce,
        d: Reg,
        a: Reg,
        members: Reg,
    },
    Barrier {
        kind: BarrierKind,
        id: Reg,
        count: Reg,
        d: Reg,
        a: Reg,
        a_not: bool,
        aligned: bool,
    },
    WarpSync {
        members: Reg,
    },
    Branch {
        target: u32,
    },
    BranchTable {
        index: Reg,
        table: u32,
    },
    Exit,
    Trap,
    IsSpace {
        space: Space,
        d: Reg,
        a: Reg,
    },
    Clock {
        wide: bool,
        d: Reg,
    },
}
