//! Instructions that need no fast path.

use super::alu64::bit_field64;
use super::atomic::AtomicShape;
use super::collective::{match_any, reduce};
use super::compare::{compare32, compare64};
use super::context::Context;
use super::convert::convert;
use super::judge::in_space;
use super::lanes::{lanes, map1, put};
use super::numeric as n;
use super::sync::gathered_by;
use super::warp::{Warp, set_pred, set_word};
use crate::lower::op::{CmpTy, Inst, NONE, Op};

/// Instructions that need no fast path.
pub(super) fn rare(context: &mut Context<'_>, warp: &mut Warp, inst: &Inst, mask: u32) -> bool {
    match inst.op {
        Op::Bfi32 { d, a, b, c, len } => {
            let [a, b, c, len] = [a, b, c, len].map(|reg| warp.words[reg as usize].0);
            let mut out = a;
            for lane in 0..32 {
                out[lane] = n::bit_insert(
                    u64::from(a[lane]),
                    u64::from(b[lane]),
                    c[lane],
                    len[lane],
                    32,
                ) as u32;
            }
            set_word(warp, d, &out, mask);
        }
        Op::Bfe64 {
            signed,
            d,
            a,
            b,
            len,
        } => {
            for lane in lanes(mask) {
                let (b, len) = (
                    warp.words[b as usize].0[lane],
                    warp.words[len as usize].0[lane],
                );
                let value = bit_field64(warp.doubles[a as usize].0[lane], b, len, signed);
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = value;
                }
            }
        }
        Op::Bfi64 { d, a, b, c, len } => {
            for lane in lanes(mask) {
                let (a, b) = (
                    warp.doubles[a as usize].0[lane],
                    warp.doubles[b as usize].0[lane],
                );
                let (c, len) = (
                    warp.words[c as usize].0[lane],
                    warp.words[len as usize].0[lane],
                );
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = n::bit_insert(a, b, c, len, 64);
                }
            }
        }
        Op::Convert { how, d, a } => {
            for lane in lanes(mask) {
                let bits = if how.from.bytes() == 8 {
                    warp.doubles[a as usize].0[lane]
                } else {
                    u64::from(warp.words[a as usize].0[lane])
                };
                let value = convert(how, bits);
                if d == NONE {
                } else if how.to.bytes() == 8 {
                    warp.doubles[d as usize].0[lane] = value;
                } else {
                    warp.words[d as usize].0[lane] = value as u32;
                }
            }
        }
        Op::SetValue {
            ty,
            cmp,
            ftz,
            float,
            d,
            a,
            b,
        } => {
            let holds = if matches!(ty, CmpTy::U64 | CmpTy::S64 | CmpTy::F64) {
                compare64::<false>(&warp.doubles, ty, cmp, a, b)
            } else {
                compare32::<false>(&warp.words, ty, cmp, ftz, a, b)
            };
            let yes = if float { 1f32.to_bits() } else { u32::MAX };
            let out = std::array::from_fn(|lane| if holds >> lane & 1 != 0 { yes } else { 0 });
            set_word(warp, d, &out, mask);
        }
        Op::Pack16x4 { d, parts } => {
            for lane in lanes(mask) {
                let part = |i: usize| {
                    u64::from(warp.words[parts[i] as usize].0[lane] & 0xFFFF) << (16 * i)
                };
                let value = part(0) | part(1) | part(2) | part(3);
                if d != NONE {
                    warp.doubles[d as usize].0[lane] = value;
                }
            }
        }
        Op::Unpack16x4 { parts, a } => {
            let a = warp.doubles[a as usize].0;
            for (i, reg) in parts.into_iter().enumerate() {
                set_word(
                    warp,
                    reg,
                    &map1(&a, |a: u64| (a >> (16 * i)) as u32 & 0xFFFF),
                    mask,
                );
            }
        }
        Op::Atomic {
            space,
            op,
            ty,
            d,
            address,
            b,
            c,
        } => {
            context.atomic(warp, mask, space, AtomicShape { op, ty, d, b, c }, address);
        }
        Op::ActiveMask { d } => set_word(warp, d, &[mask; 32], mask),
        Op::MatchAny { d, a, members } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            match_any(warp, mask, d, a);
        }
        Op::Reduce { how, d, a, members } => {
            if !gathered_by(context, warp, members, mask) {
                return false;
            }
            reduce(warp, mask, how, d, a);
        }
        Op::IsSpace { space, d, a } => {
            let a = &warp.doubles[a as usize].0;
            let mut value = 0;
            for lane in 0..32 {
                value |= u32::from(in_space(a[lane], space)) << lane;
            }
            set_pred(warp, d, value, mask);
        }
        Op::Clock { wide, d } => {
            let now = context.env.options.instruction_limit - context.budget;
            if d == NONE {
            } else if wide {
                put(&mut warp.doubles[d as usize].0, &[now; 32], mask);
            } else {
                put(&mut warp.words[d as usize].0, &[now as u32; 32], mask);
            }
        }
        _ => {}
    }
    true
}
