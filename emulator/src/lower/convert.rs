//! `cvt`: common conversions get an operation of their own, the rest goes through the general one.

use super::arith::types;
use super::function::{Lowerer, Result};
use super::op::{Binary32, Conversion, Flags, Narrow, Op, Round, Unary32, Unary64, Widen};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Ty};

const fn float(ty: Ty) -> bool {
    matches!(ty, Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64)
}

impl Lowerer<'_> {
    pub(super) fn convert(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let mut all = types(i);
        let (Some(to), Some(from), None) = (all.next(), all.next(), all.next()) else {
            return self.unsupported(i);
        };
        let (ftz, sat, relu) = (i.has("ftz"), i.has("sat"), i.has("relu"));
        let flags = Flags { ftz, sat };
        if let Ty::F16x2 | Ty::BF16x2 = to {
            if from != Ty::F32 || relu || sat || !i.has("rn") {
                return self.unsupported(i);
            }
            let [d, a, b] = self.operands(i)?;
            let (a, b) = (self.word(a, from, i)?, self.word(b, from, i)?);
            let op = if to == Ty::F16x2 {
                Binary32::PackF16
            } else {
                Binary32::PackBF16
            };
            return Ok((
                Op::Binary32 {
                    op,
                    flags: Flags::default(),
                    d: self.destination(d, to, i)?,
                    a,
                    b,
                },
                Kind::Convert,
            ));
        }
        let (round, integral) = self.rounding(i)?;
        let [d, a] = self.operands(i)?;
        // A register may be wider than the type it is used as; the plane is chosen by its declaration.
        let wide_source = self
            .declared(a)?
            .map_or(from.bytes() == 8, |ty| ty.bytes() == 8);
        let wide_result = self
            .declared(d)?
            .map_or(to.bytes() == 8, |ty| ty.bytes() == 8);
        if wide_source != (from.bytes() == 8) {
            return self.bad_operand(i, "the source register is wider than its type");
        }
        if !(to.integer() || float(to))
            || !(from.integer() || float(from))
            || to == Ty::B128
            || from == Ty::B128
        {
            return self.unsupported(i);
        }
        let int_to_int = to.integer() && from.integer();
        if wide_result != (to.bytes() == 8) {
            return self.bad_operand(i, "the destination register is wider than its type");
        }
        let source = self.typed(a, from, i)?;
        let d_ty = if wide_result { Ty::B64 } else { to };
        let result = self.destination(d, d_ty, i)?;
        let (d, a) = (result, source);
        let plain = Flags::default();
        let unary = |op, flags| Op::Unary32 { op, flags, d, a };
        let simple = !relu && round == Round::Even;
        let op = match (to, from) {
            _ if int_to_int && !sat => match (wide_result, wide_source) {
                (true, true) => Op::Unary64 {
                    op: Unary64::Mov,
                    d,
                    a,
                },
                (true, false) if from.bytes() == 4 && to.bytes() == 8 => {
                    let op = if from.signed() {
                        Widen::Sext
                    } else {
                        Widen::Zext
                    };
                    Op::Widen { op, d, a }
                }
                (false, true) if to.bytes() == 4 => Op::Narrow {
                    op: Narrow::Trunc,
                    d,
                    a,
                },
                (false, false) if from.bytes() >= to.bytes() && to.bytes() == 4 => {
                    unary(Unary32::Mov, plain)
                }
                // Into 16 bits, or a narrow value into more: the smaller of both types decides what is kept.
                (false, false) => {
                    let kept = from.bytes().min(to.bytes());
                    let signed = if from.bytes() <= to.bytes() {
                        from.signed()
                    } else {
                        to.signed()
                    };
                    match (kept, signed, to.bytes()) {
                        (1, false, _) => unary(Unary32::Zext8, plain),
                        (2, false, _) => unary(Unary32::Zext16, plain),
                        (1, true, 4) => unary(Unary32::Sext8, plain),
                        (2, true, 4) => unary(Unary32::Sext16, plain),
                        // Signed into 16 bits: the plane holds 16 bits zero-extended.
                        (2, true, _) => unary(Unary32::Zext16, plain),
                        _ => self.general(
                            Conversion {
                                from,
                                to,
                                round,
                                integral,
                                ftz,
                                saturate: sat,
                                relu,
                            },
                            d,
                            a,
                        ),
                    }
                }
                _ => self.general(
                    Conversion {
                        from,
                        to,
                        round,
                        integral,
                        ftz,
                        saturate: sat,
                        relu,
                    },
                    d,
                    a,
                ),
            },
            (Ty::F32, Ty::S32) if simple && !sat => unary(Unary32::S32ToF32, plain),
            (Ty::F32, Ty::U32 | Ty::U16 | Ty::U8) if simple && !sat && from != Ty::U8 => {
                unary(Unary32::U32ToF32, plain)
            }
            (Ty::S32, Ty::F32) if round == Round::Zero && !sat => {
                unary(Unary32::F32ToS32Trunc, plain)
            }
            (Ty::F32, Ty::F16) if !relu && !sat => unary(Unary32::F16ToF32, plain),
            (Ty::F32, Ty::BF16) if !relu && !sat => unary(Unary32::BF16ToF32, plain),
            (Ty::F16, Ty::F32) if simple && !sat && !ftz => unary(Unary32::F32ToF16, plain),
            (Ty::BF16, Ty::F32) if simple && !sat && !ftz => unary(Unary32::F32ToBF16, plain),
            (Ty::F32, Ty::F32) if !integral => unary(Unary32::FMov, flags),
            _ => self.general(
                Conversion {
                    from,
                    to,
                    round,
                    integral,
                    ftz,
                    saturate: sat,
                    relu,
                },
                d,
                a,
            ),
        };
        Ok((op, Kind::Convert))
    }

    const fn general(&self, how: Conversion, d: u16, a: u16) -> Op {
        Op::Convert { how, d, a }
    }

    /// The rounding, and whether it is to an integral value.
    fn rounding(&self, i: &Instruction) -> Result<(Round, bool)> {
        let mut found = (Round::Even, false);
        for part in i.opcode.iter().skip(1) {
            found = match &**part {
                "rn" => (Round::Even, false),
                "rz" => (Round::Zero, false),
                "rm" => (Round::Down, false),
                "rp" => (Round::Up, false),
                "rni" => (Round::Even, true),
                "rzi" => (Round::Zero, true),
                "rmi" => (Round::Down, true),
                "rpi" => (Round::Up, true),
                "rna" | "rs" | "satfinite" => return self.unsupported(i),
                _ => found,
            };
        }
        Ok(found)
    }
}
