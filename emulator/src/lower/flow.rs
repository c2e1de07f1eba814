//! Data flow over an entry: which reads may see an unwritten register, and how few planes hold all registers.
//!
//! Both look at the path of one thread. That is enough for a warp, since lanes write their own part of a plane only:
//! two registers may share a plane when no path of a thread needs both at once.

use super::entry::Entry;
use super::op::{Access, File, Inst, NONE, Op, Reg};

/// Marks instructions that touch a possibly unwritten register, then packs registers.
pub(super) fn finish(entry: &mut Entry) {
    let space = Numbering::new(entry);
    let blocks = blocks(entry);
    let tracked = track(entry, &space, &blocks);
    pack(entry, &space, &blocks, &tracked);
}

/// Bits of one set of all registers at the head of every basic block: what [`finish`] holds a few times.
pub(super) fn size(entry: &Entry) -> u64 {
    blocks(entry).len() as u64 * Numbering::new(entry).total as u64
}

/// One number for each register of all files.
struct Numbering {
    start: [usize; 3],
    total: usize,
}

impl Numbering {
    fn new(entry: &Entry) -> Self {
        let sizes = [entry.preds, entry.words, entry.doubles].map(usize::from);
        Self {
            start: [0, sizes[0], sizes[0] + sizes[1]],
            total: sizes.iter().sum(),
        }
    }

    const fn number(&self, file: File, reg: Reg) -> usize {
        self.start[file as usize] + reg as usize
    }
}

/// A set of registers.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(total: usize, full: bool) -> Self {
        Self(vec![if full { u64::MAX } else { 0 }; total.div_ceil(64)])
    }

    fn has(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }

    fn add(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }

    fn remove(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }

    /// Keeps what both have; true when something went.
    fn intersect(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            let both = *mine & theirs;
            changed |= both != *mine;
            *mine = both;
        }
        changed
    }

    /// Takes in what the other has; true when something came.
    fn unite(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            let either = *mine | theirs;
            changed |= either != *mine;
            *mine = either;
        }
        changed
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 != 0)
                .map(move |bit| at * 64 + bit)
        })
    }
}

/// Instructions without a branch in or out.
struct Block {
    first: usize,
    end: usize,
    next: Vec<usize>,
}

fn successors(entry: &Entry, at: usize) -> Vec<usize> {
    let inst = &entry.code[at];
    let mut next = match &inst.op {
        Op::Branch { target } => vec![*target as usize],
        Op::BranchTable { table, .. } => entry.tables[*table as usize]
            .iter()
            .map(|to| *to as usize)
            .collect(),
        Op::Exit | Op::Trap => Vec::new(),
        _ => vec![at + 1],
    };
    let falls_through = inst.guard != NONE || matches!(inst.op, Op::BranchTable { .. });
    if falls_through && !next.contains(&(at + 1)) {
        next.push(at + 1);
    }
    next.retain(|to| *to < entry.code.len());
    next
}

const fn ends_block(op: &Op) -> bool {
    matches!(
        op,
        Op::Branch { .. } | Op::BranchTable { .. } | Op::Exit | Op::Trap
    )
}

fn blocks(entry: &Entry) -> Vec<Block> {
    let n = entry.code.len();
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    leader[n] = true;
    for (at, inst) in entry.code.iter().enumerate() {
        if ends_block(&inst.op) {
            leader[at + 1] = true;
            for to in successors(entry, at) {
                leader[to] = true;
            }
        }
    }
    let starts: Vec<usize> = (0..n).filter(|at| leader[*at]).collect();
    let mut blocks = Vec::with_capacity(starts.len());
    for (index, first) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(n);
        let next = successors(entry, end - 1);
        let next = next
            .into_iter()
            .filter_map(|to| starts.binary_search(&to).ok())
            .collect();
        blocks.push(Block {
            first: *first,
            end,
            next,
        });
    }
    blocks
}

/// Calls `f` for each register that an instruction touches, its guard first.
fn touches(inst: &Inst, mut f: impl FnMut(File, Reg, Access)) {
    if inst.guard != NONE {
        f(File::Pred, inst.guard, Access::Read);
    }
    inst.op
        .clone()
        .visit(&mut |file, reg, access| f(file, *reg, access));
}

/// Whether an instruction passes a value on without using it.
pub(crate) const fn copies(op: &Op) -> bool {
    use super::op::{Unary32, Unary64};
    matches!(
        op,
        Op::Unary32 {
            op: Unary32::Mov,
            ..
        } | Op::Unary64 {
            op: Unary64::Mov,
            ..
        } | Op::PredMov { .. }
    )
}

/// What is certainly written after an instruction.
fn assign(inst: &Inst, space: &Numbering, written: &mut Set) {
    let mut passes = true;
    let copy = copies(&inst.op);
    inst.op.clone().visit(&mut |file, reg, access| {
        let n = space.number(file, *reg);
        match access {
            Access::Read => passes &= !copy || written.has(n),
            // A guarded write leaves the register as it was in the other lanes.
            Access::Write if inst.guard == NONE && passes => written.add(n),
            Access::Write if inst.guard == NONE => written.remove(n),
            Access::Write if !passes => written.remove(n),
            Access::Write => {}
        }
    });
}

/// Finds registers that some path reads before it writes them, and marks every instruction that touches one.
fn track(entry: &mut Entry, space: &Numbering, blocks: &[Block]) -> Set {
    let mut start = Set::new(space.total, false);
    for (reg, _) in &entry.constants32 {
        start.add(space.number(File::W32, *reg));
    }
    for (reg, _) in &entry.constants64 {
        start.add(space.number(File::W64, *reg));
    }
    for special in &entry.specials {
        let file = if special.wide { File::W64 } else { File::W32 };
        start.add(space.number(file, special.reg));
    }
    let mut before = vec![Set::new(space.total, true); blocks.len()];
    before[0] = start;
    let mut work: Vec<usize> = vec![0];
    let mut seen = vec![false; blocks.len()];
    seen[0] = true;
    while let Some(index) = work.pop() {
        let block = &blocks[index];
        let mut written = before[index].clone();
        for inst in &entry.code[block.first..block.end] {
            assign(inst, space, &mut written);
        }
        for next in &block.next {
            if before[*next].intersect(&written) || !seen[*next] {
                seen[*next] = true;
                work.push(*next);
            }
        }
    }
    let mut tracked = Set::new(space.total, false);
    for (index, block) in blocks.iter().enumerate() {
        let mut written = before[index].clone();
        for inst in &entry.code[block.first..block.end] {
            touches(inst, |file, reg, access| {
                let n = space.number(file, reg);
                if access == Access::Read && !written.has(n) {
                    tracked.add(n);
                }
            });
            assign(inst, space, &mut written);
        }
    }
    for inst in &mut entry.code {
        let mut touched = false;
        touches(inst, |file, reg, _| {
            touched |= tracked.has(space.number(file, reg))
        });
        inst.tracked = touched;
    }
    tracked
}

/// Numbers registers anew so that those never needed at once share a plane: what a warp works on stays in the cache.
fn pack(entry: &mut Entry, space: &Numbering, blocks: &[Block], tracked: &Set) {
    // Live ranges over the code as it lies: reads at even positions, writes at odd ones.
    let mut range: Vec<Option<(usize, usize)>> = vec![None; space.total];
    let mut extend = |n: usize, at: usize| {
        let range = range[n].get_or_insert((at, at));
        *range = (range.0.min(at), range.1.max(at));
    };
    let after = live_after(entry, space, blocks);
    for (index, block) in blocks.iter().enumerate() {
        let mut live = after[index].clone();
        for n in live.members() {
            extend(n, 2 * block.end);
        }
        for at in (block.first..block.end).rev() {
            step_back(&entry.code[at], space, &mut live);
            touches(&entry.code[at], |file, reg, access| {
                extend(
                    space.number(file, reg),
                    2 * at + usize::from(access == Access::Write),
                );
            });
        }
        for n in live.members() {
            extend(n, 2 * block.first);
        }
    }
    let mut fixed = tracked.clone();
    for (reg, _) in &entry.constants32 {
        fixed.add(space.number(File::W32, *reg));
    }
    for (reg, _) in &entry.constants64 {
        fixed.add(space.number(File::W64, *reg));
    }
    for special in &entry.specials {
        fixed.add(space.number(
            if special.wide { File::W64 } else { File::W32 },
            special.reg,
        ));
    }
    let mut renamed = vec![NONE; space.total];
    let mut sizes = [0; 3];
    for file in [File::Pred, File::W32, File::W64] {
        let start = space.start[file as usize];
        let end = space
            .start
            .get(file as usize + 1)
            .copied()
            .unwrap_or(space.total);
        sizes[file as usize] =
            assign_planes(start, &range[start..end], &fixed, &mut renamed[start..end]);
    }
    let rename = |file: File, reg: &mut Reg| *reg = renamed[space.number(file, *reg)];
    for inst in &mut entry.code {
        if inst.guard != NONE {
            rename(File::Pred, &mut inst.guard);
        }
        inst.op.visit(&mut |file, reg, _| rename(file, reg));
    }
    entry
        .constants32
        .retain(|(reg, _)| renamed[space.number(File::W32, *reg)] != NONE);
    entry
        .constants64
        .retain(|(reg, _)| renamed[space.number(File::W64, *reg)] != NONE);
    for (reg, _) in &mut entry.constants32 {
        rename(File::W32, reg);
    }
    for (reg, _) in &mut entry.constants64 {
        rename(File::W64, reg);
    }
    let file = |wide: bool| if wide { File::W64 } else { File::W32 };
    entry
        .specials
        .retain(|special| renamed[space.number(file(special.wide), special.reg)] != NONE);
    for special in &mut entry.specials {
        rename(file(special.wide), &mut special.reg);
    }
    for file in [File::Pred, File::W32, File::W64] {
        let numbers = space.start[file as usize]
            ..space
                .start
                .get(file as usize + 1)
                .copied()
                .unwrap_or(space.total);
        let regs = numbers
            .filter(|n| tracked.has(*n))
            .map(|n| (file, renamed[n]));
        entry.tracked.extend(regs);
    }
    [entry.preds, entry.words, entry.doubles] = sizes;
}

/// Linear scan; gives the number of planes. Fixed registers keep a plane to themselves; unused ones get none.
fn assign_planes(
    start: usize,
    ranges: &[Option<(usize, usize)>],
    fixed: &Set,
    renamed: &mut [Reg],
) -> Reg {
    let mut next: Reg = 0;
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (n, range) in ranges.iter().enumerate() {
        let Some((from, to)) = range else {
            continue;
        };
        if fixed.has(start + n) {
            renamed[n] = next;
            next += 1;
        } else {
            order.push((*from, *to, n));
        }
    }
    order.sort_unstable();
    let mut busy: std::collections::BinaryHeap<std::cmp::Reverse<(usize, Reg)>> =
        Default::default();
    let mut free: Vec<Reg> = Vec::new();
    for (from, to, n) in order {
        while let Some(std::cmp::Reverse((end, plane))) = busy.peek().copied()
            && end < from
        {
            busy.pop();
            free.push(plane);
        }
        let plane = free.pop().unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        renamed[n] = plane;
        busy.push(std::cmp::Reverse((to, plane)));
    }
    next
}

/// What is needed before an instruction, given what is needed after it.
fn step_back(inst: &Inst, space: &Numbering, live: &mut Set) {
    if inst.guard == NONE {
        touches(inst, |file, reg, access| {
            if access == Access::Write {
                live.remove(space.number(file, reg));
            }
        });
    }
    touches(inst, |file, reg, access| {
        if access == Access::Read {
            live.add(space.number(file, reg));
        }
    });
}

/// What is needed after each block.
fn live_after(entry: &Entry, space: &Numbering, blocks: &[Block]) -> Vec<Set> {
    let mut before = vec![Set::new(space.total, false); blocks.len()];
    let mut after = before.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in blocks.iter().enumerate().rev() {
            for next in &block.next {
                after[index].unite(&before[*next]);
            }
            let mut live = after[index].clone();
            for inst in entry.code[block.first..block.end].iter().rev() {
                step_back(inst, space, &mut live);
            }
            changed |= before[index].unite(&live);
        }
    }
    after
}
