//! `cp.async` and the matrix loads from shared memory.
//!
//! The data moves at the issue, which keeps the interpreter simple; what a thread may see of it is the shadow's
//! business: until the wait that covers the copy its bytes are in flight.

use super::access::addresses;
use super::context::{Context, GlobalUse, SharedUse};
use super::lanes::{Words, lanes};
use super::matrix::transpose;
use super::warp::Warp;
use crate::check::{ALL_LANES, Party};
use crate::count::{phase, sectors, wavefronts};
use crate::lower::op::{Address, NONE, Reg};
use std::sync::atomic::Ordering::Relaxed;

/// The copies that a warp has in flight.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Groups committed by each lane: the number of the group that the next copy belongs to.
    committed: Vec<u32>,
    flying: Vec<Flying>,
}

#[derive(Debug)]
struct Flying {
    group: u32,
    mask: u32,
    words: u8,
    /// First word of each lane.
    at: [u32; 32],
}

impl Copies {
    pub(super) fn reset(&mut self) {
        self.committed.clear();
        self.committed.resize(32, 0);
        self.flying.clear();
    }

    /// Notes an issue; lanes that have committed different numbers of groups are noted apart.
    fn issue(&mut self, mask: u32, words: u8, at: &[u32; 32]) {
        let mut rest = mask;
        while rest != 0 {
            let group = self.committed[rest.trailing_zeros() as usize];
            let same = lanes(rest)
                .filter(|lane| self.committed[*lane] == group)
                .fold(0u32, |mask, lane| mask | 1 << lane);
            self.flying.push(Flying {
                group,
                mask: same,
                words,
                at: *at,
            });
            rest &= !same;
        }
    }

    pub(super) fn commit(&mut self, mask: u32) {
        for lane in lanes(mask) {
            self.committed[lane] += 1;
        }
    }
}

impl Context<'_> {
    /// `cp.async.wait_group` and `wait_all`: the copies that it covers land.
    pub(super) fn async_wait(&mut self, warp: &mut Warp, mask: u32, pending: u32, all: bool) {
        let Copies { committed, flying } = &mut warp.copies;
        let index = warp.index;
        if all {
            for lane in lanes(mask) {
                committed[lane] += 1;
            }
        }
        flying.retain_mut(|copy| {
            let covered = |lane: usize| copy.group < committed[lane].saturating_sub(pending);
            let done = lanes(copy.mask & mask)
                .filter(|lane| covered(*lane))
                .fold(0u32, |mask, lane| mask | 1 << lane);
            if self.shadowed {
                for lane in lanes(done) {
                    let who = Party {
                        warp: index,
                        lane: lane as u32,
                    };
                    self.shadow
                        .land(copy.at[lane] as usize, usize::from(copy.words), who);
                }
            }
            copy.mask &= !done;
            copy.mask != 0
        });
    }

    /// `cp.async`: reads `src` bytes of global memory, or all, and writes `size` bytes, zero behind them.
    pub(super) fn async_copy(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        size: u8,
        to: Address,
        from: Address,
        src: Reg,
    ) {
        let (to, from) = (addresses(warp, to), addresses(warp, from));
        let (index, pc, bytes) = (warp.index, warp.pc, u32::from(size));
        let mask = self.in_shared(index, pc, &to, mask, bytes);
        if mask == 0 {
            return;
        }
        let count = usize::from(size / 4);
        let mut at = [0u32; 32];
        for lane in 0..32 {
            at[lane] = (to[lane] / 4) as u32;
        }
        if self.count_traffic {
            let (wavefronts, minimum) = wavefronts(&to.map(|address| address as u32), mask, bytes);
            self.count_shared(pc, SharedUse::Async, wavefronts, minimum);
        }
        // A copy of no bytes reads nothing: its address may point anywhere.
        let (mut full, mut partial) = (mask, 0);
        if src != NONE {
            let wanted = &warp.words[src as usize].0;
            for lane in lanes(mask) {
                let wanted = wanted[lane];
                if wanted < bytes {
                    full &= !(1 << lane);
                    self.shared[at[lane] as usize..at[lane] as usize + count].fill(0);
                    if wanted > 0 {
                        partial |= 1 << lane;
                    }
                }
            }
        }
        self.by_region(
            index,
            pc,
            &from,
            full,
            bytes,
            |context, region, allocation, mask| {
                if context.count_traffic {
                    context.count_global(
                        pc,
                        GlobalUse::Async,
                        region,
                        sectors(&from, mask),
                        bytes * mask.count_ones(),
                    );
                }
                if context.checks.uninitialised {
                    context.check_written(index, pc, allocation, &from, mask, bytes);
                }
                let words = allocation.words();
                for lane in lanes(mask) {
                    let start = ((from[lane] - allocation.base) / 4) as usize;
                    let to = at[lane] as usize;
                    for (to, from) in context.shared[to..to + count]
                        .iter_mut()
                        .zip(&words[start..start + count])
                    {
                        *to = from.load(Relaxed);
                    }
                }
            },
        );
        for lane in lanes(partial) {
            self.partial_copy(warp, lane, &from, src, at[lane] as usize);
        }
        if self.shadowed {
            for lane in lanes(mask) {
                let who = Party {
                    warp: index,
                    lane: lane as u32,
                };
                if let Some(conflict) = self.shadow.write(at[lane] as usize, count, who, true) {
                    self.report_conflict(conflict, who, pc, to[lane] as u32, "cp.async write");
                }
            }
        }
        warp.copies.issue(mask, size / 4, &at);
    }

    /// A copy of fewer bytes than its size, one byte at a time.
    fn partial_copy(&mut self, warp: &Warp, lane: usize, from: &[u64; 32], src: Reg, at: usize) {
        let (index, pc) = (warp.index, warp.pc);
        for byte in 0..warp.words[src as usize].0[lane] {
            let mut one = *from;
            one[lane] += u64::from(byte);
            self.by_region(
                index,
                pc,
                &one,
                1 << lane,
                1,
                |context, region, allocation, mask| {
                    if context.count_traffic {
                        context.count_global(pc, GlobalUse::Async, region, u32::from(byte == 0), 1);
                    }
                    if context.checks.uninitialised {
                        context.check_written(index, pc, allocation, &one, mask, 1);
                    }
                    let mut value = [0];
                    allocation.read(one[lane] - allocation.base, &mut value);
                    context.shared[at + byte as usize / 4] |=
                        u32::from(value[0]) << (8 * (byte % 4));
                },
            );
        }
    }

    /// `ldmatrix`: lane 8m + r gives the address of row r of matrix m.
    pub(super) fn load_matrix<const AVX2: bool>(
        &mut self,
        warp: &mut Warp,
        count: u8,
        trans: bool,
        d: [Reg; 4],
        address: Address,
    ) {
        let rows = addresses(warp, address);
        let (index, pc) = (warp.index, warp.pc);
        let count = usize::from(count);
        let wanted = u32::MAX >> (32 - 8 * count);
        let inside = self.in_shared(index, pc, &rows, wanted, 16);
        if self.count_traffic {
            let low = rows.map(|address| address as u32);
            let (mut total, mut minimum) = (0, 0);
            for matrix in 0..count {
                let active = inside >> (8 * matrix) & 0xFF;
                if active != 0 {
                    total += phase(&low[8 * matrix..8 * matrix + 8], active, 4);
                    minimum += 1;
                }
            }
            self.count_shared(pc, SharedUse::Load, total, minimum);
        }
        if self.shadowed {
            // Which lane receives which word follows from the layout; the row is read by the warp as one.
            let who = Party {
                warp: index,
                lane: ALL_LANES,
            };
            for lane in lanes(inside) {
                if let Some(conflict) = self.shadow.read((rows[lane] / 4) as usize, 4, who) {
                    self.report_conflict(conflict, who, pc, rows[lane] as u32, "ldmatrix read");
                }
            }
        }
        for matrix in 0..count {
            let mut plane = Words::ZERO;
            let (to, _) = plane.0.as_chunks_mut::<4>();
            for (row, to) in to.iter_mut().enumerate() {
                let lane = 8 * matrix + row;
                if inside >> lane & 1 != 0 {
                    let at = (rows[lane] / 4) as usize;
                    to.copy_from_slice(&self.shared[at..at + 4]);
                }
            }
            if trans {
                plane.0 = transpose::<AVX2>(&plane.0);
            }
            if d[matrix] != NONE {
                warp.words[d[matrix] as usize] = plane;
            }
        }
    }
}
