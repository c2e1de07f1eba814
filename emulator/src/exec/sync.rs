//! Instructions that need lanes together, and what takes them apart.

use super::context::Context;
use super::lanes::lanes;
use super::warp::{Group, Waiting, Warp};
use crate::check::FindingKind;
use crate::lower::op::{BarrierKind, NONE, Op, Reg};

/// Whether the lanes that a `.sync` instruction names are all here. If not, the lanes that are here wait for them;
/// when nothing else of the warp can move, the fault is reported and they go on.
#[inline(always)]
pub(super) fn gathered(context: &mut Context<'_>, warp: &mut Warp, members: u32) -> bool {
    if warp.missing(members) == 0 {
        return true;
    }
    wait_for_lanes(context, warp, members)
}

/// Whether an `.aligned` instruction is executed by every lane of the warp, as it must be: a guard that leaves some out makes
/// its result undefined.
#[inline(always)]
pub(super) fn whole(context: &mut Context<'_>, warp: &mut Warp, mask: u32) -> bool {
    if !gathered(context, warp, u32::MAX) {
        return false;
    }
    if mask != warp.live {
        left_out(context, warp, mask);
    }
    true
}

#[cold]
fn left_out(context: &mut Context<'_>, warp: &Warp, mask: u32) {
    if !context.checks.convergence {
        return;
    }
    let missing = warp.active & !mask;
    if missing != 0 {
        let lane = missing.trailing_zeros();
        context.report_plain(FindingKind::InactiveLane, warp.index, lane, warp.pc, || {
            format!("its guard leaves out the lanes {missing:#010x} of an .aligned instruction")
        });
    }
}

#[inline(always)]
pub(super) fn gathered_by(
    context: &mut Context<'_>,
    warp: &mut Warp,
    members: Reg,
    mask: u32,
) -> bool {
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

pub(super) fn branch_table(
    context: &mut Context<'_>,
    warp: &mut Warp,
    index: Reg,
    table: u32,
    mask: u32,
) {
    let targets = &context.env.entry.tables[table as usize];
    let indices = warp.words[index as usize].0;
    let next = warp.pc + 1;
    let outside = warp.active & !mask;
    if outside != 0 {
        warp.others.push(Group {
            pc: next,
            mask: outside,
            parked: false,
        });
    }
    let mut rest = mask;
    warp.active = 0;
    while rest != 0 {
        let first = indices[rest.trailing_zeros() as usize];
        let same = lanes(rest)
            .filter(|lane| indices[*lane] == first)
            .fold(0u32, |mask, lane| mask | 1 << lane);
        // An index beyond the table is undefined; falling through is harmless.
        let pc = targets.get(first as usize).copied().unwrap_or(next);
        warp.others.push(Group {
            pc,
            mask: same,
            parked: false,
        });
        rest &= !same;
    }
    warp.reschedule();
}

pub(super) fn barrier(context: &mut Context<'_>, warp: &mut Warp, op: &Op, mask: u32) {
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
