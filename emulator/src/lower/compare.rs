//! Comparisons and selections.

use super::arith::types;
use super::function::{Lowerer, Result};
use super::op::{Cmp, CmpTy, File, Join, NONE, Op};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Operand, Ty};

impl Lowerer<'_> {
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

    pub(super) fn set(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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

    pub(super) fn select(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
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
