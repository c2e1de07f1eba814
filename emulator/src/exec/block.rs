//! One block: its warps in turn, its barriers, and what happens when nothing can move.

use super::context::Context;
use super::run::run;
use super::warp::{Group, Waiting, Warp};
use crate::check::FindingKind;
use crate::lower::op::{BarrierKind, NONE, Op};

/// Runs a block to its end.
pub(super) fn run_block<const AVX2: bool>(context: &mut Context<'_>, warps: &mut [Warp]) {
    let entry = context.env.entry;
    let geometry = context.geometry;
    for warp in warps.iter_mut() {
        warp.reset(entry, &geometry);
    }
    loop {
        let mut progress = false;
        for warp in warps.iter_mut() {
            if warp.active != 0 {
                progress = true;
                run::<AVX2>(context, warp);
            }
        }
        if context.aborted || warps.iter().all(Warp::done) {
            return;
        }
        progress |= release(context, warps);
        if progress {
            continue;
        }
        // Lanes wait at a `.sync` instruction for others of their warp that cannot come.
        let Some(stuck) = warps.iter_mut().find(|warp| !warp.others.is_empty()) else {
            deadlock(context, warps);
            return;
        };
        stuck.force();
    }
}

/// Completes every barrier that has its threads; true when one was completed.
fn release(context: &mut Context<'_>, warps: &mut [Warp]) -> bool {
    let mut any = false;
    loop {
        let complete = warps
            .iter()
            .flat_map(|warp| &warp.waiting)
            .find(|waiting| has_all(waiting, warps))
            .copied();
        let Some(Waiting { barrier, .. }) = complete else {
            return any;
        };
        any = true;
        complete_barrier(context, warps, barrier);
    }
}

fn has_all(waiting: &Waiting, warps: &[Warp]) -> bool {
    let live: u32 = warps.iter().map(|warp| warp.live.count_ones()).sum();
    let here = |warp: &Warp| {
        let waits = warp
            .waiting
            .iter()
            .filter(|other| other.barrier == waiting.barrier);
        let mask = waits.fold(0, |mask, other| mask | other.mask);
        // Counts are multiples of the warp: a warp that is there with all its live threads counts whole.
        if waiting.count != 0 && mask == warp.live && mask != 0 {
            32
        } else {
            mask.count_ones()
        }
    };
    let arrived: u32 = warps.iter().map(here).sum();
    arrived
        >= if waiting.count == 0 {
            live
        } else {
            waiting.count
        }
}

fn complete_barrier(context: &mut Context<'_>, warps: &mut [Warp], barrier: u32) {
    let code = &context.env.entry.code;
    let at = |warp: &Warp| {
        warp.waiting
            .iter()
            .filter(|waiting| waiting.barrier == barrier)
            .copied()
            .collect::<Vec<_>>()
    };
    let all: Vec<Waiting> = warps.iter().flat_map(at).collect();
    let votes: u32 = all.iter().map(|waiting| waiting.votes.count_ones()).sum();
    let threads: u32 = all.iter().map(|waiting| waiting.mask.count_ones()).sum();
    let mut released = 0u32;
    for warp in warps.iter_mut() {
        for waiting in at(warp) {
            let Op::Barrier { kind, d, .. } = code[waiting.pc as usize].op else {
                continue;
            };
            if kind == BarrierKind::Arrive {
                continue;
            }
            released |= 1 << warp.index;
            let all_ones = |yes: bool| if yes { u32::MAX } else { 0 };
            if d != NONE {
                match kind {
                    BarrierKind::ReducePopc => {
                        super::lanes::put(
                            &mut warp.words[d as usize].0,
                            &[votes; 32],
                            waiting.mask,
                        );
                    }
                    _ => {
                        let yes = if kind == BarrierKind::ReduceAnd {
                            votes == threads
                        } else {
                            votes != 0
                        };
                        let pred = &mut warp.preds[d as usize];
                        *pred = *pred & !waiting.mask | all_ones(yes) & waiting.mask;
                    }
                }
            }
            warp.others.push(Group {
                pc: waiting.pc + 1,
                mask: waiting.mask,
                parked: false,
            });
        }
        warp.waiting.retain(|waiting| waiting.barrier != barrier);
        if released >> warp.index & 1 != 0 {
            warp.reschedule();
        }
    }
    if context.shadowed {
        context.shadow.release(barrier, released);
    }
}

fn deadlock(context: &mut Context<'_>, warps: &[Warp]) {
    context.aborted = true;
    if !context.checks.convergence {
        return;
    }
    let live: u32 = warps.iter().map(|warp| warp.live.count_ones()).sum();
    let mut seen = Vec::new();
    for warp in warps {
        for waiting in &warp.waiting {
            if seen.contains(&waiting.pc) {
                continue;
            }
            seen.push(waiting.pc);
            let here: u32 = warps
                .iter()
                .flat_map(|warp| &warp.waiting)
                .filter(|other| other.pc == waiting.pc)
                .map(|other| other.mask.count_ones())
                .sum();
            let wanted = if waiting.count == 0 {
                live
            } else {
                waiting.count
            };
            let (barrier, lane) = (waiting.barrier, waiting.mask.trailing_zeros());
            context.report_plain(FindingKind::Deadlock, warp.index, lane, waiting.pc, || {
                format!("{here} threads wait here at barrier {barrier} for {wanted}, and the others never come")
            });
        }
    }
}
