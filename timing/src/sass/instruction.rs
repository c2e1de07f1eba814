//! One 128-bit instruction: operation, guard, control word, branch.

use super::{Class, opcode};

/// A SASS instruction of sm_70 and later: 128 bits, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bits 0..64: opcode, guard, first operands.
    pub low: u64,
    /// Bits 64..128: further operands and, from bit 105, the control word.
    pub high: u64,
}

/// The predicate that guards an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// PT: always issued and executed.
    Always,
    /// `@!PT`: issued and never executed.
    Never,
    /// `@P0` to `@!P6`: the number, and whether it is negated.
    Predicate {
        /// Of P0 to P6.
        register: u8,
        /// `@!P`.
        negated: bool,
    },
}

/// What the compiler tells the scheduler with each instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Cycles before the warp's next instruction may issue.
    pub stall: u8,
    /// The scheduler may switch warps here.
    pub yields: bool,
    /// Scoreboard released when the result is written.
    pub write_barrier: Option<u8>,
    /// Scoreboard released when the operands are read.
    pub read_barrier: Option<u8>,
    /// Scoreboards to wait for, a bit each.
    pub wait_mask: u8,
    /// Operand slots kept in the reuse cache, a bit each.
    pub reuse: u8,
}

/// Where control goes after an instruction, counted in instructions of the same kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next instruction.
    Next,
    /// To the target, and to the next one when conditional.
    Branch { target: i64, conditional: bool },
    /// `BRA.DIV`: to the target only when lanes of the warp are missing.
    IfDiverged { target: i64 },
    /// `BRA.CONV`: to the target unless lanes of the warp are missing.
    IfConverged { target: i64 },
    /// To a function and back to the next instruction.
    Call { target: Option<i64> },
    /// Nowhere (EXIT, RET); to the next one when conditional.
    Leave { conditional: bool },
    /// To a place that is known only at run time.
    Unknown,
}

const EXIT: u16 = 0x14d;
const KILL: u16 = 0x15b;
const RET: u16 = 0x150;
const BRA: u16 = 0x147;
const CALL_ABSOLUTE: u16 = 0x143;
const CALL_RELATIVE: u16 = 0x144;
const INDIRECT: [u16; 5] = [0x149, 0x14a, 0x14c, 0x158, 0x159];

impl Instruction {
    /// From the 16 bytes in memory.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let word = u128::from_le_bytes(bytes);
        Self {
            low: word as u64,
            high: (word >> 64) as u64,
        }
    }

    /// The low nine bits: which operation.
    pub fn operation(&self) -> u16 {
        (self.low & 0x1ff) as u16
    }

    /// The operation's name as `nvdisasm` prints it, without modifiers; none when it is not known.
    pub fn name(&self) -> Option<&'static str> {
        opcode::lookup(self.operation()).map(|(name, _)| name)
    }

    /// What it occupies; [`Class::Other`] when it is not known.
    ///
    /// Guarded by `@!PT` it occupies nothing but its issue slot: ptxas pads sm_80 code with such
    /// loads after waits for asynchronous copies.
    pub fn class(&self) -> Class {
        if self.guard() == Guard::Never {
            return Class::Nop;
        }
        opcode::lookup(self.operation()).map_or(Class::Other, |(_, class)| class)
    }

    /// Its guard (bits 12..16).
    pub fn guard(&self) -> Guard {
        let register = (self.low >> 12 & 7) as u8;
        let negated = self.low >> 15 & 1 == 1;
        match (register, negated) {
            (7, false) => Guard::Always,
            (7, true) => Guard::Never,
            _ => Guard::Predicate { register, negated },
        }
    }

    /// Its control word (bits 105..126).
    pub fn control(&self) -> Control {
        let field = |shift: u32, bits: u32| (self.high >> shift & ((1 << bits) - 1)) as u8;
        // Seven stands for no scoreboard.
        let barrier = |value: u8| (value != 7).then_some(value);
        Control {
            stall: field(41, 4),
            // The bit is set to keep the warp, so it reads inverted.
            yields: field(45, 1) == 0,
            write_barrier: barrier(field(46, 3)),
            read_barrier: barrier(field(49, 3)),
            wait_mask: field(52, 6),
            reuse: field(58, 4),
        }
    }

    /// Where control goes from the instruction at `index`.
    pub(crate) fn flow(&self, index: usize) -> Flow {
        let operation = self.operation();
        let guard = self.guard();
        // A second predicate of branches, bits 87..91, and PT in the plain case.
        let second = self.high >> 23 & 0xf;
        let conditional = guard != Guard::Always || second != 7;
        match operation {
            _ if guard == Guard::Never => Flow::Next,
            BRA if self.is_uniform_register_form() => Flow::Unknown,
            BRA => {
                let target = self.relative_target(index);
                match self.low >> 32 & 3 {
                    2 => Flow::IfDiverged { target },
                    3 => Flow::IfConverged { target },
                    _ => Flow::Branch {
                        target,
                        conditional,
                    },
                }
            }
            CALL_RELATIVE if !self.is_register_form() => Flow::Call {
                target: Some(self.relative_target(index)),
            },
            CALL_RELATIVE | CALL_ABSOLUTE => Flow::Call { target: None },
            EXIT | KILL | RET => Flow::Leave { conditional },
            _ if INDIRECT.contains(&operation) => Flow::Unknown,
            _ => Flow::Next,
        }
    }

    /// Bits 9..12: the form of the operands.
    fn form(&self) -> u64 {
        self.low >> 9 & 7
    }

    fn is_register_form(&self) -> bool {
        self.form() == 1
    }

    fn is_uniform_register_form(&self) -> bool {
        self.form() == 2
    }

    /// A signed 48-bit count of four-byte units from the end of the instruction, in bits 34..82.
    fn relative_target(&self, index: usize) -> i64 {
        let word = (u128::from(self.high) << 64) | u128::from(self.low);
        let units = (((word >> 34) as u64) << 16) as i64 >> 16;
        // An instruction is four units; code is at most a few megabytes, so nothing overflows.
        (index as i64 + 1).saturating_add(units.div_euclid(4))
    }
}
