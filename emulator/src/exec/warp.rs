//! A warp: registers, and which lanes are where.

use super::async_copy::Copies;
use super::lanes::{Doubles, Words, put};
use crate::lower::op::{NONE, Reg};
use crate::lower::{Entry, SpecialKind};

/// Lanes that are at one instruction while others of the warp are elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) pc: u32,
    pub(super) mask: u32,
    /// Waits at a `.sync` instruction for lanes that are elsewhere.
    pub(super) parked: bool,
}

/// Lanes at a block-wide barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) barrier: u32,
    /// Threads expected, 0 for the whole block.
    pub(super) count: u32,
    pub(super) mask: u32,
    /// Of the barrier instruction.
    pub(super) pc: u32,
    /// Lanes whose predicate is true, for reductions.
    pub(super) votes: u32,
}

/// A warp.
#[derive(Debug, Default)]
pub(super) struct Warp {
    pub(super) index: u32,
    pub(super) words: Vec<Words>,
    pub(super) doubles: Vec<Doubles>,
    pub(super) preds: Vec<u32>,
    pub(super) pc: u32,
    /// Lanes that execute at `pc`; 0 when the warp cannot run.
    pub(super) active: u32,
    /// Lanes that have not exited.
    pub(super) live: u32,
    pub(super) others: Vec<Group>,
    /// Below this program counter no other group needs a look.
    pub(super) switch_at: u32,
    pub(super) waiting: Vec<Waiting>,
    /// The parked group at this instruction runs without the missing lanes.
    pub(super) forced: bool,
    pub(super) copies: Copies,
    /// Written lanes of each register that some path leaves unwritten.
    pub(super) written: [Vec<u32>; 3],
}

/// What a block's special registers show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) index: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) total_shared: u32,
}

impl Geometry {
    pub(super) const fn threads(&self) -> u32 {
        self.block[0] * self.block[1] * self.block[2]
    }
}

impl Warp {
    /// Sizes the register files and fills in the constants; once for all blocks of a worker.
    pub(super) fn prepare(&mut self, entry: &Entry, index: u32) {
        self.index = index;
        self.words.resize(usize::from(entry.words), Words::ZERO);
        self.doubles
            .resize(usize::from(entry.doubles), Doubles::ZERO);
        self.preds.resize(usize::from(entry.preds), 0);
    }

    /// Starts the warp anew.
    pub(super) fn reset(&mut self, entry: &Entry, geometry: &Geometry) {
        // Registers start as zero, so that a kernel which reads one too early still gives the same result every time.
        self.words.fill(Words::ZERO);
        self.doubles.fill(Doubles::ZERO);
        self.preds.fill(0);
        for (reg, value) in &entry.constants32 {
            self.words[*reg as usize].0 = [*value; 32];
        }
        for (reg, value) in &entry.constants64 {
            self.doubles[*reg as usize].0 = [*value; 32];
        }
        for special in &entry.specials {
            for lane in 0..32 {
                let value = self.special(special.kind, lane as u32, geometry);
                if special.wide {
                    self.doubles[special.reg as usize].0[lane] = u64::from(value);
                } else {
                    self.words[special.reg as usize].0[lane] = value;
                }
            }
        }
        if !entry.tracked.is_empty() {
            for (written, size) in
                self.written
                    .iter_mut()
                    .zip([entry.preds, entry.words, entry.doubles])
            {
                written.clear();
                written.resize(usize::from(size), u32::MAX);
            }
            for (file, reg) in &entry.tracked {
                self.written[*file as usize][*reg as usize] = 0;
            }
        }
        let first = self.index * 32;
        let count = (geometry.threads() - first).min(32);
        self.live = u32::MAX >> (32 - count);
        self.active = self.live;
        self.pc = 0;
        self.others.clear();
        self.waiting.clear();
        self.switch_at = u32::MAX;
        self.forced = false;
        self.copies.reset();
    }

    fn special(&self, kind: SpecialKind, lane: u32, geometry: &Geometry) -> u32 {
        let thread = self.index * 32 + lane;
        let [x, y, _] = geometry.block;
        match kind {
            SpecialKind::Tid(0) => thread % x,
            SpecialKind::Tid(1) => thread / x % y,
            SpecialKind::Tid(_) => thread / x / y,
            SpecialKind::Ntid(axis) => geometry.block[usize::from(axis)],
            SpecialKind::Ctaid(axis) => geometry.index[usize::from(axis)],
            SpecialKind::Nctaid(axis) => geometry.grid[usize::from(axis)],
            SpecialKind::LaneId => lane,
            SpecialKind::WarpId => self.index,
            SpecialKind::WarpCount => geometry.threads().div_ceil(32),
            SpecialKind::LaneMaskEq => 1 << lane,
            SpecialKind::LaneMaskLt => (1 << lane) - 1,
            SpecialKind::LaneMaskLe => u32::MAX >> (31 - lane),
            SpecialKind::LaneMaskGt => u32::MAX << lane << 1,
            SpecialKind::LaneMaskGe => u32::MAX << lane,
            SpecialKind::SmId => 0,
            SpecialKind::SmCount => 1,
            SpecialKind::GridId => 1,
            SpecialKind::DynamicShared => geometry.dynamic_shared,
            SpecialKind::TotalShared => geometry.total_shared,
        }
    }

    /// Whether every thread has exited.
    pub(super) const fn done(&self) -> bool {
        self.live == 0
    }

    fn note_switch(&mut self) {
        self.switch_at = self
            .others
            .iter()
            .map(|group| group.pc)
            .min()
            .unwrap_or(u32::MAX);
    }

    /// Splits the active lanes: `taken` goes to `target`, the rest to the next instruction.
    pub(super) fn diverge(&mut self, taken: u32, target: u32) {
        let next = self.pc + 1;
        let (low, high) = if target < next {
            ((target, taken), (next, self.active & !taken))
        } else {
            ((next, self.active & !taken), (target, taken))
        };
        self.others.push(Group {
            pc: high.0,
            mask: high.1,
            parked: false,
        });
        (self.pc, self.active) = low;
        self.reschedule();
    }

    /// Joins groups at the same instruction and picks the lowest program counter to run.
    ///
    /// Compilers lay code out so that the join of a branch lies behind its arms: running the lowest first brings lanes
    /// together where the hardware does. Where it does not, `.sync` instructions park their lanes until the rest comes.
    pub(super) fn reschedule(&mut self) {
        if self.active != 0 {
            self.others.push(Group {
                pc: self.pc,
                mask: self.active,
                parked: false,
            });
            self.active = 0;
        }
        // Join.
        self.others.sort_unstable_by_key(|group| group.pc);
        let mut joined: Vec<Group> = Vec::with_capacity(self.others.len());
        for group in self.others.drain(..) {
            match joined.last_mut() {
                // An arrival wakes the parked lanes: they look again whether all are there.
                Some(last) if last.pc == group.pc => {
                    last.mask |= group.mask;
                    last.parked &= group.parked;
                }
                _ => joined.push(group),
            }
        }
        self.others = joined;
        if let Some(at) = self.others.iter().position(|group| !group.parked) {
            let group = self.others.remove(at);
            self.pc = group.pc;
            self.active = group.mask;
        }
        self.note_switch();
    }

    /// Takes the active lanes out of execution.
    pub(super) fn park(&mut self) {
        self.others.push(Group {
            pc: self.pc,
            mask: self.active,
            parked: true,
        });
        self.active = 0;
        self.reschedule();
    }

    /// Lets the first parked group run although lanes are missing.
    pub(super) fn force(&mut self) {
        if let Some(group) = self.others.first_mut() {
            group.parked = false;
            self.forced = true;
        }
        self.reschedule();
    }

    /// These of the active lanes end.
    pub(super) fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.active &= !mask;
        // Parked lanes may have waited for these.
        for group in &mut self.others {
            group.parked = false;
        }
        if self.active != 0 {
            self.pc += 1;
        }
        if self.active == 0 || self.pc >= self.switch_at {
            self.reschedule();
        }
    }

    /// Lanes that a `.sync` instruction names, that live, and that are elsewhere in the warp.
    pub(super) const fn missing(&self, members: u32) -> u32 {
        members & self.live & !self.active
    }
}

/// Writes the lanes of `mask` of a predicate.
#[inline(always)]
pub(super) fn set_pred(warp: &mut Warp, d: Reg, value: u32, mask: u32) {
    if d != NONE {
        let pred = &mut warp.preds[d as usize];
        *pred = *pred & !mask | value & mask;
    }
}

/// Stores a plane unless the destination is `_`.
#[inline(always)]
pub(super) fn set_word(warp: &mut Warp, d: Reg, value: &[u32; 32], mask: u32) {
    if d != NONE {
        put(&mut warp.words[d as usize].0, value, mask);
    }
}
