//! What the 32 addresses of an access look like together: the checks that spare work a lane.

use super::lanes::{Doubles, FULL, Words, multiversion};
use crate::lower::op::Address;

/// The addresses of an access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    /// Of all lanes; an inactive lane repeats that of the first active one.
    pub(super) of: [u64; 32],
    /// All bits that occur.
    pub(super) any: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    /// Each lane's bytes follow those of the lane before it.
    pub(super) contiguous: bool,
}

/// `[base + offset]` of all lanes.
pub(super) fn resolve(
    fast: bool,
    words: &[Words],
    doubles: &[Doubles],
    address: Address,
    mask: u32,
    bytes: u32,
) -> Addresses {
    if fast {
        resolve_lanes::<true>(words, doubles, address, mask, bytes)
    } else {
        resolve_lanes::<false>(words, doubles, address, mask, bytes)
    }
}

/// Wavefronts of a shared-memory access of all lanes that has no conflict; `None` where it must be looked at closely.
pub(super) fn free_of_conflicts(
    fast: bool,
    addresses: &[u64; 32],
    mask: u32,
    bytes: u32,
) -> Option<u32> {
    if fast {
        free::<true>(addresses, mask, bytes)
    } else {
        free::<false>(addresses, mask, bytes)
    }
}

multiversion! {
    resolve_lanes(words: &[Words], doubles: &[Doubles], address: Address, mask: u32, bytes: u32) -> Addresses = resolve_body
}
multiversion! {
    free(addresses: &[u64; 32], mask: u32, bytes: u32) -> Option<u32> = free_body
}

#[inline(always)]
fn resolve_body<const AVX2: bool>(
    words: &[Words],
    doubles: &[Doubles],
    address: Address,
    mask: u32,
    bytes: u32,
) -> Addresses {
    if address.wide {
        let mut of = [0u64; 32];
        let offset = i64::from(address.offset);
        let base = &doubles[address.base as usize].0;
        for lane in 0..32 {
            of[lane] = base[lane].wrapping_add_signed(offset);
        }
        fill_inactive(&mut of, mask);
        return summarise(of, bytes);
    }
    // Narrow addresses, as shared memory has, are looked at in half as many vectors.
    let mut low = [0u32; 32];
    let base = &words[address.base as usize].0;
    for lane in 0..32 {
        low[lane] = base[lane].wrapping_add_signed(address.offset);
    }
    fill_inactive(&mut low, mask);
    let (mut any, mut min, mut max, mut broken) = (0, u32::MAX, 0, 0);
    let mut of = [0u64; 32];
    for lane in 0..32 {
        any |= low[lane];
        min = min.min(low[lane]);
        max = max.max(low[lane]);
        broken |= low[lane] ^ low[0].wrapping_add(lane as u32 * bytes);
        of[lane] = u64::from(low[lane]);
    }
    Addresses {
        of,
        any: u64::from(any),
        min: u64::from(min),
        max: u64::from(max),
        contiguous: broken == 0,
    }
}

#[inline(always)]
fn fill_inactive<T: Copy>(of: &mut [T; 32], mask: u32) {
    if mask != FULL {
        let first = of[mask.trailing_zeros() as usize & 31];
        for lane in 0..32 {
            if mask >> lane & 1 == 0 {
                of[lane] = first;
            }
        }
    }
}

/// Looks at addresses that are already filled in.
#[inline(always)]
pub(super) fn summarise(of: [u64; 32], bytes: u32) -> Addresses {
    let (mut any, mut broken) = (0, 0);
    // Signed comparison is what vector units have. It orders addresses below 2^63 rightly; no other is ever valid.
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for lane in 0..32 {
        any |= of[lane];
        min = min.min(of[lane].cast_signed());
        max = max.max(of[lane].cast_signed());
        broken |= of[lane] ^ of[0].wrapping_add(lane as u64 * u64::from(bytes));
    }
    let (mut min, mut max) = (min.cast_unsigned(), max.cast_unsigned());
    if any >> 63 != 0 {
        min = of.iter().fold(u64::MAX, |min, one| min.min(*one));
        max = of.iter().fold(0, |max, one| max.max(*one));
    }
    Addresses {
        of,
        any,
        min,
        max,
        contiguous: broken == 0,
    }
}

#[inline(always)]
fn free_body<const AVX2: bool>(addresses: &[u64; 32], mask: u32, bytes: u32) -> Option<u32> {
    if mask != FULL && bytes != 16 {
        return None;
    }
    let mut place = [0u32; 32];
    let shift = bytes.trailing_zeros();
    for lane in 0..32 {
        place[lane] = 1 << ((addresses[lane] >> shift) as u32 & (128 / bytes.max(4) - 1));
    }
    let or = |places: &[u32]| places.iter().fold(0, |all, one| all | one);
    match bytes {
        16 => {
            let mut phases = 0;
            for (phase, places) in place.chunks(8).enumerate() {
                match mask >> (8 * phase) & 0xFF {
                    0 => {}
                    0xFF if or(places) == 0xFF => phases += 1,
                    _ => return None,
                }
            }
            Some(phases)
        }
        8 => place
            .chunks(16)
            .all(|phase| or(phase) == 0xFFFF)
            .then_some(2),
        4 => (or(&place) == u32::MAX).then_some(1),
        _ => None,
    }
}
