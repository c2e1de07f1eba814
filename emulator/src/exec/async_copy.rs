//! `cp.async` and the matrix loads from shared memory.
//!
//! The data moves at the issue, which keeps the interpreter simple; what a thread may see of it is the shadow's
//! business: until the wait that covers the copy its bytes are in flight.

use super::context::{Context, GlobalUse, SharedUse};
use super::judge::{Request, sectors_of, select};
use super::lanes::{FULL, Words, lanes};
use super::matrix::transpose;
use super::pattern::{resolve, summarise};
use super::warp::Warp;
use crate::check::{ALL_LANES, LAST_GROUP, Party};
use crate::lower::op::{Address, NONE, Reg};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// How far each lane of a warp is with its groups of copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Groups that each lane has committed: the number of the group that its next copy belongs to.
    committed: [u32; 32],
    /// Groups that each lane has waited for.
    landed: [u32; 32],
    /// Where the last copy read from.
    last: u64,
}

impl Copies {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Context<'_> {
    /// `cp.async.commit_group`.
    pub(super) fn async_commit(&mut self, warp: &mut Warp, mask: u32) {
        let Copies {
            committed, landed, ..
        } = &mut warp.copies;
        let mut most = 0;
        for lane in lanes(mask) {
            committed[lane] += 1;
            most = most.max(committed[lane]);
        }
        if most >= LAST_GROUP {
            *committed = [0; 32];
            *landed = [0; 32];
            if self.shadowed {
                self.shadow.restart_groups(warp.index);
            }
        }
    }

    /// `cp.async.wait_group` and `wait_all`: the copies that it covers land.
    pub(super) fn async_wait(&mut self, warp: &mut Warp, mask: u32, pending: u32, all: bool) {
        if all {
            self.async_commit(warp, mask);
        }
        let Copies {
            committed, landed, ..
        } = &mut warp.copies;
        let mut rest = mask;
        while rest != 0 {
            // Lanes that are equally far land together; nearly always that is all of them.
            let first = rest.trailing_zeros() as usize;
            let (from, to) = (landed[first], committed[first].saturating_sub(pending));
            let alike = select(rest, |lane| {
                landed[lane] == from && committed[lane] == committed[first]
            });
            for group in from..to {
                if self.shadowed {
                    self.shadow.land(warp.index, group, alike);
                }
            }
            for lane in lanes(alike) {
                landed[lane] = from.max(to);
            }
            rest &= !alike;
        }
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
        let (index, pc, bytes) = (warp.index, warp.pc, u32::from(size));
        let to = resolve(self.fast, &warp.words, &warp.doubles, to, mask, bytes);
        let written = Request {
            warp: index,
            pc,
            addresses: &to,
            bytes,
        };
        let mask = self.in_shared(written, mask);
        if mask == 0 {
            return;
        }
        let count = usize::from(size / 4);
        let at = to.of.map(|address| (address / 4) as usize);
        self.count_wavefronts(written, SharedUse::Async, mask);
        // A copy of no bytes reads nothing: its address may point anywhere.
        let (mut full, mut partial) = (mask, 0);
        if src != NONE {
            let wanted = &warp.words[src as usize].0;
            full = select(mask, |lane| wanted[lane] >= bytes);
            partial = select(mask & !full, |lane| wanted[lane] > 0);
            for lane in lanes(mask & !full) {
                self.shared[at[lane]..at[lane] + count].fill(0);
            }
        }
        if full != 0 {
            let from = resolve(self.fast, &warp.words, &warp.doubles, from, full, bytes);
            let read = Request {
                warp: index,
                pc,
                addresses: &from,
                bytes,
            };
            // Copies step through a tile: the next one probably reads as far from here as this one from the last.
            let step = from.min.wrapping_sub(warp.copies.last).cast_signed() / 4;
            warp.copies.last = from.min;
            self.by_region(read, full, |context, region, allocation, mask| {
                if context.count_traffic {
                    let total = bytes * mask.count_ones();
                    context.count_global(
                        pc,
                        GlobalUse::Async,
                        region,
                        sectors_of(read, mask),
                        total,
                    );
                }
                if context.checks.uninitialised {
                    context.check_written(read, allocation, mask);
                }
                let words = allocation.words();
                let start = |lane: usize| ((from.of[lane] - allocation.base) / 4) as usize;
                if bytes == 16 && mask == FULL {
                    // A counted loop: the usual case is worth its own code.
                    for lane in 0..32 {
                        let start = start(lane);
                        copy16(
                            &words[start..start + 4],
                            &mut context.shared[at[lane]..at[lane] + 4],
                        );
                    }
                    for lane in (0..32).step_by(4) {
                        prefetch(words.get(start(lane).wrapping_add_signed(step as isize)));
                    }
                    return;
                }
                for lane in lanes(mask) {
                    let start = start(lane);
                    let to = &mut context.shared[at[lane]..at[lane] + count];
                    for (to, from) in to.iter_mut().zip(&words[start..start + count]) {
                        *to = from.load(Relaxed);
                    }
                }
            });
        }
        for lane in lanes(partial) {
            self.partial_copy(warp, lane, from, src, at[lane]);
        }
        if self.shadowed {
            self.note_copies(warp, written, mask);
        }
    }

    /// Tells the shadow of the bytes that are now in flight.
    fn note_copies(&mut self, warp: &Warp, written: Request<'_>, mask: u32) {
        let Request {
            warp: index,
            pc,
            addresses,
            bytes,
        } = written;
        let groups = &warp.copies.committed;
        let found = if bytes == 16 {
            self.shadow.copy_rows(&addresses.of, mask, index, groups)
        } else {
            let mut found = Vec::new();
            for lane in lanes(mask) {
                let who = Party {
                    warp: index,
                    lane: lane as u32,
                };
                let conflict =
                    self.shadow
                        .copy(addresses.of[lane] as usize, bytes, who, groups[lane]);
                found.extend(conflict.map(|conflict| (lane as u32, conflict)));
            }
            found
        };
        for (lane, conflict) in found {
            let who = Party { warp: index, lane };
            self.report_conflict(
                conflict,
                who,
                pc,
                addresses.of[lane as usize] as u32,
                "cp.async write",
            );
        }
    }

    /// A copy of fewer bytes than its size, one byte at a time.
    fn partial_copy(&mut self, warp: &Warp, lane: usize, from: Address, src: Reg, at: usize) {
        let pc = warp.pc;
        let start = resolve(self.fast, &warp.words, &warp.doubles, from, 1 << lane, 1).min;
        for byte in 0..warp.words[src as usize].0[lane] {
            let one = summarise([start.wrapping_add(u64::from(byte)); 32], 1);
            let read = Request {
                warp: warp.index,
                pc,
                addresses: &one,
                bytes: 1,
            };
            self.by_region(read, 1 << lane, |context, region, allocation, mask| {
                if context.count_traffic {
                    context.count_global(pc, GlobalUse::Async, region, u32::from(byte == 0), 1);
                }
                if context.checks.uninitialised {
                    context.check_written(read, allocation, mask);
                }
                let mut value = [0];
                allocation.read(one.min - allocation.base, &mut value);
                context.shared[at + byte as usize / 4] |= u32::from(value[0]) << (8 * (byte % 4));
            });
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
        let (index, pc) = (warp.index, warp.pc);
        let count = usize::from(count);
        let wanted = u32::MAX >> (32 - 8 * count);
        let rows = resolve(self.fast, &warp.words, &warp.doubles, address, wanted, 16);
        let request = Request {
            warp: index,
            pc,
            addresses: &rows,
            bytes: 16,
        };
        let inside = self.in_shared(request, wanted);
        self.count_wavefronts(request, SharedUse::Load, inside);
        if self.shadowed {
            // Which lane receives which word follows from the layout; the row is read by the warp as one.
            for (lane, conflict) in self.shadow.read_rows(&rows.of, inside, index) {
                let who = Party {
                    warp: index,
                    lane: ALL_LANES,
                };
                self.report_conflict(
                    conflict,
                    who,
                    pc,
                    rows.of[lane as usize] as u32,
                    "ldmatrix read",
                );
            }
        }
        for (matrix, d) in d.into_iter().enumerate().take(count) {
            let mut plane = Words::ZERO;
            let (to, _) = plane.0.as_chunks_mut::<4>();
            for (row, to) in to.iter_mut().enumerate() {
                let lane = 8 * matrix + row;
                if inside >> lane & 1 != 0 {
                    let at = (rows.of[lane] / 4) as usize;
                    to.copy_from_slice(&self.shared[at..at + 4]);
                }
            }
            if trans {
                plane.0 = transpose::<AVX2>(&plane.0);
            }
            if d != NONE {
                warp.words[d as usize] = plane;
            }
        }
    }
}

/// Asks for the cache line of a word: large caches are read once, from memory that is far.
#[inline(always)]
fn prefetch(word: Option<&AtomicU32>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = word {
        // SAFETY: prefetching has no effect that a program can see, and the address is that of a live word.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(word).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// Copies four words of global memory.
#[inline(always)]
fn copy16(from: &[AtomicU32], to: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if from.len() == 4 && to.len() == 4 {
        // SAFETY: the lengths were just checked. `to` is borrowed exclusively. `from` may be written by another thread
        // at the same time: the assembly is one 16-byte load, which x86 performs as whole aligned words (the slice is
        // aligned to 4), that is, as four relaxed atomic loads.
        unsafe {
            std::arch::asm!(
                "movups {value}, [{from}]",
                "movups [{to}], {value}",
                value = out(xmm_reg) _,
                from = in(reg) from.as_ptr(),
                to = in(reg) to.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        return;
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Relaxed);
    }
}
