//! Every register operand of every operation, in one place: data flow and renaming build on it.

use super::op::{Access, Address, BarrierKind, CmpTy, File, NONE, Op, Reg, Vote};
use crate::parse::ast::Ty;

impl Op {
    /// Shows every register operand to `f`, reads before writes.
    pub(crate) fn visit(&mut self, f: &mut impl FnMut(File, &mut Reg, Access)) {
        use Access::{Read, Write};
        use File::{Pred, W32, W64};
        let mut f = |file: File, reg: &mut Reg, access: Access| {
            if *reg != NONE {
                f(file, reg, access);
            }
        };
        let address_file = |address: &Address| if address.wide { W64 } else { W32 };
        let data_file = |wide: bool| if wide { W64 } else { W32 };
        let ty_file = |ty: Ty| data_file(ty.bytes() == 8);
        match self {
            Self::Nop
            | Self::AsyncCommit
            | Self::AsyncWait { .. }
            | Self::Branch { .. }
            | Self::Exit
            | Self::Trap => {}
            Self::Unary32 { d, a, .. } | Self::MoveMatrix { d, a } => {
                f(W32, a, Read);
                f(W32, d, Write);
            }
            Self::Binary32 { d, a, b, .. } | Self::Pack16 { d, lo: a, hi: b } => {
                f(W32, a, Read);
                f(W32, b, Read);
                f(W32, d, Write);
            }
            Self::Ternary32 { d, a, b, c, .. }
            | Self::Lop3 { d, a, b, c, .. }
            | Self::Half { d, a, b, c, .. } => {
                for reg in [a, b, c] {
                    f(W32, reg, Read);
                }
                f(W32, d, Write);
            }
            Self::Bfi32 { d, a, b, c, len } => {
                for reg in [a, b, c, len] {
                    f(W32, reg, Read);
                }
                f(W32, d, Write);
            }
            Self::Unary64 { d, a, .. } => {
                f(W64, a, Read);
                f(W64, d, Write);
            }
            Self::Binary64 { d, a, b, .. } => {
                f(W64, a, Read);
                f(W64, b, Read);
                f(W64, d, Write);
            }
            Self::Ternary64 { d, a, b, c, .. } => {
                for reg in [a, b, c] {
                    f(W64, reg, Read);
                }
                f(W64, d, Write);
            }
            Self::Shift64 { d, a, b, .. } => {
                f(W64, a, Read);
                f(W32, b, Read);
                f(W64, d, Write);
            }
            Self::Bfe64 { d, a, b, len, .. } => {
                f(W64, a, Read);
                f(W32, b, Read);
                f(W32, len, Read);
                f(W64, d, Write);
            }
            Self::Bfi64 { d, a, b, c, len } => {
                f(W64, a, Read);
                f(W64, b, Read);
                f(W32, c, Read);
                f(W32, len, Read);
                f(W64, d, Write);
            }
            Self::Widen { d, a, .. } => {
                f(W32, a, Read);
                f(W64, d, Write);
            }
            Self::Narrow { d, a, .. } => {
                f(W64, a, Read);
                f(W32, d, Write);
            }
            Self::MulWide { d, a, b, .. } | Self::Pack32 { d, lo: a, hi: b } => {
                f(W32, a, Read);
                f(W32, b, Read);
                f(W64, d, Write);
            }
            Self::MadWide { d, a, b, c, .. } => {
                f(W32, a, Read);
                f(W32, b, Read);
                f(W64, c, Read);
                f(W64, d, Write);
            }
            Self::Convert { how, d, a } => {
                f(ty_file(how.from), a, Read);
                f(ty_file(how.to), d, Write);
            }
            Self::Set {
                ty, d, e, a, b, c, ..
            } => {
                let file = data_file(matches!(ty, CmpTy::U64 | CmpTy::S64 | CmpTy::F64));
                f(file, a, Read);
                f(file, b, Read);
                f(Pred, c, Read);
                f(Pred, d, Write);
                f(Pred, e, Write);
            }
            Self::SetValue { ty, d, a, b, .. } => {
                let file = data_file(matches!(ty, CmpTy::U64 | CmpTy::S64 | CmpTy::F64));
                f(file, a, Read);
                f(file, b, Read);
                f(W32, d, Write);
            }
            Self::Select32 { d, a, b, p } => {
                f(W32, a, Read);
                f(W32, b, Read);
                f(Pred, p, Read);
                f(W32, d, Write);
            }
            Self::Select64 { d, a, b, p } => {
                f(W64, a, Read);
                f(W64, b, Read);
                f(Pred, p, Read);
                f(W64, d, Write);
            }
            Self::PredMov { d, a, .. } => {
                f(Pred, a, Read);
                f(Pred, d, Write);
            }
            Self::PredConst { d, .. } => f(Pred, d, Write),
            Self::PredLogic { d, a, b, .. } => {
                f(Pred, a, Read);
                f(Pred, b, Read);
                f(Pred, d, Write);
            }
            Self::Unpack16 { lo, hi, a } => {
                f(W32, a, Read);
                f(W32, lo, Write);
                f(W32, hi, Write);
            }
            Self::Unpack32 { lo, hi, a } => {
                f(W64, a, Read);
                f(W32, lo, Write);
                f(W32, hi, Write);
            }
            Self::Pack16x4 { d, parts } => {
                for reg in parts {
                    f(W32, reg, Read);
                }
                f(W64, d, Write);
            }
            Self::Unpack16x4 { parts, a } => {
                f(W64, a, Read);
                for reg in parts {
                    f(W32, reg, Write);
                }
            }
            Self::Load {
                wide, d, address, ..
            } => {
                f(address_file(address), &mut address.base, Read);
                for reg in d {
                    f(data_file(*wide), reg, Write);
                }
            }
            Self::Store {
                wide, a, address, ..
            } => {
                f(address_file(address), &mut address.base, Read);
                for reg in a {
                    f(data_file(*wide), reg, Read);
                }
            }
            Self::Atomic {
                ty,
                d,
                address,
                b,
                c,
                ..
            } => {
                f(address_file(address), &mut address.base, Read);
                f(ty_file(*ty), b, Read);
                f(ty_file(*ty), c, Read);
                f(ty_file(*ty), d, Write);
            }
            Self::AsyncCopy { to, from, src, .. } => {
                f(address_file(to), &mut to.base, Read);
                f(address_file(from), &mut from.base, Read);
                f(W32, src, Read);
            }
            Self::LoadMatrix { d, address, .. } => {
                f(address_file(address), &mut address.base, Read);
                for reg in d {
                    f(W32, reg, Write);
                }
            }
            Self::Mma { d, a, b, c, .. } => {
                for reg in a.iter_mut().chain(b).chain(c) {
                    f(W32, reg, Read);
                }
                for reg in d {
                    f(W32, reg, Write);
                }
            }
            Self::Shuffle {
                d,
                p,
                a,
                b,
                c,
                members,
                ..
            } => {
                for reg in [a, b, c, members] {
                    f(W32, reg, Read);
                }
                f(W32, d, Write);
                f(Pred, p, Write);
            }
            Self::Vote {
                how, d, a, members, ..
            } => {
                f(Pred, a, Read);
                f(W32, members, Read);
                f(if *how == Vote::Ballot { W32 } else { Pred }, d, Write);
            }
            Self::ActiveMask { d } => f(W32, d, Write),
            Self::MatchAny { d, a, members } | Self::Reduce { d, a, members, .. } => {
                f(W32, a, Read);
                f(W32, members, Read);
                f(W32, d, Write);
            }
            Self::Barrier {
                kind,
                id,
                count,
                d,
                a,
                ..
            } => {
                f(W32, id, Read);
                f(W32, count, Read);
                f(Pred, a, Read);
                f(
                    if *kind == BarrierKind::ReducePopc {
                        W32
                    } else {
                        Pred
                    },
                    d,
                    Write,
                );
            }
            Self::WarpSync { members } => f(W32, members, Read),
            Self::BranchTable { index, .. } => f(W32, index, Read),
            Self::IsSpace { d, a, .. } => {
                f(W64, a, Read);
                f(Pred, d, Write);
            }
            Self::Clock { wide, d } => f(data_file(*wide), d, Write),
        }
    }
}
