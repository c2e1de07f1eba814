//! Arithmetic, logic, comparisons and moves.

use super::function::{Lowerer, Result};
use super::op::{
    Binary32, Binary64, Flags, Half, HalfFormat, NONE, Op, Ternary32, Ternary64, Unary32,
};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Ty};

/// The type modifiers of an opcode, in order.
pub(super) fn types(instruction: &Instruction) -> impl DoubleEndedIterator<Item = Ty> {
    instruction
        .opcode
        .iter()
        .skip(1)
        .filter_map(|part| Ty::parse(part))
}

pub(super) const fn half_format(ty: Ty) -> Option<HalfFormat> {
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
    pub(super) fn flags(&self, i: &Instruction) -> Result<Flags> {
        if i.has("rz") || i.has("rm") || i.has("rp") || i.has("cc") || i.has("xorsign") {
            return self.unsupported(i);
        }
        Ok(Flags {
            ftz: i.has("ftz"),
            sat: i.has("sat"),
        })
    }

    pub(super) fn unary32(
        &mut self,
        op: Unary32,
        flags: Flags,
        ty: Ty,
        i: &Instruction,
    ) -> Result<Op> {
        let [d, a] = self.operands(i)?;
        Ok(Op::Unary32 {
            op,
            flags,
            d: self.destination(d, ty, i)?,
            a: self.word(a, ty, i)?,
        })
    }

    pub(super) fn binary32(
        &mut self,
        op: Binary32,
        flags: Flags,
        ty: Ty,
        i: &Instruction,
    ) -> Result<Op> {
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

    pub(super) fn binary64(&mut self, op: Binary64, i: &Instruction) -> Result<Op> {
        let [d, a, b] = self.operands(i)?;
        let (a, b) = (self.double(a, i)?, self.double(b, i)?);
        Ok(Op::Binary64 {
            op,
            d: self.destination(d, Ty::B64, i)?,
            a,
            b,
        })
    }

    pub(super) fn ternary32(
        &mut self,
        op: Ternary32,
        flags: Flags,
        ty: Ty,
        i: &Instruction,
    ) -> Result<Op> {
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

    pub(super) fn half(
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
}
