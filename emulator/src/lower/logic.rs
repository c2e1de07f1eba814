//! Moves, bitwise logic, shifts and bit fields.

use super::function::{Lowerer, Result};
use super::op::{Binary32, Binary64, Flags, Join, NONE, Op, Shift64, Ternary32, Unary32, Unary64};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Operand, Ty};

impl Lowerer<'_> {
    pub(super) fn mov(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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

    pub(super) fn logic(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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

    pub(super) fn shift(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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

    pub(super) fn fields(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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
}
