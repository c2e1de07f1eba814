//! Arithmetic of one operand.

use super::arith::half_format;
use super::function::{Lowerer, Result};
use super::op::{Flags, Half, Narrow, Op, Unary32, Unary64};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Ty};

impl Lowerer<'_> {
    pub(super) fn unary(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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
}
