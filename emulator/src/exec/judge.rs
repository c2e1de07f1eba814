//! Judges an access for all lanes together: aligned, in bounds, in a live allocation.
//!
//! Lanes that fail are reported and drop out; what is left is safe to perform.

use super::context::{Context, SharedUse};
use super::lanes::{FULL, lanes};
use super::pattern::{Addresses, free_of_conflicts, summarise};
use crate::check::{Details, FindingKind};
use crate::count::{sectors, wavefronts};
use crate::lower::op::Space;
use crate::memory::{Allocation, CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};

/// Who accesses what: a warp, at an instruction, `bytes` bytes a lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) warp: u32,
    pub(super) pc: u32,
    pub(super) addresses: &'a Addresses,
    pub(super) bytes: u32,
}

/// The space a generic address points into.
const fn space_of(address: u64) -> Space {
    match address & !0xFFFF_FFFF {
        SHARED_WINDOW => Space::Shared,
        LOCAL_WINDOW => Space::Local,
        PARAM_WINDOW => Space::Param,
        CONST_WINDOW => Space::Const,
        _ => Space::Global,
    }
}

/// Whether `isspacep` holds.
pub(super) fn in_space(address: u64, space: Space) -> bool {
    space_of(address) == space
}

/// Splits generic addresses by space; calls `f` once for each space with the lanes and their addresses there.
#[inline(always)]
pub(super) fn by_space(
    space: Space,
    request: Request<'_>,
    mask: u32,
    mut f: impl FnMut(Space, Request<'_>, u32),
) {
    let Request {
        addresses, bytes, ..
    } = request;
    let plain = |address| address < SHARED_WINDOW;
    if space != Space::Generic {
        f(space, request, mask);
        return;
    }
    if plain(addresses.max) {
        f(Space::Global, request, mask);
        return;
    }
    let mut rest = mask;
    while rest != 0 {
        let first = addresses.of[rest.trailing_zeros() as usize];
        let here = space_of(first);
        let some = select(rest, |lane| space_of(addresses.of[lane]) == here);
        let keep = if here == Space::Global {
            u64::MAX
        } else {
            0xFFFF_FFFF
        };
        let mut of = [first & keep; 32];
        for lane in lanes(some) {
            of[lane] = addresses.of[lane] & keep;
        }
        f(
            here,
            Request {
                addresses: &summarise(of, bytes),
                ..request
            },
            some,
        );
        rest &= !some;
    }
}

/// The lanes of a mask for which `f` holds.
#[inline(always)]
pub(super) fn select(mask: u32, f: impl Fn(usize) -> bool) -> u32 {
    lanes(mask)
        .filter(|lane| f(*lane))
        .fold(0, |all, lane| all | 1 << lane)
}

/// Sectors of an access of these lanes.
#[inline(always)]
pub(super) fn sectors_of(request: Request<'_>, mask: u32) -> u32 {
    let Request {
        addresses, bytes, ..
    } = request;
    if addresses.min == addresses.max {
        return 1;
    }
    if addresses.contiguous && mask == FULL {
        return ((addresses.max + u64::from(bytes) - 1) / 32 - addresses.min / 32 + 1) as u32;
    }
    sectors(&addresses.of, mask)
}

impl Context<'_> {
    /// Drops misaligned lanes.
    #[inline(always)]
    pub(super) fn aligned(&mut self, request: Request<'_>, mask: u32) -> u32 {
        let Request {
            addresses, bytes, ..
        } = request;
        if addresses.any & u64::from(bytes - 1) == 0 {
            return mask;
        }
        self.drop_misaligned(request, mask)
    }

    #[cold]
    fn drop_misaligned(&mut self, request: Request<'_>, mask: u32) -> u32 {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        let bad = select(mask, |lane| addresses.of[lane] & u64::from(bytes - 1) != 0);
        if self.checks.alignment {
            for lane in lanes(bad) {
                let address = addresses.of[lane];
                self.report(FindingKind::Misaligned, warp, lane as u32, pc, || Details {
                    address: Some(address),
                    allocation: None,
                    message: format!(
                        "address {address:#x} is no multiple of the {bytes} bytes accessed"
                    ),
                });
            }
        }
        mask & !bad
    }

    /// The region that holds an access, by a hint first.
    #[inline]
    fn region_at(&mut self, pc: u32, address: u64, bytes: u64) -> Option<u32> {
        let holds = |index: u32| {
            let region = self.env.regions.get(index as usize)?;
            (address >= region.base && address.saturating_add(bytes) <= region.end).then_some(index)
        };
        let hint = self.hints[pc as usize];
        if let Some(index) = holds(hint) {
            return Some(index);
        }
        let after = self
            .env
            .regions
            .partition_point(|region| region.base <= address);
        let index = holds(u32::try_from(after.checked_sub(1)?).ok()?)?;
        self.hints[pc as usize] = index;
        Some(index)
    }

    /// Splits lanes by live allocation and calls `f` for each; lanes outside are reported and left out.
    #[inline(always)]
    pub(super) fn by_region(
        &mut self,
        request: Request<'_>,
        mask: u32,
        mut f: impl FnMut(&mut Self, u32, &Allocation, u32),
    ) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        let env = self.env;
        let mut rest = self.aligned(request, mask);
        // The usual case: all lanes in one allocation.
        if let Some(index) = self.region_at(
            pc,
            addresses.min,
            (addresses.max - addresses.min).saturating_add(u64::from(bytes)),
        ) && let Some(live) = &env.regions[index as usize].live
            && rest != 0
        {
            f(self, index, live, rest);
            return;
        }
        let of = &addresses.of;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let Some(index) = self.region_at(pc, of[first], u64::from(bytes)) else {
                self.outside(request, first);
                rest &= rest - 1;
                continue;
            };
            let region = &env.regions[index as usize];
            let (base, last) = (region.base, region.end - u64::from(bytes));
            let inside = select(rest, |lane| of[lane] >= base && of[lane] <= last);
            match &region.live {
                Some(live) => f(self, index, live, inside),
                None => {
                    for lane in lanes(inside) {
                        self.freed(request, lane, index);
                    }
                }
            }
            rest &= !inside;
        }
    }

    #[cold]
    fn outside(&mut self, request: Request<'_>, lane: usize) {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        let (address, lane) = (addresses.of[lane], lane as u32);
        if !self.checks.bounds {
            return;
        }
        let env = self.env;
        let after = env.regions.partition_point(|region| region.base <= address);
        let below = after
            .checked_sub(1)
            .and_then(|index| env.regions.get(index));
        let above = env.regions.get(after);
        self.report(FindingKind::OutOfBounds, warp, lane, pc, || {
            // The nearer neighbour is the likelier culprit.
            let past = below.map(|region| (address.saturating_sub(region.end), region));
            let before = above.map(|region| (region.base - address, region));
            let near = match (past, before) {
                (Some(past), Some(before)) if before.0 < past.0 => {
                    Some((before, "before the start"))
                }
                (Some(past), _) => Some((past, "past the end")),
                (None, Some(before)) => Some((before, "before the start")),
                (None, None) => None,
            };
            let place = near.map_or_else(
                || "in an empty memory".to_owned(),
                |((distance, region), side)| {
                    format!(
                        "{distance} bytes {side} of `{}` ({} bytes)",
                        region.name,
                        region.end - region.base
                    )
                },
            );
            Details {
                address: Some(address),
                allocation: near.map(|((_, region), _)| region.name.to_string()),
                message: format!("{bytes} bytes at {address:#x} lie {place}"),
            }
        });
    }

    #[cold]
    fn freed(&mut self, request: Request<'_>, lane: usize, index: u32) {
        let (address, lane) = (request.addresses.of[lane], lane as u32);
        let Request { warp, pc, .. } = request;
        if !self.checks.bounds {
            return;
        }
        let name = self.env.regions[index as usize].name.clone();
        self.report(FindingKind::UseAfterFree, warp, lane, pc, || Details {
            address: Some(address),
            allocation: Some(name.to_string()),
            message: format!("{address:#x} is in `{name}`, which was freed"),
        });
    }

    /// Drops lanes outside shared memory.
    #[inline(always)]
    pub(super) fn in_shared(&mut self, request: Request<'_>, mask: u32) -> u32 {
        let Request {
            addresses, bytes, ..
        } = request;
        let mask = self.aligned(request, mask);
        let size = u64::from(self.env.shared_bytes);
        if addresses.max.saturating_add(u64::from(bytes)) <= size {
            return mask;
        }
        self.drop_outside(request, mask, size, "shared memory")
    }

    /// Counts a shared access of these lanes.
    #[inline(always)]
    pub(super) fn count_wavefronts(&mut self, request: Request<'_>, purpose: SharedUse, mask: u32) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        if !self.count_traffic || mask == 0 {
            return;
        }
        if let Some(phases) = free_of_conflicts(self.fast, &addresses.of, mask, bytes) {
            self.count_shared(pc, purpose, phases, phases);
            return;
        }
        let mut low = [0; 32];
        for lane in 0..32 {
            low[lane] = addresses.of[lane] as u32;
        }
        let (wavefronts, minimum) = wavefronts(&low, mask, bytes);
        self.count_shared(pc, purpose, wavefronts, minimum);
    }

    #[cold]
    pub(super) fn drop_outside(
        &mut self,
        request: Request<'_>,
        mask: u32,
        size: u64,
        space: &'static str,
    ) -> u32 {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        let mut kept = 0;
        for lane in lanes(mask) {
            let address = addresses.of[lane];
            if address
                .checked_add(u64::from(bytes))
                .is_some_and(|end| end <= size)
            {
                kept |= 1 << lane;
            } else if self.checks.bounds {
                self.report(FindingKind::OutOfBounds, warp, lane as u32, pc, || {
                    Details {
                        address: Some(address),
                        allocation: None,
                        message: format!(
                            "{bytes} bytes at {address:#x} of {space}, which has {size} bytes"
                        ),
                    }
                });
            }
        }
        kept
    }
}
