//! Instructions that a warp executes together.

use super::arith::types;
use super::function::{Lowerer, Result};
use super::op::{NONE, Op, Reduce, Reg, Shuffle, Vote};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Operand, Ty};

impl Lowerer<'_> {
    pub(super) fn warp(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        match &*i.opcode[0] {
            "mma" => self.mma(i),
            "movmatrix" => {
                if !(i.has("m8n8") && i.has("trans") && i.has("b16")) {
                    return self.unsupported(i);
                }
                let [d, a] = self.operands(i)?;
                let a = self.word(a, Ty::B32, i)?;
                Ok((
                    Op::MoveMatrix {
                        d: self.destination(d, Ty::B32, i)?,
                        a,
                    },
                    Kind::MoveMatrix,
                ))
            }
            "shfl" => self.shuffle(i),
            "vote" => self.vote(i),
            "activemask" => {
                let [d] = self.operands(i)?;
                Ok((
                    Op::ActiveMask {
                        d: self.destination(d, Ty::B32, i)?,
                    },
                    Kind::Vote,
                ))
            }
            "match" => {
                if !(i.has("any") && i.has("sync") && i.has("b32")) {
                    return self.unsupported(i);
                }
                let [d, a, members] = self.operands(i)?;
                let (a, members) = (self.word(a, Ty::B32, i)?, self.word(members, Ty::B32, i)?);
                Ok((
                    Op::MatchAny {
                        d: self.destination(d, Ty::B32, i)?,
                        a,
                        members,
                    },
                    Kind::Vote,
                ))
            }
            _ => self.reduce(i),
        }
    }

    fn fragment<const N: usize>(
        &mut self,
        operand: &Operand,
        write: bool,
        i: &Instruction,
    ) -> Result<[Reg; N]> {
        let elements = Self::elements(operand);
        if elements.len() != N {
            return self.bad_operand(i, "a fragment has the wrong number of registers");
        }
        let mut regs = [NONE; N];
        for (reg, element) in regs.iter_mut().zip(elements) {
            *reg = if write {
                self.destination(element, Ty::B32, i)?
            } else {
                self.word(element, Ty::B32, i)?
            };
            if *reg == NONE {
                return self.bad_operand(i, "`_` is not possible here");
            }
        }
        Ok(regs)
    }

    fn mma(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let k16 = i.has("m16n8k16");
        let shape = types(i).collect::<Vec<_>>();
        let bf16 = match shape[..] {
            [Ty::F32, Ty::F16, Ty::F16, Ty::F32] => false,
            [Ty::F32, Ty::BF16, Ty::BF16, Ty::F32] => true,
            _ => return self.unsupported(i),
        };
        if !(k16 || i.has("m16n8k8")) || !i.has("row") || !i.has("col") {
            return self.unsupported(i);
        }
        let [d, a, b, c] = self.operands(i)?;
        let (a, b) = if k16 {
            (self.fragment(a, false, i)?, self.fragment(b, false, i)?)
        } else {
            let [a0, a1] = self.fragment(a, false, i)?;
            let [b0] = self.fragment(b, false, i)?;
            ([a0, a1, NONE, NONE], [b0, NONE])
        };
        let c = self.fragment(c, false, i)?;
        Ok((
            Op::Mma {
                bf16,
                k16,
                d: self.fragment(d, true, i)?,
                a,
                b,
                c,
            },
            Kind::Mma,
        ))
    }

    fn shuffle(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let how = match (i.has("up"), i.has("down"), i.has("bfly"), i.has("idx")) {
            (true, ..) => Shuffle::Up,
            (_, true, ..) => Shuffle::Down,
            (_, _, true, _) => Shuffle::Butterfly,
            (.., true) => Shuffle::Index,
            _ => return self.unsupported(i),
        };
        if !i.has("sync") {
            return self.unsupported(i);
        }
        let [d, a, b, c, members] = self.operands(i)?;
        let (a, b) = (self.word(a, Ty::B32, i)?, self.word(b, Ty::U32, i)?);
        let (c, members) = (self.word(c, Ty::U32, i)?, self.word(members, Ty::U32, i)?);
        let (d, p) = match d {
            Operand::Pair(d, p) => (
                self.destination(d, Ty::B32, i)?,
                self.destination(p, Ty::Pred, i)?,
            ),
            d => (self.destination(d, Ty::B32, i)?, NONE),
        };
        Ok((
            Op::Shuffle {
                how,
                d,
                p,
                a,
                b,
                c,
                members,
            },
            Kind::Shuffle,
        ))
    }

    fn vote(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let (how, ty) = match (i.has("all"), i.has("any"), i.has("uni"), i.has("ballot")) {
            (true, ..) => (Vote::All, Ty::Pred),
            (_, true, ..) => (Vote::Any, Ty::Pred),
            (_, _, true, _) => (Vote::Uniform, Ty::Pred),
            (.., true) => (Vote::Ballot, Ty::B32),
            _ => return self.unsupported(i),
        };
        if !i.has("sync") {
            return self.unsupported(i);
        }
        let [d, a, members] = self.operands(i)?;
        let (a, a_not) = self.predicate(a, i)?;
        let members = self.word(members, Ty::U32, i)?;
        Ok((
            Op::Vote {
                how,
                d: self.destination(d, ty, i)?,
                a,
                a_not,
                members,
            },
            Kind::Vote,
        ))
    }

    fn reduce(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let signed = match self.last_type(i)? {
            Ty::S32 => true,
            Ty::U32 | Ty::B32 => false,
            _ => return self.unsupported(i),
        };
        let found = i.opcode.iter().skip(1).find_map(|part| {
            Some(match (&**part, signed) {
                ("add", _) => Reduce::Add,
                ("min", true) => Reduce::MinS,
                ("min", false) => Reduce::MinU,
                ("max", true) => Reduce::MaxS,
                ("max", false) => Reduce::MaxU,
                ("and", _) => Reduce::And,
                ("or", _) => Reduce::Or,
                ("xor", _) => Reduce::Xor,
                _ => return None,
            })
        });
        let Some(how) = found else {
            return self.unsupported(i);
        };
        let [d, a, members] = self.operands(i)?;
        let (a, members) = (self.word(a, Ty::B32, i)?, self.word(members, Ty::U32, i)?);
        Ok((
            Op::Reduce {
                how,
                d: self.destination(d, Ty::B32, i)?,
                a,
                members,
            },
            Kind::Vote,
        ))
    }
}
