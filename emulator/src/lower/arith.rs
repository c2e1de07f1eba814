//! Arithmetic, logic, comparisons and moves.

use super::function::{Lowerer, Result};
use super::op::{
    Binary32, Binary64, Cmp, CmpTy, File, Flags, Half, HalfFormat, Join, NONE, Narrow, Op, Shift64,
    Ternary32, Ternary64, Unary32, Unary64,
};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Operand, Ty};

/// The type modifiers of an opcode, in order.
pub(super) fn types(instruction: &Instruction) -> impl DoubleEndedIterator<Item = Ty> {
    instruction
        .opcode
        .iter()
        .skip(1)
        .filter_map(|part| Ty::parse(part))
}

const fn half_format(ty: Ty) -> Option<HalfFormat> {
    Some(match ty {
        Ty::F16 => HalfFormat {
            bf16: false,
            packed: false,
        },
        Ty::F16x2 => HalfFormat {
            bf16: false,
            packed: true,
        },
        Ty::BF16 => HalfFormat {
            bf16: true,
            packed: false,
        },
        Ty::BF16x2 => HalfFormat {
            bf16: true,
            packed: true,
        },
        _ => return None,
    })
}

impl Lowerer<'_> {
    /// Lowers everything but control flow, which [`super::function`] does.
    pub(super) fn operation(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        match &*i.opcode[0] {
            "mov" => self.mov(i),
            "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "mul24" | "copysign" => {
                self.binary(i)
            }
            "and" | "or" | "xor" => self.logic(i),
            "shl" | "shr" => self.shift(i),
            "mad" | "fma" | "prmt" | "shf" | "sad" | "slct" | "dp4a" => self.ternary(i),
            "not" | "neg" | "abs" | "popc" | "clz" | "brev" | "bfind" | "ex2" | "lg2" | "rcp"
            | "rsqrt" | "sqrt" | "sin" | "cos" | "tanh" | "cnot" => self.unary(i),
            "bfe" | "bfi" | "lop3" => self.fields(i),
            "setp" | "set" => self.set(i),
            "selp" => self.select(i),
            "cvt" => self.convert(i),
            "cvta" | "isspacep" | "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "ldmatrix"
            | "prefetch" | "prefetchu" | "applypriority" | "discard" => self.memory(i),
            "mma" | "movmatrix" | "shfl" | "vote" | "activemask" | "match" | "redux" => {
                self.warp(i)
            }
            "bar" | "barrier" | "membar" | "fence" | "ret" | "exit" | "trap" | "brkpt"
            | "nanosleep" | "pmevent" | "griddepcontrol" | "setmaxnreg" => self.control(i),
            _ => self.unsupported(i),
        }
    }

    pub(super) fn last_type(&self, i: &Instruction) -> Result<Ty> {
        match types(i).next_back() {
            Some(ty) => Ok(ty),
            None => self.unsupported(i),
        }
    }

    /// `.ftz`, `.sat` and the rounding: only to nearest even is run.
    fn flags(&self, i: &Instruction) -> Result<Flags> {
        if i.has("rz") || i.has("rm") || i.has("rp") || i.has("cc") || i.has("xorsign") {
            return self.unsupported(i);
        }
        Ok(Flags {
            ftz: i.has("ftz"),
            sat: i.has("sat"),
        })
    }

    fn unary32(&mut self, op: Unary32, flags: Flags, ty: Ty, i: &Instruction) -> Result<Op> {
        let [d, a] = self.operands(i)?;
        Ok(Op::Unary32 {
            op,
            flags,
            d: self.destination(d, ty, i)?,
            a: self.word(a, ty, i)?,
        })
    }

    fn binary32(&mut self, op: Binary32, flags: Flags, ty: Ty, i: &Instruction) -> Result<Op> {
        let [d, a, b] = self.operands(i)?;
        let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
        Ok(Op::Binary32 {
            op,
            flags,
            d: self.destination(d, ty, i)?,
            a,
            b,
        })
    }

    fn binary64(&mut self, op: Binary64, i: &Instruction) -> Result<Op> {
        let [d, a, b] = self.operands(i)?;
        let (a, b) = (self.double(a, i)?, self.double(b, i)?);
        Ok(Op::Binary64 {
            op,
            d: self.destination(d, Ty::B64, i)?,
            a,
            b,
        })
    }

    fn ternary32(&mut self, op: Ternary32, flags: Flags, ty: Ty, i: &Instruction) -> Result<Op> {
        let [d, a, b, c] = self.operands(i)?;
        let (a, b, c) = (
            self.word(a, ty, i)?,
            self.word(b, ty, i)?,
            self.word(c, ty, i)?,
        );
        Ok(Op::Ternary32 {
            op,
            flags,
            d: self.destination(d, ty, i)?,
            a,
            b,
            c,
        })
    }

    fn half(
        &mut self,
        op: Half,
        format: HalfFormat,
        arity: usize,
        i: &Instruction,
    ) -> Result<(Op, Kind)> {
        let flags = self.flags(i)?;
        if i.operands.len() != arity + 1 {
            return self.bad_operand(i, "wrong number of operands");
        }
        let ty = if format.packed { Ty::B32 } else { Ty::B16 };
        let mut sources = [NONE; 3];
        for (slot, operand) in sources.iter_mut().zip(&i.operands[1..]) {
            *slot = self.word(operand, ty, i)?;
        }
        let d = self.destination(&i.operands[0], ty, i)?;
        let [a, b, c] = sources;
        let kind = if arity == 1 && op != Half::Neg && op != Half::Abs {
            Kind::Special
        } else {
            Kind::Half
        };
        Ok((
            Op::Half {
                op,
                format,
                flags,
                relu: i.has("relu"),
                d,
                a,
                b,
                c,
            },
            kind,
        ))
    }

    fn mov(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let [d, a] = self.operands(i)?;
        let op = match (d, a) {
            (Operand::Vector(parts), _) => match (&parts[..], ty.bytes()) {
                ([lo, hi], 4) => {
                    let a = self.word(a, ty, i)?;
                    Op::Unpack16 {
                        lo: self.destination(lo, Ty::B16, i)?,
                        hi: self.destination(hi, Ty::B16, i)?,
                        a,
                    }
                }
                ([lo, hi], 8) => {
                    let a = self.double(a, i)?;
                    Op::Unpack32 {
                        lo: self.destination(lo, Ty::B32, i)?,
                        hi: self.destination(hi, Ty::B32, i)?,
                        a,
                    }
                }
                ([_, _, _, _], 8) => {
                    let mut regs = [NONE; 4];
                    for (reg, part) in regs.iter_mut().zip(parts) {
                        *reg = self.destination(part, Ty::B16, i)?;
                    }
                    Op::Unpack16x4 {
                        parts: regs,
                        a: self.double(a, i)?,
                    }
                }
                _ => return self.unsupported(i),
            },
            (_, Operand::Vector(parts)) => match (&parts[..], ty.bytes()) {
                ([lo, hi], 4) => {
                    let (lo, hi) = (self.word(lo, Ty::B16, i)?, self.word(hi, Ty::B16, i)?);
                    Op::Pack16 {
                        d: self.destination(d, ty, i)?,
                        lo,
                        hi,
                    }
                }
                ([lo, hi], 8) => {
                    let (lo, hi) = (self.word(lo, Ty::B32, i)?, self.word(hi, Ty::B32, i)?);
                    Op::Pack32 {
                        d: self.destination(d, ty, i)?,
                        lo,
                        hi,
                    }
                }
                ([_, _, _, _], 8) => {
                    let mut regs = [NONE; 4];
                    for (reg, part) in regs.iter_mut().zip(parts) {
                        *reg = self.word(part, Ty::B16, i)?;
                    }
                    Op::Pack16x4 {
                        d: self.destination(d, ty, i)?,
                        parts: regs,
                    }
                }
                _ => return self.unsupported(i),
            },
            (_, Operand::Name(name))
                if matches!(
                    &**name,
                    "%clock" | "%clock_hi" | "%clock64" | "%globaltimer"
                ) =>
            {
                Op::Clock {
                    wide: ty.bytes() == 8,
                    d: self.destination(d, ty, i)?,
                }
            }
            _ if ty == Ty::Pred => match a {
                Operand::Int(value) => Op::PredConst {
                    d: self.destination(d, ty, i)?,
                    value: *value != 0,
                },
                _ => {
                    let (a, not) = self.predicate(a, i)?;
                    Op::PredMov {
                        d: self.destination(d, ty, i)?,
                        a,
                        not,
                    }
                }
            },
            _ if ty.bytes() == 8 => {
                let a = self.double(a, i)?;
                Op::Unary64 {
                    op: Unary64::Mov,
                    d: self.destination(d, ty, i)?,
                    a,
                }
            }
            _ if ty.bytes() == 16 => return self.unsupported(i),
            _ => self.unary32(Unary32::Mov, Flags::default(), ty, i)?,
        };
        Ok((op, Kind::Move))
    }

    fn logic(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let name = &*i.opcode[0];
        if ty == Ty::Pred {
            let [d, a, b] = self.operands(i)?;
            let ((a, a_not), (b, b_not)) = (self.predicate(a, i)?, self.predicate(b, i)?);
            if a_not || b_not {
                return self.bad_operand(i, "negated predicates are not supported here");
            }
            let join = match name {
                "and" => Join::And,
                "or" => Join::Or,
                _ => Join::Xor,
            };
            return Ok((
                Op::PredLogic {
                    join,
                    d: self.destination(d, ty, i)?,
                    a,
                    b,
                },
                Kind::Compare,
            ));
        }
        let op = if ty.bytes() == 8 {
            let op = match name {
                "and" => Binary64::And,
                "or" => Binary64::Or,
                _ => Binary64::Xor,
            };
            self.binary64(op, i)?
        } else {
            let op = match name {
                "and" => Binary32::And,
                "or" => Binary32::Or,
                _ => Binary32::Xor,
            };
            self.binary32(op, Flags::default(), ty, i)?
        };
        Ok((op, Kind::Integer))
    }

    fn shift(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let left = &*i.opcode[0] == "shl";
        let [d, a, b] = self.operands(i)?;
        if ty.bytes() == 8 {
            let op = match (left, ty.signed()) {
                (true, _) => Shift64::Shl,
                (false, false) => Shift64::ShrU,
                (false, true) => Shift64::ShrS,
            };
            let (a, b) = (self.double(a, i)?, self.word(b, Ty::U32, i)?);
            return Ok((
                Op::Shift64 {
                    op,
                    d: self.destination(d, ty, i)?,
                    a,
                    b,
                },
                Kind::Integer,
            ));
        }
        let op = match (left, ty.bytes(), ty.signed()) {
            (true, 2, _) => Binary32::Shl16,
            (true, _, _) => Binary32::Shl,
            (false, _, false) => Binary32::ShrU,
            (false, 2, true) => Binary32::ShrS16,
            (false, _, true) => Binary32::ShrS,
        };
        let (a, b) = (self.word(a, ty, i)?, self.word(b, Ty::U32, i)?);
        Ok((
            Op::Binary32 {
                op,
                flags: Flags::default(),
                d: self.destination(d, ty, i)?,
                a,
                b,
            },
            Kind::Integer,
        ))
    }

    fn binary(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        use Binary32 as B;
        let ty = self.last_type(i)?;
        let name = &*i.opcode[0];
        if let Some(format) = half_format(ty) {
            let op = match (name, i.has("NaN")) {
                ("add", _) => Half::Add,
                ("sub", _) => Half::Sub,
                ("mul", _) => Half::Mul,
                ("min", false) => Half::Min,
                ("min", true) => Half::MinNan,
                ("max", false) => Half::Max,
                ("max", true) => Half::MaxNan,
                _ => return self.unsupported(i),
            };
            return self.half(op, format, 2, i);
        }
        if ty == Ty::F32 {
            let op = match (name, i.has("NaN")) {
                ("add", _) => B::FAdd,
                ("sub", _) => B::FSub,
                ("mul", _) => B::FMul,
                ("div", _) => B::FDiv,
                ("min", false) => B::FMin,
                ("min", true) => B::FMinNan,
                ("max", false) => B::FMax,
                ("max", true) => B::FMaxNan,
                ("copysign", _) => B::FCopySign,
                _ => return self.unsupported(i),
            };
            let flags = self.flags(i)?;
            let kind = if op == B::FDiv {
                Kind::Special
            } else {
                Kind::Float
            };
            if op == B::FCopySign {
                // `copysign d, a, b` takes the sign of a.
                let [d, a, b] = self.operands(i)?;
                let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
                return Ok((
                    Op::Binary32 {
                        op,
                        flags,
                        d: self.destination(d, ty, i)?,
                        a: b,
                        b: a,
                    },
                    kind,
                ));
            }
            return Ok((self.binary32(op, flags, ty, i)?, kind));
        }
        if ty == Ty::F64 {
            self.flags(i)?;
            let op = match name {
                "add" => Binary64::DAdd,
                "sub" => Binary64::DSub,
                "mul" => Binary64::DMul,
                "div" => Binary64::DDiv,
                "min" => Binary64::DMin,
                "max" => Binary64::DMax,
                _ => return self.unsupported(i),
            };
            return Ok((self.binary64(op, i)?, Kind::Double));
        }
        if i.has("cc") || !ty.integer() {
            return self.unsupported(i);
        }
        let signed = ty.signed();
        if name == "mul" && i.has("wide") {
            let [d, a, b] = self.operands(i)?;
            let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
            let op = match (ty.bytes(), signed) {
                (4, _) => Op::MulWide {
                    signed,
                    d: self.destination(d, Ty::B64, i)?,
                    a,
                    b,
                },
                (_, signed) => {
                    let op = if signed { B::MulWideS16 } else { B::Mul };
                    Op::Binary32 {
                        op,
                        flags: Flags::default(),
                        d: self.destination(d, Ty::B32, i)?,
                        a,
                        b,
                    }
                }
            };
            return Ok((op, Kind::Integer));
        }
        let high = i.has("hi");
        let saturate = i.has("sat");
        let op = if ty.bytes() == 8 {
            let op = match (name, signed) {
                ("add", _) => Binary64::Add,
                ("sub", _) => Binary64::Sub,
                ("mul", true) if high => Binary64::MulHiS,
                ("mul", false) if high => Binary64::MulHiU,
                ("mul", _) => Binary64::Mul,
                ("div", true) => Binary64::DivS,
                ("div", false) => Binary64::DivU,
                ("rem", true) => Binary64::RemS,
                ("rem", false) => Binary64::RemU,
                ("min", true) => Binary64::MinS,
                ("min", false) => Binary64::MinU,
                ("max", true) => Binary64::MaxS,
                ("max", false) => Binary64::MaxU,
                _ => return self.unsupported(i),
            };
            self.binary64(op, i)?
        } else {
            let op = match (name, ty.bytes(), signed) {
                ("add", 4, true) if saturate => B::AddSatS,
                ("sub", 4, true) if saturate => B::SubSatS,
                ("add", 4, _) => B::Add,
                ("add", 2, _) => B::Add16,
                ("sub", 4, _) => B::Sub,
                ("sub", 2, _) => B::Sub16,
                ("mul", 4, true) if high => B::MulHiS,
                ("mul", 4, false) if high => B::MulHiU,
                ("mul", 2, true) if high => B::MulHiS16,
                ("mul", 2, false) if high => B::MulHiU16,
                ("mul", 4, _) => B::Mul,
                ("mul", 2, _) => B::Mul16,
                ("mul24", 4, true) if !high => B::Mul24S,
                ("mul24", 4, false) if !high => B::Mul24U,
                ("div", 4, true) => B::DivS,
                ("div", 2, true) => B::DivS16,
                ("div", _, false) => B::DivU,
                ("rem", 4, true) => B::RemS,
                ("rem", 2, true) => B::RemS16,
                ("rem", _, false) => B::RemU,
                ("min", 4, true) => B::MinS,
                ("min", 2, true) => B::MinS16,
                ("min", _, false) => B::MinU,
                ("max", 4, true) => B::MaxS,
                ("max", 2, true) => B::MaxS16,
                ("max", _, false) => B::MaxU,
                _ => return self.unsupported(i),
            };
            self.binary32(op, Flags::default(), ty, i)?
        };
        Ok((op, Kind::Integer))
    }

    fn ternary(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        use Ternary32 as T;
        let ty = self.last_type(i)?;
        let plain = Flags::default();
        let name = &*i.opcode[0];
        if let (Some(format), "fma") = (half_format(ty), name) {
            return self.half(Half::Fma, format, 3, i);
        }
        let (op, kind) = match (name, ty) {
            ("fma" | "mad", Ty::F32) => {
                let flags = self.flags(i)?;
                (self.ternary32(T::FFma, flags, ty, i)?, Kind::Float)
            }
            ("fma" | "mad", Ty::F64) => {
                self.flags(i)?;
                let [d, a, b, c] = self.operands(i)?;
                let (a, b, c) = (self.double(a, i)?, self.double(b, i)?, self.double(c, i)?);
                let d = self.destination(d, ty, i)?;
                (
                    Op::Ternary64 {
                        op: Ternary64::DFma,
                        d,
                        a,
                        b,
                        c,
                    },
                    Kind::Double,
                )
            }
            ("mad", _) if i.has("cc") || i.has("sat") || !ty.integer() => {
                return self.unsupported(i);
            }
            ("mad", _) if i.has("wide") => {
                let [d, a, b, c] = self.operands(i)?;
                let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
                let signed = ty.signed();
                let op = if ty.bytes() == 4 {
                    let c = self.double(c, i)?;
                    Op::MadWide {
                        signed,
                        d: self.destination(d, Ty::B64, i)?,
                        a,
                        b,
                        c,
                    }
                } else {
                    let c = self.word(c, Ty::B32, i)?;
                    let op = if signed { T::MadWideS16 } else { T::Mad };
                    Op::Ternary32 {
                        op,
                        flags: plain,
                        d: self.destination(d, Ty::B32, i)?,
                        a,
                        b,
                        c,
                    }
                };
                (op, Kind::Integer)
            }
            ("mad", _) if ty.bytes() == 8 => {
                if i.has("hi") {
                    return self.unsupported(i);
                }
                let [d, a, b, c] = self.operands(i)?;
                let (a, b, c) = (self.double(a, i)?, self.double(b, i)?, self.double(c, i)?);
                (
                    Op::Ternary64 {
                        op: Ternary64::Mad,
                        d: self.destination(d, ty, i)?,
                        a,
                        b,
                        c,
                    },
                    Kind::Integer,
                )
            }
            ("mad", _) => {
                let op = match (ty.bytes(), ty.signed(), i.has("hi")) {
                    (2, _, false) => T::Mad16,
                    (4, _, false) => T::Mad,
                    (4, true, true) => T::MadHiS,
                    (4, false, true) => T::MadHiU,
                    _ => return self.unsupported(i),
                };
                (self.ternary32(op, plain, ty, i)?, Kind::Integer)
            }
            ("prmt", Ty::B32) => {
                if i.opcode.len() != 2 {
                    return self.unsupported(i);
                }
                (self.ternary32(T::Prmt, plain, ty, i)?, Kind::Integer)
            }
            ("shf", Ty::B32) => {
                let op = match (i.has("l"), i.has("wrap")) {
                    (true, true) => T::ShfLWrap,
                    (true, false) => T::ShfLClamp,
                    (false, true) => T::ShfRWrap,
                    (false, false) => T::ShfRClamp,
                };
                (self.ternary32(op, plain, ty, i)?, Kind::Integer)
            }
            ("sad", Ty::S32) => (self.ternary32(T::SadS, plain, ty, i)?, Kind::Integer),
            ("sad", Ty::U32) => (self.ternary32(T::SadU, plain, ty, i)?, Kind::Integer),
            ("dp4a", Ty::S32) => (self.ternary32(T::Dp4aSS, plain, ty, i)?, Kind::Integer),
            ("dp4a", Ty::U32) if types(i).all(|ty| ty == Ty::U32) => {
                (self.ternary32(T::Dp4aUU, plain, ty, i)?, Kind::Integer)
            }
            ("slct", Ty::S32 | Ty::F32) => {
                if types(i).next().is_none_or(|ty| ty.bytes() != 4) {
                    return self.unsupported(i);
                }
                let op = if ty == Ty::S32 { T::SlctS } else { T::SlctF };
                let flags = self.flags(i)?;
                (self.ternary32(op, flags, ty, i)?, Kind::Compare)
            }
            _ => return self.unsupported(i),
        };
        if name == "dp4a" && types(i).any(|other| other.signed() != ty.signed()) {
            return self.unsupported(i);
        }
        Ok((op, kind))
    }

    fn unary(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        use Unary32 as U;
        let ty = self.last_type(i)?;
        let name = &*i.opcode[0];
        if let Some(format) = half_format(ty) {
            let op = match name {
                "neg" => Half::Neg,
                "abs" => Half::Abs,
                "ex2" => Half::Ex2,
                "tanh" => Half::Tanh,
                _ => return self.unsupported(i),
            };
            return self.half(op, format, 1, i);
        }
        if ty == Ty::Pred {
            if name != "not" {
                return self.unsupported(i);
            }
            let [d, a] = self.operands(i)?;
            let (a, not) = self.predicate(a, i)?;
            return Ok((
                Op::PredMov {
                    d: self.destination(d, ty, i)?,
                    a,
                    not: !not,
                },
                Kind::Compare,
            ));
        }
        if ty == Ty::F32 {
            let op = match name {
                "neg" => U::FNeg,
                "abs" => U::FAbs,
                "ex2" => U::Ex2,
                "lg2" => U::Lg2,
                "rcp" => U::Rcp,
                "rsqrt" => U::Rsqrt,
                "sqrt" => U::Sqrt,
                "sin" => U::Sin,
                "cos" => U::Cos,
                "tanh" => U::Tanh,
                _ => return self.unsupported(i),
            };
            let flags = self.flags(i)?;
            let kind = if matches!(op, U::FNeg | U::FAbs) {
                Kind::Float
            } else {
                Kind::Special
            };
            return Ok((self.unary32(op, flags, ty, i)?, kind));
        }
        let narrow = |lowerer: &mut Self, op| {
            let [d, a] = lowerer.operands(i)?;
            let a = lowerer.double(a, i)?;
            Ok((
                Op::Narrow {
                    op,
                    d: lowerer.destination(d, Ty::B32, i)?,
                    a,
                },
                Kind::Integer,
            ))
        };
        if ty.bytes() == 8 {
            let op = match (name, ty) {
                ("neg", Ty::F64) => Unary64::DNeg,
                ("abs", Ty::F64) => Unary64::DAbs,
                ("rcp", Ty::F64) => Unary64::DRcp,
                ("sqrt", Ty::F64) => Unary64::DSqrt,
                ("rsqrt", Ty::F64) => Unary64::DRsqrt,
                ("not", Ty::B64) => Unary64::Not,
                ("neg", Ty::S64) => Unary64::Neg,
                ("abs", Ty::S64) => Unary64::Abs,
                ("brev", _) => Unary64::Brev,
                ("popc", _) => return narrow(self, Narrow::Popc),
                ("clz", _) => return narrow(self, Narrow::Clz),
                ("bfind", _) => {
                    return narrow(
                        self,
                        match (ty.signed(), i.has("shiftamt")) {
                            (false, false) => Narrow::FindU,
                            (true, false) => Narrow::FindS,
                            (false, true) => Narrow::FindShiftU,
                            (true, true) => Narrow::FindShiftS,
                        },
                    );
                }
                _ => return self.unsupported(i),
            };
            let kind = if ty == Ty::F64 {
                Kind::Double
            } else {
                Kind::Integer
            };
            let [d, a] = self.operands(i)?;
            let a = self.double(a, i)?;
            return Ok((
                Op::Unary64 {
                    op,
                    d: self.destination(d, ty, i)?,
                    a,
                },
                kind,
            ));
        }
        let op = match (name, ty.bytes()) {
            ("not", 2) => U::Not16,
            ("not", 4) => U::Not,
            ("neg", 2) => U::Neg16,
            ("neg", 4) => U::Neg,
            ("abs", 2) => U::Abs16,
            ("abs", 4) => U::Abs,
            ("popc", 4) => U::Popc,
            ("clz", 4) => U::Clz,
            ("brev", 4) => U::Brev,
            ("bfind", 4) => match (ty.signed(), i.has("shiftamt")) {
                (false, false) => U::FindU,
                (true, false) => U::FindS,
                (false, true) => U::FindShiftU,
                (true, true) => U::FindShiftS,
            },
            _ => return self.unsupported(i),
        };
        Ok((self.unary32(op, Flags::default(), ty, i)?, Kind::Integer))
    }

    fn fields(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let wide = ty.bytes() == 8;
        let op = match &*i.opcode[0] {
            "lop3" => {
                let [d, a, b, c, Operand::Int(lut)] = self.operands(i)? else {
                    return self.bad_operand(i, "the table must be a constant");
                };
                let (a, b, c) = (
                    self.word(a, ty, i)?,
                    self.word(b, ty, i)?,
                    self.word(c, ty, i)?,
                );
                Op::Lop3 {
                    lut: *lut as u8,
                    d: self.destination(d, ty, i)?,
                    a,
                    b,
                    c,
                }
            }
            "bfe" if wide => {
                let [d, a, b, len] = self.operands(i)?;
                let (a, b, len) = (
                    self.double(a, i)?,
                    self.word(b, Ty::U32, i)?,
                    self.word(len, Ty::U32, i)?,
                );
                Op::Bfe64 {
                    signed: ty.signed(),
                    d: self.destination(d, ty, i)?,
                    a,
                    b,
                    len,
                }
            }
            "bfe" => {
                let op = if ty.signed() {
                    Ternary32::BfeS
                } else {
                    Ternary32::BfeU
                };
                self.ternary32(op, Flags::default(), ty, i)?
            }
            _ => {
                let [d, a, b, c, len] = self.operands(i)?;
                let (c, len) = (self.word(c, Ty::U32, i)?, self.word(len, Ty::U32, i)?);
                if wide {
                    let (a, b) = (self.double(a, i)?, self.double(b, i)?);
                    Op::Bfi64 {
                        d: self.destination(d, ty, i)?,
                        a,
                        b,
                        c,
                        len,
                    }
                } else {
                    let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
                    Op::Bfi32 {
                        d: self.destination(d, ty, i)?,
                        a,
                        b,
                        c,
                        len,
                    }
                }
            }
        };
        Ok((op, Kind::Integer))
    }

    fn comparison(&self, i: &Instruction) -> Result<(Cmp, CmpTy)> {
        let source = match &*i.opcode[0] {
            "set" => types(i).nth(1),
            _ => types(i).next_back(),
        };
        let Some(source) = source else {
            return self.unsupported(i);
        };
        let ty = match source {
            Ty::U16 | Ty::B16 | Ty::U32 | Ty::B32 => CmpTy::U32,
            Ty::S16 => CmpTy::S16,
            Ty::S32 => CmpTy::S32,
            Ty::U64 | Ty::B64 => CmpTy::U64,
            Ty::S64 => CmpTy::S64,
            Ty::F32 => CmpTy::F32,
            Ty::F64 => CmpTy::F64,
            Ty::F16 => CmpTy::F16,
            Ty::BF16 => CmpTy::BF16,
            _ => return self.unsupported(i),
        };
        let found = i.opcode.iter().skip(1).find_map(|part| {
            Some(match &**part {
                "eq" => Cmp::Eq,
                "ne" => Cmp::Ne,
                "lt" | "lo" => Cmp::Lt,
                "le" | "ls" => Cmp::Le,
                "gt" | "hi" => Cmp::Gt,
                "ge" | "hs" => Cmp::Ge,
                "equ" => Cmp::Equ,
                "neu" => Cmp::Neu,
                "ltu" => Cmp::Ltu,
                "leu" => Cmp::Leu,
                "gtu" => Cmp::Gtu,
                "geu" => Cmp::Geu,
                "num" => Cmp::Num,
                "nan" => Cmp::Nan,
                _ => return None,
            })
        });
        match found {
            Some(cmp) => Ok((cmp, ty)),
            None => self.unsupported(i),
        }
    }

    fn set(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let (cmp, ty) = self.comparison(i)?;
        let join = i.opcode.iter().skip(2).find_map(|part| match &**part {
            "and" => Some(Join::And),
            "or" => Some(Join::Or),
            "xor" => Some(Join::Xor),
            _ => None,
        });
        let source = types(i).next_back().unwrap_or(Ty::U32);
        let value = |lowerer: &mut Self, operand| lowerer.typed(operand, source, i);
        let ftz = i.has("ftz");
        if &*i.opcode[0] == "set" {
            let Some(to @ (Ty::U32 | Ty::S32 | Ty::F32)) = types(i).next() else {
                return self.unsupported(i);
            };
            if join.is_some() {
                return self.unsupported(i);
            }
            let [d, a, b] = self.operands(i)?;
            let (a, b) = (value(self, a)?, value(self, b)?);
            let d = self.destination(d, to, i)?;
            return Ok((
                Op::SetValue {
                    ty,
                    cmp,
                    ftz,
                    float: to == Ty::F32,
                    d,
                    a,
                    b,
                },
                Kind::Compare,
            ));
        }
        let (Some(d), Some(a), Some(b)) =
            (i.operands.first(), i.operands.get(1), i.operands.get(2))
        else {
            return self.bad_operand(i, "wrong number of operands");
        };
        let (c, c_not) = match (join, i.operands.get(3), i.operands.len()) {
            (None, None, 3) => (NONE, false),
            (Some(_), Some(c), 4) => self.predicate(c, i)?,
            _ => return self.bad_operand(i, "wrong number of operands"),
        };
        let (d, e) = match d {
            Operand::Pair(d, e) => (
                self.destination(d, Ty::Pred, i)?,
                self.destination(e, Ty::Pred, i)?,
            ),
            d => (self.destination(d, Ty::Pred, i)?, NONE),
        };
        let (a, b) = (value(self, a)?, value(self, b)?);
        Ok((
            Op::Set {
                ty,
                cmp,
                ftz,
                d,
                e,
                a,
                b,
                join: join.unwrap_or(Join::Set),
                c,
                c_not,
            },
            Kind::Compare,
        ))
    }

    fn select(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let [d, a, b, p] = self.operands(i)?;
        let (p, not) = self.predicate(p, i)?;
        let (a, b) = if not { (b, a) } else { (a, b) };
        let op = if super::scope::file_of(ty) == Some(File::W64) {
            let (a, b) = (self.double(a, i)?, self.double(b, i)?);
            Op::Select64 {
                d: self.destination(d, ty, i)?,
                a,
                b,
                p,
            }
        } else {
            let (a, b) = (self.word(a, ty, i)?, self.word(b, ty, i)?);
            Op::Select32 {
                d: self.destination(d, ty, i)?,
                a,
                b,
                p,
            }
        };
        Ok((op, Kind::Compare))
    }
}
