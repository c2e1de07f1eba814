//! Scalar arithmetic with PTX semantics. Everything here is free of branches that depend on values where it can be,
//! so that loops over 32 lanes become vector code, and gives the same bits on every CPU.

/// The NaN that PTX arithmetic returns.
pub(super) const NAN_F32: u32 = 0x7FFF_FFFF;

/// Flushes a subnormal to a zero of its sign.
#[inline(always)]
pub(super) const fn flush(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

#[inline(always)]
pub(super) const fn flush_if(ftz: bool, bits: u32) -> u32 {
    if ftz { flush(bits) } else { bits }
}

/// Bits of a result: one NaN, subnormals flushed and clamped to 0..=1 where asked.
#[inline(always)]
pub(super) fn finish(value: f32, ftz: bool, sat: bool) -> u32 {
    let bits = if value.is_nan() {
        NAN_F32
    } else {
        value.to_bits()
    };
    let bits = flush_if(ftz, bits);
    if sat { saturate(bits) } else { bits }
}

#[inline(always)]
fn saturate(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value >= 1.0 {
        1f32.to_bits()
    } else if value > 0.0 {
        bits
    } else {
        0
    }
}

/// `a * b + c`, rounded once: the instruction where the caller was compiled with FMA, else in f64.
#[inline(always)]
pub(super) fn fma<const AVX2: bool>(a: f32, b: f32, c: f32) -> f32 {
    if AVX2 {
        a.mul_add(b, c)
    } else {
        fma_portable(a, b, c)
    }
}

/// The product is exact in f64; the sum is rounded to odd there, which makes the second rounding harmless.
#[inline(always)]
pub(super) fn fma_portable(a: f32, b: f32, c: f32) -> f32 {
    add_to_odd(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

/// The sum, with the last bit set when it is not exact.
#[inline(always)]
pub(super) fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && error.is_finite() && bits & 1 == 0;
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    f64::from_bits(if inexact { odd } else { bits })
}

/// The smaller; a NaN loses, and -0 is below +0.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() | b.to_bits());
    let least = if a < b {
        a
    } else if b < a {
        b
    } else {
        equal
    };
    let least = if a.is_nan() { b } else { least };
    if b.is_nan() { a } else { least }
}

/// The larger; a NaN loses, and +0 is above -0.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() & b.to_bits());
    let most = if a > b {
        a
    } else if b > a {
        b
    } else {
        equal
    };
    let most = if a.is_nan() { b } else { most };
    if b.is_nan() { a } else { most }
}

/// ln(2)^k / k!
const EXP2: [f32; 8] = [
    1.0,
    std::f32::consts::LN_2,
    0.240_226_5,
    0.055_504_11,
    0.009_618_129,
    0.001_333_355_8,
    0.000_154_035_3,
    0.000_015_252_734,
];

/// 2^x within 2 ulp (ISA: 2 ulp and 2^-22). Exact for integers, 0 for -inf, NaN for NaN.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let clamped = if x > -160.0 { x } else { -160.0 };
    let clamped = if clamped < 160.0 { clamped } else { 160.0 };
    let shifted = clamped + MAGIC;
    let fraction = clamped - (shifted - MAGIC);
    let mut p = EXP2[7];
    p = p * fraction + EXP2[6];
    p = p * fraction + EXP2[5];
    p = p * fraction + EXP2[4];
    p = p * fraction + EXP2[3];
    p = p * fraction + EXP2[2];
    p = p * fraction + EXP2[1];
    p = p * fraction + EXP2[0];
    let n = (shifted.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    // Two factors: 2^n itself may be outside the normal range.
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    let result = p * power(half) * power(n.wrapping_sub(half));
    if x.is_nan() { x } else { result }
}

/// f16 to f32, exact.
#[inline(always)]
pub(super) fn f16_to_f32(half: u32) -> u32 {
    let magnitude = (half & 0x7FFF) << 13;
    let sign = (half & 0x8000) << 16;
    // The multiplication moves the exponent bias and normalises subnormals.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = half & 0x7C00 == 0x7C00;
    let nan = special && half & 0x3FF != 0;
    let value = if special {
        magnitude | 0x7F80_0000
    } else {
        scaled
    };
    if nan { NAN_F32 } else { value | sign }
}

/// f32 to f16, to nearest even; overflow is infinite.
#[inline(always)]
pub(super) fn f32_to_f16(bits: u32) -> u32 {
    let magnitude = bits & 0x7FFF_FFFF;
    let sign = (bits >> 16) & 0x8000;
    // Normal results: rebias and round to even by adding just below half.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude
        .wrapping_sub(0x3800_0000)
        .wrapping_add(0xFFF)
        .wrapping_add(odd)
        >> 13;
    // Subnormal results: the addition of 0.5 aligns and rounds.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0x3F00_0000);
    let value = if magnitude < 0x3880_0000 {
        small
    } else {
        normal
    };
    let value = if magnitude >= 0x4780_0000 {
        0x7C00
    } else {
        value
    };
    let value = if value > 0x7C00 { 0x7C00 } else { value };
    if magnitude > 0x7F80_0000 {
        0x7FFF
    } else {
        value | sign
    }
}

/// bf16 to f32, exact.
#[inline(always)]
pub(super) const fn bf16_to_f32(half: u32) -> u32 {
    half << 16
}

/// f32 to bf16, to nearest even.
#[inline(always)]
pub(super) const fn f32_to_bf16(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x7FFF).wrapping_add((bits >> 16) & 1) >> 16;
    if bits & 0x7FFF_FFFF > 0x7F80_0000 {
        0x7FFF
    } else {
        rounded & 0xFFFF
    }
}

/// f64 to a narrower format of `mantissa` stored bits, to nearest even, by way of f32 rounded to odd.
#[inline(always)]
pub(super) fn f64_to_f32_odd(value: f64) -> f32 {
    let near = value as f32;
    let bits = near.to_bits();
    if value.is_nan() || near.is_infinite() && value.is_finite() {
        // Beyond f32: every narrower format overflows too.
        return near;
    }
    let back = f64::from(near);
    if back == value || bits & 1 == 1 {
        return near;
    }
    let away = (value.abs() > back.abs()) || near == 0.0;
    let odd = if away { bits + 1 } else { bits - 1 };
    f32::from_bits(odd | u32::from(value.is_sign_negative()) << 31)
}

/// Byte permutation of `prmt.b32`.
#[inline(always)]
pub(super) const fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let both = a as u64 | (b as u64) << 32;
    let mut out = 0;
    let mut n = 0;
    while n < 4 {
        let nibble = (selector >> (4 * n)) & 0xF;
        let byte = (both >> (8 * (nibble & 7))) as u32 & 0xFF;
        let sign = if byte & 0x80 != 0 { 0xFF } else { 0 };
        out |= (if nibble & 8 != 0 { sign } else { byte }) << (8 * n);
        n += 1;
    }
    out
}

/// `lop3.b32`.
#[inline(always)]
pub(super) const fn lop3(lut: u8, a: u32, b: u32, c: u32) -> u32 {
    let mut out = 0;
    let mut bit = 0;
    while bit < 8 {
        let on = 0u32.wrapping_sub((lut as u32 >> bit) & 1);
        let va = if bit & 4 != 0 { a } else { !a };
        let vb = if bit & 2 != 0 { b } else { !b };
        let vc = if bit & 1 != 0 { c } else { !c };
        out |= va & vb & vc & on;
        bit += 1;
    }
    out
}

/// `bfe`, for values of `width` bits held in 64.
#[inline(always)]
pub(super) const fn bit_field(
    value: u64,
    position: u32,
    length: u32,
    width: u32,
    signed: bool,
) -> u64 {
    let position = position & 0xFF;
    let length = length & 0xFF;
    let top = width - 1;
    let msb = if position + length == 0 {
        0
    } else if position + length - 1 < top {
        position + length - 1
    } else {
        top
    };
    let sign = signed && length != 0 && (value >> msb) & 1 != 0;
    let fill = if sign { u64::MAX } else { 0 };
    if length == 0 {
        return 0;
    }
    if position > top {
        return fill;
    }
    let taken = msb - position + 1;
    let low = if taken >= 64 {
        u64::MAX
    } else {
        (1 << taken) - 1
    };
    (value >> position) & low | fill & !low
}

/// `bfi`: the low `length` bits of `a` into `b` at `position`.
#[inline(always)]
pub(super) const fn bit_insert(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let position = position & 0xFF;
    let length = length & 0xFF;
    if length == 0 || position >= width {
        return b;
    }
    let low = if length >= 64 {
        u64::MAX
    } else {
        (1 << length) - 1
    };
    let mask = low << position;
    b & !mask | (a << position) & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn every_f16_converts_exactly_both_ways() {
        for bits in 0..=0xFFFFu32 {
            let reference = f16::from_bits(bits as u16);
            let value = f32::from_bits(f16_to_f32(bits));
            if reference.is_nan() {
                assert!(value.is_nan());
                assert_eq!(f32_to_f16(value.to_bits()), 0x7FFF);
            } else {
                assert_eq!(value.to_bits(), reference.to_f32().to_bits());
                assert_eq!(f32_to_f16(value.to_bits()), bits);
            }
        }
    }

    #[test]
    fn narrowing_rounds_to_nearest_even() {
        let mut state = 1u64;
        for _ in 0..1_000_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let bits = (state >> 32) as u32;
            let value = f32::from_bits(bits);
            if value.is_nan() {
                continue;
            }
            assert_eq!(
                f32_to_f16(bits),
                u32::from(f16::from_f32(value).to_bits()),
                "{value:e}"
            );
            assert_eq!(
                f32_to_bf16(bits),
                u32::from(bf16::from_f32(value).to_bits()),
                "{value:e}"
            );
        }
        // Around the borders of the f16 range.
        for centre in [
            0x3880_0000u32,
            0x4780_0000,
            0x477F_E000,
            0x3380_0000,
            0x3300_0000,
        ] {
            for bits in centre - 0x3000..centre + 0x3000 {
                let reference = f16::from_f32(f32::from_bits(bits));
                assert_eq!(
                    f32_to_f16(bits),
                    u32::from(reference.to_bits()),
                    "{bits:#x}"
                );
            }
        }
    }

    #[test]
    fn the_portable_fma_rounds_once() {
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        for round in 0..1_000_000 {
            let a = f32::from_bits(next());
            let b = f32::from_bits(next());
            // Half of the time an addend near the product, where double rounding would show.
            let c = if round % 2 == 0 {
                f32::from_bits(next())
            } else {
                f32::from_bits((a * b).to_bits() ^ next() >> 12)
            };
            let (ours, reference) = (fma_portable(a, b, c), a.mul_add(b, c));
            assert!(
                ours.to_bits() == reference.to_bits() || ours.is_nan() && reference.is_nan(),
                "{a:e} {b:e} {c:e}"
            );
        }
    }

    #[test]
    fn exp2_is_within_the_bound_of_the_isa() {
        for step in -1_500_000..1_280_000 {
            let x = step as f32 * 1e-4;
            let reference = f64::from(x).exp2();
            let ours = f64::from(exp2(x));
            if reference < f64::from(f32::MIN_POSITIVE) {
                assert!((ours - reference).abs() <= 1.5e-45, "{x}");
                continue;
            }
            let ulp = 2f64.powi(reference.log2().floor() as i32 - 23);
            assert!(
                (ours - reference).abs() <= 2.0 * ulp,
                "{x}: {ours:e} {reference:e}"
            );
        }
        assert_eq!(exp2(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp2(f32::INFINITY), f32::INFINITY);
        assert!(exp2(f32::NAN).is_nan());
        for n in -149..128 {
            assert_eq!(exp2(n as f32), 2f64.powi(n) as f32);
        }
    }

    #[test]
    fn minimum_and_maximum_drop_nan_and_order_zeros() {
        assert_eq!(min(f32::NAN, 1.0), 1.0);
        assert_eq!(max(2.0, f32::NAN), 2.0);
        assert!(min(f32::NAN, f32::NAN).is_nan());
        assert!(min(0.0, -0.0).is_sign_negative());
        assert!(max(-0.0, 0.0).is_sign_positive());
    }

    #[test]
    fn permutation_and_tables_follow_the_isa() {
        assert_eq!(prmt(0x3322_1100, 0x7766_5544, 0x7531), 0x7755_3311);
        assert_eq!(prmt(0x8000_0080, 0, 0x8888), 0xFFFF_FFFF);
        assert_eq!(lop3(0xEA, 0xF0, 0xCC, 0xAA), (0xF0 & 0xCC) | 0xAA);
        assert_eq!(lop3(0x96, 0xF0, 0xCC, 0xAA), 0xF0 ^ 0xCC ^ 0xAA);
    }

    #[test]
    fn bit_fields_clamp_at_the_top() {
        assert_eq!(bit_field(0xABCD_1234, 8, 8, 32, false), 0x12);
        assert_eq!(bit_field(0x0000_8000, 8, 8, 32, true) as u32, 0xFFFF_FF80);
        assert_eq!(bit_field(0x8000_0000, 40, 8, 32, true) as u32, u32::MAX);
        assert_eq!(bit_field(0xFFFF_FFFF, 28, 16, 32, false), 0xF);
        assert_eq!(bit_insert(0xFF, 0x1234_5678, 8, 8, 32) as u32, 0x1234_FF78);
        assert_eq!(bit_insert(0xFF, 0x1234_5678, 32, 8, 32) as u32, 0x1234_5678);
    }

    #[test]
    fn narrowing_from_f64_rounds_once() {
        // 1 + 2^-11 is halfway between two f16; a little more must round up although f32 cannot hold the rest.
        let just_above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f32_to_f16(f64_to_f32_odd(just_above).to_bits()), 0x3C01);
        let just_below = 1.0 + 2f64.powi(-11) - 2f64.powi(-40);
        assert_eq!(f32_to_f16(f64_to_f32_odd(just_below).to_bits()), 0x3C00);
        assert_eq!(f64_to_f32_odd(-0.0).to_bits(), 0x8000_0000);
    }
}
