//! Instructions through which lanes of a warp exchange values.

use super::lanes::{lanes, put};
use super::warp::Warp;
use crate::lower::op::{NONE, Reduce, Reg, Shuffle, Vote};

/// `shfl`: gives the lanes that read a lane which does not take part.
pub(super) fn shuffle(
    warp: &mut Warp,
    mask: u32,
    how: Shuffle,
    to: (Reg, Reg),
    from: [Reg; 3],
) -> u32 {
    let ((d, p), [a, b, c]) = (to, from);
    let values = warp.words[a as usize].0;
    let (offsets, clamps) = (&warp.words[b as usize].0, &warp.words[c as usize].0);
    let mut out = values;
    let (mut hit, mut stray) = (0u32, 0u32);
    for lane in lanes(mask) {
        let (b, c) = (offsets[lane] & 31, clamps[lane]);
        let (segment, clamp) = ((c >> 8) & 31, c & 31);
        let here = lane as u32;
        let most = (here & segment) | (clamp & !segment);
        let least = here & segment;
        let (from, inside) = match how {
            Shuffle::Up => {
                let from = here.wrapping_sub(b);
                (from, from as i32 >= most as i32)
            }
            Shuffle::Down => (here + b, here + b <= most),
            Shuffle::Butterfly => (here ^ b, here ^ b <= most),
            Shuffle::Index => {
                let from = least | (b & !segment);
                (from, from <= most)
            }
        };
        let from = if inside { from } else { here };
        hit |= u32::from(inside) << lane;
        if mask >> from & 1 == 0 {
            stray |= 1 << lane;
        }
        out[lane] = values[from as usize & 31];
    }
    if d != NONE {
        put(&mut warp.words[d as usize].0, &out, mask);
    }
    if p != NONE {
        let pred = &mut warp.preds[p as usize];
        *pred = *pred & !mask | hit & mask;
    }
    stray
}

/// The result of a vote among `mask`, as a word.
pub(super) const fn vote(how: Vote, votes: u32, mask: u32) -> u32 {
    let yes = votes & mask;
    let result = match how {
        Vote::Ballot => return yes,
        Vote::All => yes == mask,
        Vote::Any => yes != 0,
        Vote::Uniform => yes == mask || yes == 0,
    };
    if result { u32::MAX } else { 0 }
}

/// `match.any`: for each lane the lanes with the same value.
pub(super) fn match_any(warp: &mut Warp, mask: u32, d: Reg, a: Reg) {
    let values = warp.words[a as usize].0;
    for lane in lanes(mask) {
        let same = lanes(mask)
            .filter(|other| values[*other] == values[lane])
            .fold(0u32, |mask, lane| mask | 1 << lane);
        if d != NONE {
            warp.words[d as usize].0[lane] = same;
        }
    }
}

/// `redux`.
pub(super) fn reduce(warp: &mut Warp, mask: u32, how: Reduce, d: Reg, a: Reg) {
    let values = warp.words[a as usize].0;
    let result = lanes(mask)
        .map(|lane| values[lane])
        .reduce(|x, y| match how {
            Reduce::Add => x.wrapping_add(y),
            Reduce::MinS => (x as i32).min(y as i32) as u32,
            Reduce::MinU => x.min(y),
            Reduce::MaxS => (x as i32).max(y as i32) as u32,
            Reduce::MaxU => x.max(y),
            Reduce::And => x & y,
            Reduce::Or => x | y,
            Reduce::Xor => x ^ y,
        })
        .unwrap_or(0);
    if d != NONE {
        put(&mut warp.words[d as usize].0, &[result; 32], mask);
    }
}
