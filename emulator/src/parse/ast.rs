//! The syntax tree: names are still text, instructions still dotted opcodes.

use std::sync::Arc;

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Module-scope variables.
    pub(crate) variables: Vec<Variable>,
    /// Entries and functions with a body.
    pub(crate) functions: Vec<Function>,
    /// `.file` directives: index and name.
    pub(crate) files: Vec<(u32, Arc<str>)>,
}

/// State spaces of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// A declared variable or parameter.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) space: Space,
    pub(crate) name: Arc<str>,
    pub(crate) align: u64,
    /// `None`: an `extern` array without a size (dynamic shared memory).
    pub(crate) bytes: Option<u64>,
    pub(crate) init: Vec<u8>,
}

/// A function or entry.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) entry: bool,
    pub(crate) returns: Vec<Variable>,
    pub(crate) params: Vec<Variable>,
    pub(crate) body: Vec<Statement>,
}

/// One statement of a body, with nested scopes kept as brackets.
#[derive(Debug)]
pub(crate) enum Statement {
    Open,
    Close,
    Register(RegisterDeclaration),
    Variable(Variable),
    Label(Arc<str>),
    Loc {
        file: u32,
        line: u32,
    },
    /// `name: .branchtargets a, b, c;`
    Targets {
        name: Arc<str>,
        labels: Vec<Arc<str>>,
    },
    Instruction(Instruction),
}

/// `.reg .b32 %r<7>;` or `.reg .b32 name;`
#[derive(Debug)]
pub(crate) struct RegisterDeclaration {
    pub(crate) line: u32,
    pub(crate) ty: Ty,
    pub(crate) name: Arc<str>,
    /// `Some(n)`: declares `name0 .. name(n-1)`.
    pub(crate) count: Option<u32>,
}

/// Scalar types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
}

impl Ty {
    /// The type of this name, without its dot.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::BF16,
            "bf16x2" => Self::BF16x2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of a value in memory; 1 for predicates, which have none.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::BF16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F16x2 | Self::BF16x2 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    pub(crate) const fn signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Neither floating point nor a predicate.
    pub(crate) const fn integer(self) -> bool {
        !matches!(
            self,
            Self::Pred
                | Self::F16
                | Self::F16x2
                | Self::BF16
                | Self::BF16x2
                | Self::F32
                | Self::F64
        )
    }
}

/// An instruction.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    pub(crate) guard: Option<Guard>,
    /// Opcode and modifiers, split at the dots: `["add", "ftz", "f32"]`; `L1::no_allocate` stays one.
    pub(crate) opcode: Vec<Arc<str>>,
    pub(crate) operands: Vec<Operand>,
}

impl Instruction {
    /// The opcode as written.
    pub(crate) fn spelled(&self) -> String {
        self.opcode.join(".")
    }

    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.opcode.iter().skip(1).any(|part| &**part == modifier)
    }
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) register: Arc<str>,
    pub(crate) negated: bool,
}

/// An operand.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A register, variable, label, function or special register (`%tid.x` keeps its dot).
    Name(Arc<str>),
    /// `!%p`.
    NotName(Arc<str>),
    /// `name+8` outside brackets.
    NameOffset(Arc<str>, i64),
    /// An integer; a negative one is its two's complement.
    Int(u64),
    /// The bits of a `0f` literal.
    F32(u32),
    /// The bits of a `0d` literal, or of a decimal one.
    F64(u64),
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// `a|b`.
    Pair(Box<Operand>, Box<Operand>),
    /// `[base+offset]`.
    Memory { base: Option<Arc<str>>, offset: i64 },
    /// `(a, b)` of a call.
    List(Vec<Operand>),
    /// `_`.
    Sink,
}
