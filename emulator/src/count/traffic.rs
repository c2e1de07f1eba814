//! What one warp-level access costs: sectors of global memory, wavefronts of shared memory.

/// Distinct 32-byte sectors that the lanes of `mask` touch with naturally aligned accesses of at most 32 bytes.
#[inline]
pub(crate) fn sectors(addresses: &[u64; 32], mask: u32) -> u32 {
    if mask == 0 {
        return 0;
    }
    if mask == u32::MAX {
        // Ascending addresses, the usual case: count the steps.
        let mut steps = 0;
        let mut descending = false;
        for lane in 1..32 {
            let (before, after) = (addresses[lane - 1] >> 5, addresses[lane] >> 5);
            steps += u32::from(before != after);
            descending |= after < before;
        }
        if !descending {
            return steps + 1;
        }
    }
    let mut seen = [0u64; 32];
    let mut count = 0;
    let mut rest = mask;
    while rest != 0 {
        seen[count] = addresses[rest.trailing_zeros() as usize] >> 5;
        count += 1;
        rest &= rest - 1;
    }
    let seen = &mut seen[..count];
    seen.sort_unstable();
    1 + seen.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
}

/// Wavefronts of a shared-memory access and the least that the same lanes could need.
///
/// 32 banks of 4 bytes. Accesses of up to 4 bytes go in one phase, of 8 bytes in half warps, of 16 in quarter warps;
/// a phase takes as many wavefronts as the busiest bank has distinct words.
#[inline]
pub(crate) fn wavefronts(addresses: &[u32; 32], mask: u32, bytes: u32) -> (u32, u32) {
    let (lanes, units) = match bytes {
        16 => (8, 4),
        8 => (16, 2),
        _ => (32, 1),
    };
    let mut total = 0;
    let mut phases = 0;
    for start in (0..32).step_by(lanes) {
        let active = mask >> start & (u32::MAX >> (32 - lanes));
        if active != 0 {
            phases += 1;
            total += phase(&addresses[start..start + lanes], active, units);
        }
    }
    (total, phases)
}

/// Wavefronts of one phase; each lane touches `units` adjacent words.
#[inline]
fn phase(addresses: &[u32], active: u32, units: u32) -> u32 {
    // Groups of `units` banks move together, since accesses are aligned.
    let shift = 2 + units.trailing_zeros();
    let groups = 32 / units;
    let mut used = 0u32;
    for (lane, address) in addresses.iter().enumerate() {
        if active >> lane & 1 != 0 {
            used |= 1 << (address >> shift & (groups - 1));
        }
    }
    if used.count_ones() == active.count_ones() {
        return 1;
    }
    let mut seen = [0u32; 32];
    let mut count = 0;
    for (lane, address) in addresses.iter().enumerate() {
        if active >> lane & 1 != 0 {
            seen[count] = address >> shift;
            count += 1;
        }
    }
    let seen = &mut seen[..count];
    seen.sort_unstable();
    let mut load = [0u32; 32];
    let mut last = None;
    for &place in seen.iter() {
        if last != Some(place) {
            load[(place & (groups - 1)) as usize] += 1;
            last = Some(place);
        }
    }
    load.into_iter().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(stride: u32) -> [u32; 32] {
        std::array::from_fn(|lane| lane as u32 * stride)
    }

    #[test]
    fn sectors_are_counted_once_whatever_the_order() {
        let base = 0x1000u64;
        let at = |f: fn(u64) -> u64| std::array::from_fn(|lane| base + f(lane as u64));
        assert_eq!(sectors(&at(|lane| lane * 4), u32::MAX), 4);
        assert_eq!(sectors(&at(|lane| lane * 16), u32::MAX), 16);
        assert_eq!(sectors(&at(|lane| (31 - lane) * 4), u32::MAX), 4);
        assert_eq!(sectors(&at(|lane| lane * 128), u32::MAX), 32);
        assert_eq!(sectors(&at(|_| 0), u32::MAX), 1);
        assert_eq!(sectors(&at(|lane| lane * 32), 0b1011), 3);
        assert_eq!(sectors(&at(|lane| lane % 2 * 64), u32::MAX), 2);
    }

    #[test]
    fn strides_of_words_conflict_as_banks_do() {
        assert_eq!(wavefronts(&strided(4), u32::MAX, 4), (1, 1));
        assert_eq!(wavefronts(&strided(8), u32::MAX, 4), (2, 1));
        assert_eq!(wavefronts(&strided(128), u32::MAX, 4), (32, 1));
        assert_eq!(wavefronts(&strided(132), u32::MAX, 4), (1, 1));
        assert_eq!(wavefronts(&strided(0), u32::MAX, 4), (1, 1));
        assert_eq!(wavefronts(&strided(1), u32::MAX, 1), (1, 1));
    }

    #[test]
    fn wide_accesses_go_in_phases() {
        assert_eq!(wavefronts(&strided(8), u32::MAX, 8), (2, 2));
        assert_eq!(wavefronts(&strided(16), u32::MAX, 16), (4, 4));
        assert_eq!(wavefronts(&strided(32), u32::MAX, 16), (8, 4));
        assert_eq!(wavefronts(&strided(128), u32::MAX, 16), (32, 4));
        assert_eq!(wavefronts(&strided(16), 0xFF, 16), (1, 1));
        assert_eq!(wavefronts(&strided(256), u32::MAX, 8), (32, 2));
    }
}
