//! Atomic operations on global and shared memory, one lane after the other.

use super::context::{Context, GlobalUse, SharedUse};
use super::judge::{Request, by_space, sectors_of};
use super::lanes::lanes;
use super::pattern::resolve;
use super::warp::Warp;
use crate::check::Party;
use crate::lower::op::{Address, Atomic, NONE, Reg, Space};
use crate::memory::Allocation;
use crate::parse::ast::Ty;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

/// Serialises 64-bit atomics between blocks: memory is made of 32-bit words.
static WIDE: Mutex<()> = Mutex::new(());

/// The new value of an operation on `old`.
fn apply(op: Atomic, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
    let signed = |f: fn(i64, i64) -> i64| match ty {
        Ty::S32 => f(i64::from(old as i32), i64::from(b as i32)) as u64,
        _ => f(old as i64, b as i64) as u64,
    };
    match (op, ty) {
        (Atomic::Add, Ty::F32) => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(b as u32);
            u64::from(super::numeric::finish(sum, false, false))
        }
        (Atomic::Add, Ty::F64) => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        (Atomic::Add, _) => old.wrapping_add(b),
        (Atomic::Min, Ty::S32 | Ty::S64) => signed(i64::min),
        (Atomic::Max, Ty::S32 | Ty::S64) => signed(i64::max),
        (Atomic::Min, _) => old.min(b),
        (Atomic::Max, _) => old.max(b),
        (Atomic::And, _) => old & b,
        (Atomic::Or, _) => old | b,
        (Atomic::Xor, _) => old ^ b,
        (Atomic::Exch, _) => b,
        (Atomic::Cas, _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        (Atomic::Inc, _) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        (Atomic::Dec, _) => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
    }
}

/// One atomic instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtomicShape {
    pub(super) op: Atomic,
    pub(super) ty: Ty,
    pub(super) d: Reg,
    pub(super) b: Reg,
    pub(super) c: Reg,
}

impl AtomicShape {
    fn operand(self, warp: &Warp, reg: Reg, lane: usize) -> u64 {
        if reg == NONE {
            0
        } else if self.ty.bytes() == 8 {
            warp.doubles[reg as usize].0[lane]
        } else {
            u64::from(warp.words[reg as usize].0[lane])
        }
    }

    fn result(self, warp: &mut Warp, lane: usize, old: u64) {
        if self.d == NONE {
        } else if self.ty.bytes() == 8 {
            warp.doubles[self.d as usize].0[lane] = old;
        } else {
            warp.words[self.d as usize].0[lane] = old as u32;
        }
    }
}

impl Context<'_> {
    /// `atom` and `red`.
    pub(super) fn atomic(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        space: Space,
        shape: AtomicShape,
        address: Address,
    ) {
        let bytes = shape.ty.bytes();
        let addresses = resolve(self.fast, &warp.words, &warp.doubles, address, mask, bytes);
        let request = Request {
            warp: warp.index,
            pc: warp.pc,
            addresses: &addresses,
            bytes,
        };
        by_space(space, request, mask, |space, request, mask| match space {
            Space::Shared => self.atomic_shared(warp, request, mask, shape),
            _ => self.atomic_global(warp, request, mask, shape),
        });
    }

    fn atomic_global(
        &mut self,
        warp: &mut Warp,
        request: Request<'_>,
        mask: u32,
        shape: AtomicShape,
    ) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        self.by_region(request, mask, |context, region, allocation, mask| {
            if context.count_traffic {
                let total = bytes * mask.count_ones();
                context.count_global(
                    pc,
                    GlobalUse::Atomic,
                    region,
                    sectors_of(request, mask),
                    total,
                );
            }
            if context.checks.uninitialised {
                context.check_written(request, allocation, mask);
            }
            for lane in lanes(mask) {
                let (b, c) = (
                    shape.operand(warp, shape.b, lane),
                    shape.operand(warp, shape.c, lane),
                );
                let old = update(
                    allocation,
                    addresses.of[lane] - allocation.base,
                    shape,
                    b,
                    c,
                );
                shape.result(warp, lane, old);
            }
            Self::mark_written(allocation, request, mask);
        });
    }

    fn atomic_shared(
        &mut self,
        warp: &mut Warp,
        request: Request<'_>,
        mask: u32,
        shape: AtomicShape,
    ) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        let mask = self.in_shared(request, mask);
        self.count_wavefronts(request, SharedUse::Atomic, mask);
        for lane in lanes(mask) {
            let address = addresses.of[lane] as usize;
            let at = address / 4;
            if self.shadowed
                && let Some(conflict) = self.shadow.update(address, bytes, warp.index)
            {
                let who = Party {
                    warp: warp.index,
                    lane: lane as u32,
                };
                self.report_conflict(conflict, who, pc, address as u32, "atomic");
            }
            let (b, c) = (
                shape.operand(warp, shape.b, lane),
                shape.operand(warp, shape.c, lane),
            );
            let mut old = u64::from(self.shared[at]);
            if bytes == 8 {
                old |= u64::from(self.shared[at + 1]) << 32;
            }
            let new = apply(shape.op, shape.ty, old, b, c);
            self.shared[at] = new as u32;
            if bytes == 8 {
                self.shared[at + 1] = (new >> 32) as u32;
            }
            shape.result(warp, lane, old);
        }
    }
}

/// One atomic update of global memory; gives the old value.
fn update(allocation: &Allocation, offset: u64, shape: AtomicShape, b: u64, c: u64) -> u64 {
    let words = allocation.words();
    let at = (offset / 4) as usize;
    if shape.ty.bytes() == 4 {
        let new = |old: u32| Some(apply(shape.op, shape.ty, u64::from(old), b, c) as u32);
        return u64::from(
            words[at]
                .fetch_update(Relaxed, Relaxed, new)
                .unwrap_or_else(|old| old),
        );
    }
    let _alone = WIDE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let old = u64::from(words[at].load(Relaxed)) | u64::from(words[at + 1].load(Relaxed)) << 32;
    let new = apply(shape.op, shape.ty, old, b, c);
    words[at].store(new as u32, Relaxed);
    words[at + 1].store((new >> 32) as u32, Relaxed);
    old
}
