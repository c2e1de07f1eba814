//! One warp, one instruction after the other.

use super::access::Shape;
use super::alu::{binary32, lop3, ternary32, unary32};
use super::alu64::{binary64, mad_wide, mul_wide, narrow, shift64, ternary64, unary64, widen};
use super::collective::{shuffle, vote};
use super::compare::{compare32, compare64, select32, select64};
use super::context::Context;
use super::half::{How, half};
use super::lanes::{map1, map2, put};
use super::matrix::{Fragments, mma, transpose};
use super::mma_exact::mma_exact;
use super::rare::rare;
use super::sync::{barrier, branch_table, gathered_by, whole};
use super::track::track;
use super::warp::{Warp, set_pred, set_word};
use crate::check::FindingKind;
use crate::lower::op::{CmpTy, Inst, Join, NONE, Op, Vote};

/// Instructions a warp may run before the next one has its turn: warps that wait for each other through memory make
/// progress.
const TURN: u32 = 20_000;

/// Runs a warp until it waits, ends, or its turn is over.
pub(super) fn run<const AVX2: bool>(context: &mut Context<'_>, warp: &mut Warp) {
    let env = context.env;
    let code = &env.entry.code[..];
    let mut turn = TURN;
    while warp.active != 0 && turn != 0 && !context.aborted {
        turn -= 1;
        let pc = warp.pc as usize;
        let Some(inst) = code.get(pc) else {
            // Only a label at the very end leads here; it stands for the end of the thread.
            let active = warp.active;
            warp.exit(active);
            continue;
        };
        context.tally.executions[pc] += 1;
        if context.budget == 0 {
            let lane = warp.active.trailing_zeros();
            let limit = env.options.instruction_limit;
            context.report_plain(
                FindingKind::InstructionLimit,
                warp.index,
                lane,
                warp.pc,
                || format!("the block executed {limit} warp instructions without an end"),
            );
            context.aborted = true;
            return;
        }
        context.budget -= 1;
        let mask = if inst.guard == NONE {
            warp.active
        } else {
            let pred = warp.preds[inst.guard as usize];
            warp.active & if inst.guard_not { !pred } else { pred }
        };
        if inst.tracked && context.checks.uninitialised {
            track(context, warp, inst, mask);
        }
        if step::<AVX2>(context, warp, inst, mask) {
            warp.pc += 1;
            if warp.pc >= warp.switch_at {
                warp.reschedule();
            }
        }
    }
}

/// Executes one instruction; true when the warp goes on to the next.
#[inline(always)]
fn step<const AVX2: bool>(
    context: &mut Context<'_>,
    warp: &mut Warp,
    inst: &Inst,
    mask: u32,
) -> bool {
    match inst.op {
        // Control flow looks at the mask itself.
        Op::Branch { target } => {
            if mask == warp.active {
                warp.pc = target;
                if target >= warp.switch_at {
                    warp.reschedule();
                }
                return false;
            }
            if mask == 0 {
                return true;
            }
            warp.diverge(mask, target);
            return false;
        }
        Op::BranchTable { index, table } => {
            branch_table(context, warp, index, table, mask);
            return false;
        }
        Op::Exit => {
            if mask == 0 {
                return true;
            }
            warp.exit(mask);
            return false;
        }
        _ if mask == 0 => return true,
        Op::Trap => {
            let lane = mask.trailing_zeros();
            context.report_plain(FindingKind::Trap, warp.index, lane, warp.pc, || {
                "the kernel trapped".to_owned()
            });
            context.aborted = true;
            return false;
        }
        Op::Nop => {}
        Op::Unary32 { op, flags, d, a } => {
            if d != NONE {
                unary32::<AVX2>(&mut warp.words, op, flags, d, a, mask);
            }
        }
        Op::Binary32 { op, flags, d, a, b } => {
            if d != NONE {
                binary32::<AVX2>(&mut warp.words, op, flags, [d, a, b], mask);
            }
        }
        Op::Ternary32 {
            op,
            flags,
            d,
            a,
            b,
            c,
        } => {
            if d != NONE {
                ternary32::<AVX2>(&mut warp.words, op, flags, [d, a, b, c], mask);
            }
        }
        Op::Lop3 { lut, d, a, b, c } => {
            if d != NONE {
                lop3::<AVX2>(&mut warp.words, lut, [d, a, b, c], mask);
            }
        }
        Op::Half {
            op,
            format,
            flags,
            relu,
            d,
            a,
            b,
            c,
        } => {
            if d != NONE {
                half::<AVX2>(
                    &mut warp.words,
                    How {
                        op,
                        format,
                        flags,
                        relu,
                    },
                    [d, a, b, c],
                    mask,
                );
            }
        }
        Op::Unary64 { op, d, a } => {
            if d != NONE {
                unary64::<AVX2>(&mut warp.doubles, op, d, a, mask);
            }
        }
        Op::Binary64 { op, d, a, b } => {
            if d != NONE {
                binary64::<AVX2>(&mut warp.doubles, op, [d, a, b], mask);
            }
        }
        Op::Ternary64 { op, d, a, b, c } => {
            if d != NONE {
                ternary64(&mut warp.doubles, op, [d, a, b, c], mask);
            }
        }
        Op::Shift64 { op, d, a, b } => {
            if d != NONE {
                shift64::<AVX2>(&mut warp.doubles, &warp.words, op, [d, a, b], mask);
            }
        }
        Op::Widen { op, d, a } => {
            if d != NONE {
                widen::<AVX2>(&mut warp.doubles, &warp.words, op, d, a, mask);
            }
        }
        Op::Narrow { op, d, a } => {
            if d != NONE {
                narrow::<AVX2>(&warp.doubles, &mut warp.words, op, d, a, mask);
            }
        }
        Op::MulWide { signed, d, a, b } => {
            if d != NONE {
                mul_wide::<AVX2>(&mut warp.doubles, &warp.words, signed, [d, a, b], mask);
            }
        }
        Op::MadWide { signed, d, a, b, c } => {
            if d != NONE {
                mad_wide::<AVX2>(&mut warp.doubles, &warp.words, signed, [d, a, b, c], mask);
            }
        }
        Op::Set {
            ty,
            cmp,
            ftz,
            d,
            e,
            a,
            b,
            join,
            c,
            c_not,
        } => {
            let holds = if matches!(ty, CmpTy::U64 | CmpTy::S64 | CmpTy::F64) {
                compare64::<AVX2>(&warp.doubles, ty, cmp, a, b)
            } else {
                compare32::<AVX2>(&warp.words, ty, cmp, ftz, a, b)
            };
            let other = if c == NONE {
                0
            } else {
                warp.preds[c as usize] ^ if c_not { u32::MAX } else { 0 }
            };
            set_pred(warp, d, joined(join, holds, other), mask);
            set_pred(warp, e, joined(join, !holds, other), mask);
        }
        Op::Select32 { d, a, b, p } => {
            if d != NONE {
                let p = warp.preds[p as usize];
                select32::<AVX2>(&mut warp.words, [d, a, b], p, mask);
            }
        }
        Op::Select64 { d, a, b, p } => {
            if d != NONE {
                let p = warp.preds[p as usize];
                select64::<AVX2>(&mut warp.doubles, [d, a, b], p, mask);
            }
        }
        Op::PredMov { d, a, not } => {
            let value = warp.preds[a as usize] ^ if not { u32::MAX } else { 0 };
            set_pred(warp, d, value, mask);
        }
        Op::PredConst { d, value } => set_pred(warp, d, if value { u32::MAX } else { 0 }, mask),
        Op::PredLogic { join, d, a, b } => {
            let value = joined(join, warp.preds[a as usize], warp.preds[b as usize]);
            set_pred(warp, d, value, mask);
        }
        Op::Pack16 { d, lo, hi } => {
            let (lo, hi) = (&warp.words[lo as usize].0, &warp.words[hi as usize].0);
            let out = map2(lo, hi, |lo: u32, hi: u32| lo & 0xFFFF | hi << 16);
            set_word(warp, d, &out, mask);
        }
        Op::Unpack16 { lo, hi, a } => {
            let a = warp.words[a as usize].0;
            set_word(warp, lo, &map1(&a, |a: u32| a & 0xFFFF), mask);
            set_word(warp, hi, &map1(&a, |a: u32| a >> 16), mask);
        }
        Op::Pack32 { d, lo, hi } => {
            let (lo, hi) = (&warp.words[lo as usize].0, &warp.words[hi as usize].0);
            let out = map2(lo, hi, |lo: u32, hi: u32| {
                u64::from(lo) | u64::from(hi) << 32
            });
            if d != NONE {
                put(&mut warp.doubles[d as usize].0, &out, mask);
            }
        }
        Op::Unpack32 { lo, hi, a } => {
            let a = warp.doubles[a as usize].0;
            set_word(warp, lo, &map1(&a, |a: u64| a as u32), mask);
            set_word(warp, hi, &map1(&a, |a: u64| (a >> 32) as u32), mask);
        }
        Op::Load {
            space,
            ty,
            count,
            wide,
            d,
            address,
        } => {
            context.load(
                warp,
                mask,
                space,
                Shape {
                    ty,
                    count,
                    wide,
                    regs: d,
                },
                address,
            );
        }
        Op::Store {
            space,
            ty,
            count,
            wide,
            a,
            address,
        } => {
            context.store(
                warp,
                mask,
                space,
                Shape {
                    ty,
                    count,
                    wide,
                    regs: a,
                },
                address,
            );
        }
        Op::AsyncCopy {
            size,
            to,
            from,
            src,
        } => context.async_copy(warp, mask, size, to, from, src),
        Op::AsyncCommit => context.async_commit(warp, mask),
        Op::AsyncWait { pending, all } => context.async_wait(warp, mask, pending, all),
        Op::LoadMatrix {
            count,
            trans,
            d,
            address,
        } => {
            if !whole(context, warp, mask) {
                return false;
            }
            context.load_matrix::<AVX2>(warp, count, trans, d, address);
        }
        Op::MoveMatrix { d, a } => {
            if !whole(context, warp, mask) {
                return false;
            }
            let plane = transpose::<AVX2>(&warp.words[a as usize].0);
            set_word(warp, d, &plane, mask);
        }
        Op::Mma {
            bf16,
            k16,
            d,
            a,
            b,
            c,
        } => {
            if !whole(context, warp, mask) {
                return false;
            }
            let operands = Fragments {
                bf16,
                k16,
                d,
                a,
                b,
                c,
            };
            match context.env.options.mma {
                crate::MmaMode::Fast => mma::<AVX2>(&mut warp.words, operands),
                crate::MmaMode::Exact => mma_exact(&mut warp.words, operands),
            }
        }
        Op::Shuffle {
            how,
            d,
            p,
            a,
            b,
            c,
            members,
        } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            let stray = shuffle(warp, mask, how, (d, p), [a, b, c]);
            if stray != 0 && context.checks.convergence {
                let lane = stray.trailing_zeros();
                context.report_plain(FindingKind::InactiveLane, warp.index, lane, warp.pc, || {
                    "shfl reads a lane that does not execute it".to_owned()
                });
            }
        }
        Op::Vote {
            how,
            d,
            a,
            a_not,
            members,
        } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            let votes = warp.preds[a as usize] ^ if a_not { u32::MAX } else { 0 };
            let members = warp.words[members as usize].0[mask.trailing_zeros() as usize];
            let result = vote(how, votes, mask & members);
            if how == Vote::Ballot {
                set_word(warp, d, &[result; 32], mask);
            } else {
                set_pred(warp, d, result, mask);
            }
        }
        Op::WarpSync { members } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            let members = warp.words[members as usize].0[mask.trailing_zeros() as usize];
            // A barrier of some lanes orders only them, which a clock of the warp cannot express: it is not taken as
            // an order at all.
            if context.shadowed && members & warp.live == warp.live {
                context.shadow.warp_sync(warp.index);
            }
        }
        Op::Barrier { .. } => {
            barrier(context, warp, &inst.op, mask);
            return false;
        }
        _ => return rare(context, warp, inst, mask),
    }
    true
}

/// A comparison joined with a predicate.
#[inline(always)]
const fn joined(join: Join, holds: u32, other: u32) -> u32 {
    match join {
        Join::Set => holds,
        Join::And => holds & other,
        Join::Or => holds | other,
        Join::Xor => holds ^ other,
    }
}
