//! The general `cvt`: any source to any destination, one lane at a time.

use super::numeric as n;
use crate::lower::op::{Conversion, Round};
use crate::parse::ast::Ty;

/// Converts the bits of one value.
pub(super) fn convert(how: Conversion, bits: u64) -> u64 {
    match how.from {
        Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64 => from_float(how, float(how, bits)),
        from => from_int(how, int(from, bits)),
    }
}

fn float(how: Conversion, bits: u64) -> f64 {
    let low = bits as u32;
    f64::from(f32::from_bits(match how.from {
        Ty::F16 => n::f16_to_f32(low & 0xFFFF),
        Ty::BF16 => n::bf16_to_f32(low & 0xFFFF),
        Ty::F32 => n::flush_if(how.ftz, low),
        _ => return f64::from_bits(bits),
    }))
}

fn int(ty: Ty, bits: u64) -> i128 {
    match (ty.bytes(), ty.signed()) {
        (1, true) => i128::from(bits as i8),
        (1, false) => i128::from(bits as u8),
        (2, true) => i128::from(bits as i16),
        (2, false) => i128::from(bits as u16),
        (4, true) => i128::from(bits as i32),
        (4, false) => i128::from(bits as u32),
        (_, true) => i128::from(bits as i64),
        (_, false) => i128::from(bits),
    }
}

fn range(ty: Ty) -> (i128, i128) {
    let width = ty.bytes() * 8;
    if ty.signed() {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

/// Bits of an integer as its register holds them: 8- and 16-bit values of a 32-bit file are zero-extended to their
/// register, signed 8-bit ones sign-extended as `cvt.s8` does.
fn store_int(ty: Ty, value: i128) -> u64 {
    match ty.bytes() {
        1 if ty.signed() => u64::from(value as i8 as u32),
        1 => u64::from(value as u8),
        2 => u64::from(value as u16),
        4 => u64::from(value as u32),
        _ => value as u64,
    }
}

fn round(value: f64, how: Round) -> f64 {
    match how {
        Round::Even => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

fn from_int(how: Conversion, value: i128) -> u64 {
    match how.to {
        Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64 => {
            // Rust rounds integers to nearest even; the directed modes step from there.
            let exact_in_f64 = value.unsigned_abs() < 1 << 53;
            if how.to == Ty::F64 {
                return directed64(value as f64, value, how.round).to_bits();
            }
            if how.to == Ty::F32 && how.round == Round::Even {
                let single = value as f32;
                return u64::from(if how.saturate {
                    n::finish(single, false, true)
                } else {
                    single.to_bits()
                });
            }
            // A sticky bit keeps values beyond 53 bits from rounding twice.
            let wide = if exact_in_f64 {
                value as f64
            } else {
                ((value >> 10 | i128::from(value & 0x3FF != 0)) as f64) * 1024.0
            };
            store_float(how, wide)
        }
        to if how.saturate => {
            let (low, high) = range(to);
            store_int(to, value.clamp(low, high))
        }
        to => store_int(to, value),
    }
}

fn directed64(near: f64, exact: i128, how: Round) -> f64 {
    let back = near as i128;
    match how {
        Round::Zero if back.unsigned_abs() > exact.unsigned_abs() => toward_zero(near),
        Round::Down if back > exact => near.next_down(),
        Round::Up if back < exact => near.next_up(),
        _ => near,
    }
}

fn toward_zero(value: f64) -> f64 {
    if value > 0.0 {
        value.next_down()
    } else {
        value.next_up()
    }
}

fn from_float(how: Conversion, value: f64) -> u64 {
    match how.to {
        Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64 => {
            let value = if how.integral && value.is_finite() {
                round(value, how.round)
            } else {
                value
            };
            store_float(how, value)
        }
        // NaN gives 0, or with 64 bits on either side the highest bit of the result (PTX ISA, `cvt`).
        to if value.is_nan() => match how.from == Ty::F64 || to.bytes() == 8 {
            true => 1 << (to.bytes() * 8 - 1),
            false => 0,
        },
        // Values beyond the range give its ends.
        to => {
            let value = round(value, how.round);
            let (low, high) = range(to);
            store_int(to, (value as i128).clamp(low, high))
        }
    }
}

fn store_float(how: Conversion, value: f64) -> u64 {
    let value = if how.relu && value < 0.0 { 0.0 } else { value };
    let value = match (how.saturate, value) {
        (true, v) if v >= 1.0 => 1.0,
        (true, v) if v > 0.0 => v,
        (true, _) => 0.0,
        (false, v) => v,
    };
    if how.to == Ty::F64 {
        return value.to_bits();
    }
    // A direction moves the value off the nearest result only where that is not exact; every result is exact in f64.
    let near = narrow(how, value);
    let back = widen(how.to, near);
    let step = |up: bool| widen_step(how.to, near, up);
    let chosen = if value.is_nan() || how.integral {
        near
    } else {
        match how.round {
            Round::Zero if back.abs() > value.abs() => step(value < 0.0),
            Round::Down if back > value => step(false),
            Round::Up if back < value => step(true),
            _ => near,
        }
    };
    u64::from(if how.ftz && how.to == Ty::F32 {
        n::flush(chosen)
    } else {
        chosen
    })
}

fn narrow(how: Conversion, value: f64) -> u32 {
    match how.to {
        Ty::F16 => n::f32_to_f16(n::f64_to_f32_odd(value).to_bits()),
        Ty::BF16 => n::f32_to_bf16(n::f64_to_f32_odd(value).to_bits()),
        _ if value.is_nan() => n::NAN_F32,
        _ => (value as f32).to_bits(),
    }
}

fn widen(ty: Ty, bits: u32) -> f64 {
    f64::from(f32::from_bits(match ty {
        Ty::F16 => n::f16_to_f32(bits),
        Ty::BF16 => n::bf16_to_f32(bits),
        _ => bits,
    }))
}

/// The next value of the format, up or down. Formats are sign and magnitude: a step is one in the magnitude.
fn widen_step(ty: Ty, bits: u32, up: bool) -> u32 {
    let sign = if ty == Ty::F32 { 0x8000_0000 } else { 0x8000 };
    let negative = bits & sign != 0;
    let magnitude = bits & (sign - 1);
    if magnitude == 0 {
        return if up { 1 } else { sign | 1 };
    }
    if negative == up {
        negative_or(negative, sign) | (magnitude - 1)
    } else {
        negative_or(negative, sign) | (magnitude + 1)
    }
}

const fn negative_or(negative: bool, sign: u32) -> u32 {
    if negative { sign } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(from: Ty, to: Ty, round: Round) -> Conversion {
        Conversion {
            from,
            to,
            round,
            integral: false,
            ftz: false,
            saturate: false,
            relu: false,
        }
    }

    #[test]
    fn floats_to_integers_round_and_clamp() {
        let bits = |v: f32| u64::from(v.to_bits());
        let to = |round, v| convert(how(Ty::F32, Ty::S32, round), bits(v)) as u32 as i32;
        assert_eq!(to(Round::Even, 2.5), 2);
        assert_eq!(to(Round::Down, -2.5), -3);
        assert_eq!(to(Round::Up, 2.1), 3);
        assert_eq!(to(Round::Zero, -2.9), -2);
        assert_eq!(to(Round::Zero, 1e20), i32::MAX);
        assert_eq!(to(Round::Zero, f32::NAN), 0);
        assert_eq!(convert(how(Ty::F32, Ty::U8, Round::Zero), bits(-1.0)), 0);
        assert_eq!(convert(how(Ty::F32, Ty::U8, Round::Zero), bits(300.0)), 255);
    }

    #[test]
    fn directed_narrowing_moves_only_inexact_values() {
        let value = u64::from((1.0f32 + f32::EPSILON).to_bits());
        assert_eq!(convert(how(Ty::F32, Ty::F16, Round::Zero), value), 0x3C00);
        assert_eq!(convert(how(Ty::F32, Ty::F16, Round::Up), value), 0x3C01);
        assert_eq!(
            convert(how(Ty::F32, Ty::F16, Round::Down), value ^ 0x8000_0000),
            0xBC01
        );
        assert_eq!(
            convert(
                how(Ty::F32, Ty::BF16, Round::Zero),
                u64::from(1.5f32.to_bits())
            ),
            0x3FC0
        );
    }

    #[test]
    fn integers_saturate_only_when_asked() {
        let mut narrow = how(Ty::S32, Ty::U8, Round::Even);
        assert_eq!(convert(narrow, u64::from(-1i32 as u32)), 255);
        narrow.saturate = true;
        assert_eq!(convert(narrow, u64::from(-1i32 as u32)), 0);
        assert_eq!(
            convert(how(Ty::S64, Ty::F32, Round::Even), i64::MAX as u64),
            u64::from(2f32.powi(63).to_bits())
        );
        assert_eq!(
            convert(how(Ty::S16, Ty::F32, Round::Even), 0xFFFF),
            u64::from((-1f32).to_bits())
        );
    }
}
