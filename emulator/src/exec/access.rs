//! Loads and stores.
//!
//! Every access is judged first, for all lanes together where they fall into one allocation; lanes that fail drop out
//! and read 0. What is left is in bounds and aligned, and moves whole words.

use super::context::{Context, GlobalUse, SharedUse};
use super::lanes::{FULL, lanes, put};
use super::pattern::{Addresses, free_of_conflicts, resolve, summarise};
use super::warp::Warp;
use crate::check::{Details, FindingKind, Party};
use crate::count::{sectors, wavefronts};
use crate::lower::op::{Address, NONE, Reg, Space};
use crate::memory::{Allocation, CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::parse::ast::Ty;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// One load or store instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) ty: Ty,
    pub(super) count: u8,
    /// Data in 64-bit registers.
    pub(super) wide: bool,
    pub(super) regs: [Reg; 4],
}

impl Shape {
    pub(super) const fn bytes(self) -> u32 {
        self.ty.bytes() * self.count as u32
    }
}

/// Data of an access: up to four words a lane.
type Block = [[u32; 32]; 4];

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
    addresses: &Addresses,
    mask: u32,
    bytes: u32,
    mut f: impl FnMut(Space, &Addresses, u32),
) {
    if space != Space::Generic {
        f(space, addresses, mask);
        return;
    }
    if space_of(addresses.min) == Space::Global
        && space_of(addresses.max) == Space::Global
        && addresses.max < SHARED_WINDOW
    {
        f(Space::Global, addresses, mask);
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
        f(here, &summarise(of, bytes), some);
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
pub(super) fn sectors_of(addresses: &Addresses, mask: u32, bytes: u32) -> u32 {
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
    fn aligned(&mut self, warp: u32, pc: u32, addresses: &Addresses, mask: u32, bytes: u32) -> u32 {
        if addresses.any & u64::from(bytes - 1) == 0 {
            return mask;
        }
        self.drop_misaligned(warp, pc, addresses, mask, bytes)
    }

    #[cold]
    fn drop_misaligned(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) -> u32 {
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
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        mut f: impl FnMut(&mut Self, u32, &Allocation, u32),
    ) {
        let env = self.env;
        let mut rest = self.aligned(warp, pc, addresses, mask, bytes);
        // The usual case: all lanes in one allocation.
        if let Some(index) = self.region_at(
            pc,
            addresses.min,
            addresses.max - addresses.min + u64::from(bytes),
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
                self.outside(warp, pc, first as u32, of[first], bytes);
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
                        self.freed(warp, pc, lane as u32, of[lane], index);
                    }
                }
            }
            rest &= !inside;
        }
    }

    #[cold]
    fn outside(&mut self, warp: u32, pc: u32, lane: u32, address: u64, bytes: u32) {
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
    fn freed(&mut self, warp: u32, pc: u32, lane: u32, address: u64, index: u32) {
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

    /// Reports lanes that read bytes which nothing wrote.
    #[inline]
    pub(super) fn check_written(
        &mut self,
        warp: u32,
        pc: u32,
        allocation: &Allocation,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) {
        let written = allocation.written();
        let start = addresses.min - allocation.base;
        if addresses.contiguous && start % 32 == 0 && mask == FULL {
            // One run of whole shadow words.
            let at = (start / 32) as usize;
            let run = &written[at..at + bytes as usize];
            if run
                .iter()
                .fold(u32::MAX, |all, word| all & word.load(Relaxed))
                == u32::MAX
            {
                return;
            }
        }
        let low = u32::MAX >> (32 - bytes);
        let mut all = u32::MAX;
        for lane in lanes(mask) {
            let offset = addresses.of[lane] - allocation.base;
            all &= written[(offset / 32) as usize].load(Relaxed) >> (offset % 32);
        }
        if all & low != low {
            self.report_unwritten(warp, pc, allocation, addresses, mask, bytes);
        }
    }

    #[cold]
    fn report_unwritten(
        &mut self,
        warp: u32,
        pc: u32,
        allocation: &Allocation,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) {
        for lane in lanes(mask) {
            let address = addresses.of[lane];
            let offset = address - allocation.base;
            if allocation.is_written(offset, u64::from(bytes)) {
                continue;
            }
            let name: &Arc<str> = &allocation.name;
            self.report(
                FindingKind::UninitialisedMemory,
                warp,
                lane as u32,
                pc,
                || Details {
                    address: Some(address),
                    allocation: Some(name.to_string()),
                    message: format!(
                        "read of {bytes} bytes at offset {offset} of `{name}` that nothing wrote"
                    ),
                },
            );
        }
    }

    /// Marks the lanes' bytes as written.
    #[inline]
    pub(super) fn mark_written(
        allocation: &Allocation,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) {
        let written = allocation.written();
        let low = u32::MAX >> (32 - bytes);
        for lane in lanes(mask) {
            let offset = addresses.of[lane] - allocation.base;
            let word = &written[(offset / 32) as usize];
            let bits = low << (offset % 32);
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
        }
    }

    /// Drops lanes outside shared memory.
    #[inline(always)]
    pub(super) fn in_shared(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) -> u32 {
        let mask = self.aligned(warp, pc, addresses, mask, bytes);
        let size = u64::from(self.env.shared_bytes);
        if addresses.max.saturating_add(u64::from(bytes)) <= size {
            return mask;
        }
        self.drop_outside(warp, pc, addresses, mask, bytes, size, "shared memory")
    }

    /// Counts a shared access of these lanes.
    #[inline(always)]
    pub(super) fn count_wavefronts(
        &mut self,
        pc: u32,
        purpose: SharedUse,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) {
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
    #[allow(clippy::too_many_arguments)]
    fn drop_outside(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        size: u64,
        space: &'static str,
    ) -> u32 {
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

    /// `ld`.
    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        space: Space,
        shape: Shape,
        address: Address,
    ) {
        let bytes = shape.bytes();
        let addresses = resolve(self.fast, &warp.words, &warp.doubles, address, mask, bytes);
        let (index, pc, env) = (warp.index, warp.pc, self.env);
        let mut data: Block = [[0; 32]; 4];
        by_space(
            space,
            &addresses,
            mask,
            bytes,
            |space, addresses, mask| match space {
                Space::Shared => self.load_shared(index, pc, addresses, mask, bytes, &mut data),
                Space::Local => self.load_local(index, pc, addresses, mask, bytes, &mut data),
                Space::Param => {
                    self.load_image(index, pc, env.params, addresses, mask, bytes, &mut data)
                }
                Space::Const => {
                    self.load_image(index, pc, env.constants, addresses, mask, bytes, &mut data)
                }
                Space::Global | Space::Generic => {
                    self.load_global(index, pc, addresses, mask, bytes, &mut data)
                }
            },
        );
        distribute(warp, mask, shape, &data);
    }

    /// `st`.
    pub(super) fn store(
        &mut self,
        warp: &Warp,
        mask: u32,
        space: Space,
        shape: Shape,
        address: Address,
    ) {
        let bytes = shape.bytes();
        let addresses = resolve(self.fast, &warp.words, &warp.doubles, address, mask, bytes);
        let (index, pc) = (warp.index, warp.pc);
        let data = gather(warp, shape);
        by_space(
            space,
            &addresses,
            mask,
            bytes,
            |space, addresses, mask| match space {
                Space::Shared => self.store_shared(index, pc, addresses, mask, bytes, &data),
                Space::Local => self.store_local(index, pc, addresses, mask, bytes, &data),
                Space::Param | Space::Const => {
                    self.drop_outside(index, pc, addresses, mask, bytes, 0, "a read-only space");
                }
                Space::Global | Space::Generic => {
                    self.store_global(index, pc, addresses, mask, bytes, &data)
                }
            },
        );
    }

    fn load_global(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &mut Block,
    ) {
        self.by_region(
            warp,
            pc,
            addresses,
            mask,
            bytes,
            |context, index, allocation, mask| {
                if context.count_traffic {
                    let total = bytes * mask.count_ones();
                    context.count_global(
                        pc,
                        GlobalUse::Load,
                        index,
                        sectors_of(addresses, mask, bytes),
                        total,
                    );
                }
                if context.checks.uninitialised {
                    context.check_written(warp, pc, allocation, addresses, mask, bytes);
                }
                let words = allocation.words();
                for lane in lanes(mask) {
                    let offset = addresses.of[lane] - allocation.base;
                    let at = (offset / 4) as usize;
                    if bytes < 4 {
                        data[0][lane] = words[at].load(Relaxed) >> (8 * (offset % 4));
                        continue;
                    }
                    let count = (bytes / 4) as usize;
                    for (plane, word) in data.iter_mut().zip(&words[at..at + count]) {
                        plane[lane] = word.load(Relaxed);
                    }
                }
            },
        );
    }

    fn store_global(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &Block,
    ) {
        self.by_region(
            warp,
            pc,
            addresses,
            mask,
            bytes,
            |context, index, allocation, mask| {
                if context.count_traffic {
                    let total = bytes * mask.count_ones();
                    context.count_global(
                        pc,
                        GlobalUse::Store,
                        index,
                        sectors_of(addresses, mask, bytes),
                        total,
                    );
                }
                let words = allocation.words();
                for lane in lanes(mask) {
                    let offset = addresses.of[lane] - allocation.base;
                    if bytes < 4 {
                        allocation.write(offset, &data[0][lane].to_le_bytes()[..bytes as usize]);
                        continue;
                    }
                    let at = (offset / 4) as usize;
                    let count = (bytes / 4) as usize;
                    for (plane, word) in data.iter().zip(&words[at..at + count]) {
                        word.store(plane[lane], Relaxed);
                    }
                }
                Self::mark_written(allocation, addresses, mask, bytes);
            },
        );
    }

    fn load_shared(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &mut Block,
    ) {
        let mask = self.in_shared(warp, pc, addresses, mask, bytes);
        self.count_wavefronts(pc, SharedUse::Load, addresses, mask, bytes);
        for lane in lanes(mask) {
            let address = addresses.of[lane] as usize;
            let at = address / 4;
            if self.shadowed {
                let who = Party {
                    warp,
                    lane: lane as u32,
                };
                let conflict = self.shadow.read(address, bytes, who);
                if let Some(conflict) = conflict {
                    self.report_conflict(conflict, who, pc, address as u32, "read");
                }
            }
            if bytes < 4 {
                data[0][lane] = self.shared[at] >> (8 * (address % 4));
                continue;
            }
            for (plane, word) in data
                .iter_mut()
                .zip(&self.shared[at..at + bytes as usize / 4])
            {
                plane[lane] = *word;
            }
        }
    }

    fn store_shared(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &Block,
    ) {
        let mask = self.in_shared(warp, pc, addresses, mask, bytes);
        self.count_wavefronts(pc, SharedUse::Store, addresses, mask, bytes);
        for lane in lanes(mask) {
            let address = addresses.of[lane] as usize;
            let at = address / 4;
            if self.shadowed {
                let who = Party {
                    warp,
                    lane: lane as u32,
                };
                let conflict = self.shadow.write(address, bytes, who);
                if let Some(conflict) = conflict {
                    self.report_conflict(conflict, who, pc, address as u32, "write");
                }
            }
            if bytes < 4 {
                let shift = 8 * (address % 4);
                let low = (1u32 << (8 * bytes)) - 1;
                let word = &mut self.shared[at];
                *word = *word & !(low << shift) | (data[0][lane] & low) << shift;
                continue;
            }
            for (plane, word) in data
                .iter()
                .zip(&mut self.shared[at..at + bytes as usize / 4])
            {
                *word = plane[lane];
            }
        }
    }

    fn local_start(&self, warp: u32, lane: usize, address: u64) -> usize {
        (warp as usize * 32 + lane) * self.env.entry.local_bytes as usize + address as usize
    }

    fn in_local(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
    ) -> u32 {
        let mask = self.aligned(warp, pc, addresses, mask, bytes);
        let size = u64::from(self.env.entry.local_bytes);
        self.drop_outside(warp, pc, addresses, mask, bytes, size, "local memory")
    }

    fn load_local(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &mut Block,
    ) {
        for lane in lanes(self.in_local(warp, pc, addresses, mask, bytes)) {
            let start = self.local_start(warp, lane, addresses.of[lane]);
            let range = start..start + bytes as usize;
            if self.checks.uninitialised
                && !self.local_written[range.clone()]
                    .iter()
                    .all(|written| *written)
            {
                let address = addresses.of[lane];
                self.report(
                    FindingKind::UninitialisedMemory,
                    warp,
                    lane as u32,
                    pc,
                    || Details {
                        address: Some(address),
                        allocation: None,
                        message: format!("read of local bytes at {address:#x} that nothing wrote"),
                    },
                );
            }
            spread(&self.local[range], lane, data);
        }
    }

    fn store_local(
        &mut self,
        warp: u32,
        pc: u32,
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &Block,
    ) {
        for lane in lanes(self.in_local(warp, pc, addresses, mask, bytes)) {
            let start = self.local_start(warp, lane, addresses.of[lane]);
            for (i, byte) in self.local[start..start + bytes as usize]
                .iter_mut()
                .enumerate()
            {
                *byte = (data[i / 4][lane] >> (8 * (i % 4))) as u8;
            }
            self.local_written[start..start + bytes as usize].fill(true);
        }
    }

    /// Loads from a read-only image: parameters or constants.
    #[allow(clippy::too_many_arguments)]
    fn load_image(
        &mut self,
        warp: u32,
        pc: u32,
        image: &[u8],
        addresses: &Addresses,
        mask: u32,
        bytes: u32,
        data: &mut Block,
    ) {
        let mask = self.aligned(warp, pc, addresses, mask, bytes);
        if mask != 0 && addresses.min == addresses.max {
            // Nearly every parameter is read by all lanes at one address.
            let start = usize::try_from(addresses.min).unwrap_or(usize::MAX);
            if let Some(source) = image.get(start..start.saturating_add(bytes as usize)) {
                spread(source, 0, data);
                for plane in data {
                    *plane = [plane[0]; 32];
                }
                return;
            }
        }
        let size = image.len() as u64;
        for lane in lanes(self.drop_outside(
            warp,
            pc,
            addresses,
            mask,
            bytes,
            size,
            "parameters or constants",
        )) {
            let start = addresses.of[lane] as usize;
            spread(&image[start..start + bytes as usize], lane, data);
        }
    }
}

/// Bytes of one lane into its words.
fn spread(source: &[u8], lane: usize, data: &mut Block) {
    for (i, byte) in source.iter().enumerate() {
        let plane = &mut data[i / 4][lane];
        let shift = 8 * (i % 4);
        *plane = *plane & !(0xFF << shift) | u32::from(*byte) << shift;
    }
}

/// Extends a narrow value in a word to 64 bits.
const fn extend(ty: Ty, word: u32) -> u64 {
    match ty {
        Ty::S8 => word as u8 as i8 as i64 as u64,
        Ty::S16 => word as u16 as i16 as i64 as u64,
        Ty::S32 => word as i32 as i64 as u64,
        _ => match ty.bytes() {
            1 => word as u8 as u64,
            2 => word as u16 as u64,
            _ => word as u64,
        },
    }
}

/// Loaded words to the destination registers.
#[inline]
fn distribute(warp: &mut Warp, mask: u32, shape: Shape, data: &Block) {
    let elements = usize::from(shape.count);
    if shape.ty.bytes() == 4 && !shape.wide {
        for (reg, plane) in shape.regs.iter().zip(data).take(elements) {
            if *reg != NONE {
                put(&mut warp.words[*reg as usize].0, plane, mask);
            }
        }
        return;
    }
    let size = shape.ty.bytes();
    for (element, reg) in shape.regs.iter().enumerate().take(elements) {
        if *reg == NONE {
            continue;
        }
        let value = |lane: usize| {
            if size == 8 {
                return u64::from(data[2 * element][lane])
                    | u64::from(data[2 * element + 1][lane]) << 32;
            }
            let at = element * size as usize;
            extend(shape.ty, data[at / 4][lane] >> (8 * (at % 4)))
        };
        for lane in lanes(mask) {
            if shape.wide {
                warp.doubles[*reg as usize].0[lane] = value(lane);
            } else {
                warp.words[*reg as usize].0[lane] = value(lane) as u32;
            }
        }
    }
}

/// Source registers to the words to store.
#[inline]
fn gather(warp: &Warp, shape: Shape) -> Block {
    let mut data: Block = [[0; 32]; 4];
    let elements = usize::from(shape.count);
    if shape.ty.bytes() == 4 && !shape.wide {
        for (reg, plane) in shape.regs.iter().zip(&mut data).take(elements) {
            *plane = warp.words[*reg as usize].0;
        }
        return data;
    }
    let size = shape.ty.bytes();
    for (element, reg) in shape.regs.iter().enumerate().take(elements) {
        for lane in 0..32 {
            let value = if shape.wide {
                warp.doubles[*reg as usize].0[lane]
            } else {
                u64::from(warp.words[*reg as usize].0[lane])
            };
            if size == 8 {
                data[2 * element][lane] = value as u32;
                data[2 * element + 1][lane] = (value >> 32) as u32;
            } else {
                let at = element * size as usize;
                let shift = 8 * (at % 4);
                let low = if size >= 4 {
                    u32::MAX
                } else {
                    (1 << (8 * size)) - 1
                };
                data[at / 4][lane] |= (value as u32 & low) << shift;
            }
        }
    }
    data
}
