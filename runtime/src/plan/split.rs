//! How many pieces each sequence is cut into.
//!
//! A CTA takes time in proportion to its *steps*: one step is the tokens that all of its warps
//! take in one go. A wave is the number of CTAs that are resident together. Decode is one launch of
//! few, uneven sequences, so without cutting most of the GPU would idle; with careless cutting a
//! second wave would run a few CTAs while the rest idle.
//!
//! ```text
//!   sequence 0  ████████████████████   20 steps       chunk 7:  ███████ ███████ ██████
//!   sequence 1  ██████                  6 steps                 ██████
//! ```
//!
//! The largest chunk decides when a wave ends, so for a given number of waves the best chunk is the
//! smallest one whose pieces still fit; it is found by binary search.

use std::num::NonZeroU32;

/// Steps that starting a CTA, filling its pipeline and combining its warps cost. Keeps short
/// batches from being cut into pieces that are all overhead.
const OVERHEAD_STEPS: u64 = 2;
/// Waves beyond the fewest possible that are tried: with slightly more pieces than one wave holds,
/// several waves of small pieces end sooner than two of which the second is almost empty.
const EXTRA_WAVES: u64 = 3;

/// What the split is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitTarget {
    /// CTAs resident together.
    pub(crate) wave: u64,
    /// CTAs that each piece of a sequence takes: KV heads times head tiles.
    pub(crate) heads: u64,
}

/// The largest piece in steps, for sequences of `steps` steps each.
///
/// `None` when there is nothing to cut.
pub(crate) fn chunk_steps(
    steps: impl Iterator<Item = u32> + Clone,
    target: SplitTarget,
) -> Option<NonZeroU32> {
    let load = Load {
        longest: NonZeroU32::new(steps.clone().max()?)?,
        total: steps.clone().map(u64::from).sum(),
        sequences: steps.clone().count() as u64,
    };
    // Uncut, each sequence is one piece.
    let first = (load.sequences * target.heads).div_ceil(target.wave);
    let mut best = (u64::MAX, load.longest);
    for waves in first..=first + EXTRA_WAVES {
        let chunk = smallest_chunk(steps.clone(), load, waves * target.wave / target.heads);
        let items = pieces(steps.clone(), chunk) * target.heads;
        let each = u64::from(chunk.get()) + OVERHEAD_STEPS;
        // Two upper bounds on the time of a longest-first schedule: every wave takes at most the
        // largest piece; and Graham's bound, which is the tighter one for ragged batches.
        let by_waves = waves * each;
        let by_load = (load.total * target.heads + items * OVERHEAD_STEPS) / target.wave + each;
        let time = by_waves.min(by_load);
        if time < best.0 {
            best = (time, chunk);
        }
    }
    Some(best.1)
}

/// Pieces of `steps` steps when none is larger than `chunk`; an empty sequence is one piece.
pub(crate) fn pieces_of(steps: u32, chunk: NonZeroU32) -> u32 {
    steps.div_ceil(chunk.get()).max(1)
}

fn pieces(steps: impl Iterator<Item = u32>, chunk: NonZeroU32) -> u64 {
    steps.map(|steps| u64::from(pieces_of(steps, chunk))).sum()
}

/// What there is to cut.
#[derive(Clone, Copy)]
struct Load {
    /// Steps of the longest sequence.
    longest: NonZeroU32,
    /// Steps of all sequences.
    total: u64,
    sequences: u64,
}

/// The smallest chunk that makes at most `limit` pieces, `limit` being at least the sequences.
fn smallest_chunk(steps: impl Iterator<Item = u32> + Clone, load: Load, limit: u64) -> NonZeroU32 {
    // total / chunk <= pieces < total / chunk + sequences: a narrow start for the search.
    let longest = u64::from(load.longest.get());
    let mut low = load.total.div_ceil(limit.max(1)).clamp(1, longest);
    let mut high = match limit.checked_sub(load.sequences) {
        Some(spare @ 1..) => load.total.div_ceil(spare).clamp(low, longest),
        _ => longest,
    };
    while low < high {
        let middle = low + (high - low) / 2;
        if pieces(steps.clone(), chunk_of(middle)) <= limit {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    chunk_of(low)
}

/// From 1 to the longest sequence's steps, so neither 0 nor beyond 32 bits.
fn chunk_of(steps: u64) -> NonZeroU32 {
    u32::try_from(steps)
        .ok()
        .and_then(NonZeroU32::new)
        .unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(steps: &[u32], wave: u64, heads: u64) -> Option<u32> {
        chunk_steps(steps.iter().copied(), SplitTarget { wave, heads }).map(NonZeroU32::get)
    }

    #[test]
    fn four_even_sequences_fill_one_wave_of_an_a100() {
        // 32 (sequence, head) pairs over 216 CTAs: 6 pieces each, of at most 11 of 64 steps.
        assert_eq!(chunk(&[64; 4], 216, 8), Some(11));
    }

    #[test]
    fn one_long_sequence_is_cut_for_all_and_short_ones_are_left_whole() {
        let chunk = chunk(&[1000, 4, 4, 4], 216, 8).expect("work");
        assert_eq!(chunk, 1000u32.div_ceil(27 - 3));
    }

    #[test]
    fn a_batch_just_above_one_wave_is_cut_so_that_the_last_wave_is_not_empty() {
        // 240 pieces of 64 over 216 CTAs would take two waves, the second 89 % idle.
        let chunk = chunk(&[64; 240], 216, 1).expect("work");
        let items = 240 * u64::from(64u32.div_ceil(chunk));
        let waves = items.div_ceil(216);
        assert!(waves * u64::from(chunk) <= 96, "{chunk} in {waves} waves");
    }

    #[test]
    fn a_full_batch_is_not_cut() {
        assert_eq!(chunk(&[64; 216], 216, 1), Some(64));
    }

    #[test]
    fn the_narrow_search_finds_the_smallest_chunk_that_fits() {
        let mut seed = 1_u32;
        let mut random = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        for _ in 0..200 {
            let steps: Vec<u32> = (0..1 + random() % 9).map(|_| random() % 50).collect();
            let Some(longest) = steps.iter().max().and_then(|&most| NonZeroU32::new(most)) else {
                continue;
            };
            let load = Load {
                longest,
                total: steps.iter().map(|&steps| u64::from(steps)).sum(),
                sequences: steps.len() as u64,
            };
            let limit = load.sequences + u64::from(random() % 40);
            let fits = |chunk: &u32| {
                let chunk = NonZeroU32::new(*chunk).expect("from 1");
                pieces(steps.iter().copied(), chunk) <= limit
            };
            let expected = (1..=longest.get()).find(fits).expect("one piece each fits");
            let found = smallest_chunk(steps.iter().copied(), load, limit).get();
            assert_eq!(found, expected, "{steps:?} in {limit}");
        }
    }

    #[test]
    fn nothing_to_cut_gives_no_chunk() {
        assert_eq!(chunk(&[], 216, 8), None);
        assert_eq!(chunk(&[0, 0], 216, 8), None);
    }

    #[test]
    fn the_largest_lengths_do_not_overflow() {
        let chunk = chunk(&[u32::MAX / 32; 64], 1, u64::from(u16::MAX)).expect("work");
        assert!(chunk > 0);
    }
}
