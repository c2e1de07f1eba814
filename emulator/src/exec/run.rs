//! One warp, one instruction after the other.

use super::access::Shape;
use super::alu::{binary32, lop3, ternary32, unary32};
use super::alu64::{
    binary64, bit_field64, mad_wide, mul_wide, narrow, shift64, ternary64, unary64, widen,
};
use super::atomic::AtomicShape;
use super::collective::{match_any, reduce, shuffle, vote};
use super::compare::{compare32, compare64, select32, select64};
use super::context::Context;
use super::convert::convert;
use super::half::{How, half};
use super::judge::in_space;
use super::lanes::{lanes, map1, map2, put};
use super::matrix::{Fragments, mma, transpose};
use super::mma_exact::mma_exact;
use super::numeric as n;
use super::warp::{Waiting, Warp};
use crate::check::FindingKind;
use crate::lower::op::{Access, BarrierKind, CmpTy, File, Inst, Join, NONE, Op, Reg, Vote};

/// Instructions a warp may run before the next one has its turn: warps that wait for each other through memory make
/// progress.
const TURN: u32 = 20_000;

/// Writes the lanes of `mask` of a predicate.
#[inline(always)]
fn set_pred(warp: &mut Warp, d: Reg, value: u32, mask: u32) {
    if d != NONE {
        let pred = &mut warp.preds[d as usize];
        *pred = *pred & !mask | value & mask;
    }
}

/// Stores a plane unless the destination is `_`.
#[inline(always)]
fn set_word(warp: &mut Warp, d: Reg, value: &[u32; 32], mask: u32) {
    if d != NONE {
        put(&mut warp.words[d as usize].0, value, mask);
    }
}

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

/// Keeps the marks of registers that some path leaves unwritten, and reports reads of unwritten lanes.
#[cold]
fn track(context: &mut Context<'_>, warp: &mut Warp, inst: &Inst, mask: u32) {
    let mut op = inst.op.clone();
    let mut unwritten = 0;
    let marks = &mut warp.written;
    let guard = inst.guard;
    if guard != NONE {
        unwritten |= warp.active & !marks[File::Pred as usize][guard as usize];
    }
    // A move or selection passes a value on without using it; compilers emit them for values that no path needs.
    let copies = crate::lower::copies(&op);
    let mut passed = u32::MAX;
    op.visit(&mut |file, reg, access| {
        let mark = &mut marks[file as usize][*reg as usize];
        match access {
            Access::Read if copies => passed = *mark,
            Access::Read => unwritten |= mask & !*mark,
            Access::Write if copies => *mark = *mark & !mask | passed & mask,
            Access::Write => *mark |= mask,
        }
    });
    if unwritten != 0 {
        let lane = unwritten.trailing_zeros();
        context.report_plain(
            FindingKind::UninitialisedRegister,
            warp.index,
            lane,
            warp.pc,
            || "reads a register that nothing wrote on this path".to_owned(),
        );
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
            branch_table(context, warp, index, table);
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
            if !gathered(context, warp, u32::MAX) {
                return false;
            }
            context.load_matrix::<AVX2>(warp, count, trans, d, address);
        }
        Op::MoveMatrix { d, a } => {
            if !gathered(context, warp, u32::MAX) {
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
            if !gathered(context, warp, u32::MAX) {
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

/// Instructions that need no fast path.
fn rare(context: &mut Context<'_>, warp: &mut Warp, inst: &Inst, mask: u32) -> bool {
    match inst.op {
        Op::Bfi32 { d, a, b, c, len } => {
            let [a, b, c, len] = [a, b, c, len].map(|reg| warp.words[reg as usize].0);
            let mut out = a;
            for lane in 0..32 {
                out[lane] = n::bit_insert(
                    u64::from(a[lane]),
                    u64::from(b[lane]),
                    c[lane],
                    len[lane],
                    32,
                ) as u32;
            }
            set_word(warp, d, &out, mask);
        }
        Op::Bfe64 {
            signed,
            d,
            a,
            b,
            len,
        } => {
            for lane in lanes(mask) {
                let (b, len) = (
                    warp.words[b as usize].0[lane],
                    warp.words[len as usize].0[lane],
                );
                let value = bit_field64(warp.doubles[a as usize].0[lane], b, len, signed);
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = value;
                }
            }
        }
        Op::Bfi64 { d, a, b, c, len } => {
            for lane in lanes(mask) {
                let (a, b) = (
                    warp.doubles[a as usize].0[lane],
                    warp.doubles[b as usize].0[lane],
                );
                let (c, len) = (
                    warp.words[c as usize].0[lane],
                    warp.words[len as usize].0[lane],
                );
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = n::bit_insert(a, b, c, len, 64);
                }
            }
        }
        Op::Convert { how, d, a } => {
            for lane in lanes(mask) {
                let bits = if how.from.bytes() == 8 {
                    warp.doubles[a as usize].0[lane]
                } else {
                    u64::from(warp.words[a as usize].0[lane])
                };
                let value = convert(how, bits);
                if d == NONE {
                } else if how.to.bytes() == 8 {
                    warp.doubles[d as usize].0[lane] = value;
                } else {
                    warp.words[d as usize].0[lane] = value as u32;
                }
            }
        }
        Op::SetValue {
            ty,
            cmp,
            ftz,
            float,
            d,
            a,
            b,
        } => {
            let holds = if matches!(ty, CmpTy::U64 | CmpTy::S64 | CmpTy::F64) {
                compare64::<false>(&warp.doubles, ty, cmp, a, b)
            } else {
                compare32::<false>(&warp.words, ty, cmp, ftz, a, b)
            };
            let yes = if float { 1f32.to_bits() } else { u32::MAX };
            let out = std::array::from_fn(|lane| if holds >> lane & 1 != 0 { yes } else { 0 });
            set_word(warp, d, &out, mask);
        }
        Op::Pack16x4 { d, parts } => {
            for lane in lanes(mask) {
                let part = |i: usize| {
                    u64::from(warp.words[parts[i] as usize].0[lane] & 0xFFFF) << (16 * i)
                };
                let value = part(0) | part(1) | part(2) | part(3);
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = value;
                }
            }
        }
        Op::Unpack16x4 { parts, a } => {
            let a = warp.doubles[a as usize].0;
            for (i, reg) in parts.into_iter().enumerate() {
                set_word(
                    warp,
                    reg,
                    &map1(&a, |a: u64| (a >> (16 * i)) as u32 & 0xFFFF),
                    mask,
                );
            }
        }
        Op::Atomic {
            space,
            op,
            ty,
            d,
            address,
            b,
            c,
        } => {
            context.atomic(warp, mask, space, AtomicShape { op, ty, d, b, c }, address);
        }
        Op::ActiveMask { d } => set_word(warp, d, &[mask; 32], mask),
        Op::MatchAny { d, a, members } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            match_any(warp, mask, d, a);
        }
        Op::Reduce { how, d, a, members } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            reduce(warp, mask, how, d, a);
        }
        Op::IsSpace { space, d, a } => {
            let a = &warp.doubles[a as usize].0;
            let mut value = 0;
            for lane in 0..32 {
                value |= u32::from(in_space(a[lane], space)) << lane;
            }
            set_pred(warp, d, value, mask);
        }
        Op::Clock { wide, d } => {
            let now = context.env.options.instruction_limit - context.budget;
            if d == NONE {
            } else if wide {
                put(&mut warp.doubles[d as usize].0, &[now; 32], mask);
            } else {
                put(&mut warp.words[d as usize].0, &[now as u32; 32], mask);
            }
        }
        _ => {}
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

/// Whether the lanes that a `.sync` instruction names are all here. If not, the lanes that are here wait for them;
/// when nothing else of the warp can move, the fault is reported and they go on.
#[inline(always)]
fn gathered(context: &mut Context<'_>, warp: &mut Warp, members: u32) -> bool {
    if warp.missing(members) == 0 {
        return true;
    }
    wait_for_lanes(context, warp, members)
}

#[inline(always)]
fn gathered_by(context: &mut Context<'_>, warp: &mut Warp, members: Reg, mask: u32) -> bool {
    let members = warp.words[members as usize].0[mask.trailing_zeros() as usize];
    gathered(context, warp, members)
}

#[cold]
fn wait_for_lanes(context: &mut Context<'_>, warp: &mut Warp, members: u32) -> bool {
    if !warp.forced {
        park(context, warp);
        return false;
    }
    warp.forced = false;
    if context.checks.convergence {
        let missing = warp.missing(members);
        let lane = warp.active.trailing_zeros();
        context.report_plain(FindingKind::InactiveLane, warp.index, lane, warp.pc, || {
            format!(
                "the instruction names the lanes {missing:#010x}, which are elsewhere in the warp"
            )
        });
    }
    true
}

/// The active lanes wait; the instruction is executed again when they wake up.
fn park(context: &mut Context<'_>, warp: &mut Warp) {
    context.tally.executions[warp.pc as usize] -= 1;
    context.budget += 1;
    warp.park();
}

fn branch_table(context: &mut Context<'_>, warp: &mut Warp, index: Reg, table: u32) {
    let targets = &context.env.entry.tables[table as usize];
    let indices = warp.words[index as usize].0;
    let next = warp.pc + 1;
    let mut rest = warp.active;
    warp.active = 0;
    while rest != 0 {
        let first = indices[rest.trailing_zeros() as usize];
        let same = lanes(rest)
            .filter(|lane| indices[*lane] == first)
            .fold(0u32, |mask, lane| mask | 1 << lane);
        // An index beyond the table is undefined; falling through is harmless.
        let pc = targets.get(first as usize).copied().unwrap_or(next);
        warp.others.push(super::warp::Group {
            pc,
            mask: same,
            parked: false,
        });
        rest &= !same;
    }
    warp.reschedule();
}

fn barrier(context: &mut Context<'_>, warp: &mut Warp, op: &Op, mask: u32) {
    let Op::Barrier {
        kind,
        id,
        count,
        a,
        a_not,
        aligned,
        ..
    } = *op
    else {
        return;
    };
    let first = mask.trailing_zeros() as usize;
    if aligned && mask != warp.live {
        // Others of the warp may still end, or come by another way: wait for them as `.sync` instructions do.
        if warp.live != warp.active && !warp.forced {
            park(context, warp);
            return;
        }
        warp.forced = false;
        if context.checks.convergence {
            let elsewhere = warp.live & !mask;
            context.report_plain(
                FindingKind::DivergentBarrier,
                warp.index,
                first as u32,
                warp.pc,
                || format!("barrier in a diverged warp: the lanes {elsewhere:#010x} are elsewhere"),
            );
        }
    }
    let barrier = warp.words[id as usize].0[first];
    let count = if count == NONE {
        0
    } else {
        warp.words[count as usize].0[first]
    };
    let votes = if a == NONE {
        0
    } else {
        warp.preds[a as usize] ^ if a_not { u32::MAX } else { 0 }
    };
    if context.shadowed {
        context.shadow.arrive(barrier, warp.index);
    }
    warp.waiting.push(Waiting {
        barrier,
        count,
        mask,
        pc: warp.pc,
        votes: votes & mask,
    });
    if kind == BarrierKind::Arrive {
        // Goes on at once; its arrival stays noted until the barrier completes.
        warp.pc += 1;
        if warp.pc >= warp.switch_at {
            warp.reschedule();
        }
        return;
    }
    // Lanes whose guard is false do not wait.
    let rest = warp.active & !mask;
    warp.active = rest;
    if rest != 0 {
        warp.pc += 1;
    }
    warp.reschedule();
}
