//! Reads of registers that nothing wrote.

use super::context::Context;
use super::warp::Warp;
use crate::check::FindingKind;
use crate::lower::op::{Access, File, Inst, NONE};

/// Keeps the marks of registers that some path leaves unwritten, and reports reads of unwritten lanes.
#[cold]
pub(super) fn track(context: &mut Context<'_>, warp: &mut Warp, inst: &Inst, mask: u32) {
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
