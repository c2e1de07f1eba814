//! f16 and bf16 arithmetic over a warp. Each result is rounded once.

use super::lanes::{Words, map3, multiversion, put};
use super::numeric as n;
use crate::lower::op::{Flags, Half, HalfFormat, NONE, Reg};

/// An operation with its modifiers.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) op: Half,
    pub(super) format: HalfFormat,
    pub(super) flags: Flags,
    pub(super) relu: bool,
}

multiversion! {
    /// `d = op(a, b, c)`, on both halves when packed.
    half(
        w: &mut [Words], how: How, regs: [Reg; 4], mask: u32,
    ) = half_body
}

/// Round to nearest even from f32.
#[inline(always)]
fn narrow<const BF16: bool>(value: f32) -> u32 {
    if BF16 {
        n::f32_to_bf16(value.to_bits())
    } else {
        n::f32_to_f16(value.to_bits())
    }
}

#[inline(always)]
fn wide<const BF16: bool>(half: u32) -> f32 {
    let half = half & 0xFFFF;
    f32::from_bits(if BF16 {
        n::bf16_to_f32(half)
    } else {
        n::f16_to_f32(half)
    })
}

/// Flushes a subnormal f16; bf16 operations have no `.ftz`.
#[inline(always)]
const fn flush16(half: u32) -> u32 {
    if half & 0x7C00 == 0 {
        half & 0x8000
    } else {
        half
    }
}

/// `a * b + c` rounded once: the product is exact in f64, and the sum is rounded to odd on the way down.
#[inline(always)]
fn fma<const BF16: bool>(a: f32, b: f32, c: f32) -> u32 {
    let sum = n::add_to_odd(f64::from(a) * f64::from(b), f64::from(c));
    narrow::<BF16>(n::f64_to_f32_odd(sum))
}

#[inline(always)]
fn one<const BF16: bool>(op: Half, flags: Flags, relu: bool, a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = if flags.ftz {
        (flush16(a), flush16(b), flush16(c))
    } else {
        (a, b, c)
    };
    let (x, y, z) = (wide::<BF16>(a), wide::<BF16>(b), wide::<BF16>(c));
    let nan = x.is_nan() || y.is_nan();
    let value = match op {
        Half::Neg => return (a ^ 0x8000) & 0xFFFF,
        Half::Abs => return a & 0x7FFF,
        // f32 has more than twice the bits: rounding twice is rounding once for these.
        Half::Add => narrow::<BF16>(x + y),
        Half::Sub => narrow::<BF16>(x - y),
        Half::Mul => narrow::<BF16>(x * y),
        Half::Fma => fma::<BF16>(x, y, z),
        Half::Min => narrow::<BF16>(n::min(x, y)),
        Half::Max => narrow::<BF16>(n::max(x, y)),
        Half::MinNan => narrow::<BF16>(if nan { f32::NAN } else { n::min(x, y) }),
        Half::MaxNan => narrow::<BF16>(if nan { f32::NAN } else { n::max(x, y) }),
        Half::Ex2 => narrow::<BF16>(n::exp2(x)),
        Half::Tanh => narrow::<BF16>(x.tanh()),
    };
    let value = if flags.ftz { flush16(value) } else { value };
    let result = wide::<BF16>(value);
    if flags.sat {
        return narrow::<BF16>(if result >= 1.0 {
            1.0
        } else if result > 0.0 {
            result
        } else {
            0.0
        });
    }
    if relu && result < 0.0 { 0 } else { value }
}

#[inline(always)]
fn both<const BF16: bool>(
    packed: bool,
    op: Half,
    flags: Flags,
    relu: bool,
    a: u32,
    b: u32,
    c: u32,
) -> u32 {
    let low = one::<BF16>(op, flags, relu, a & 0xFFFF, b & 0xFFFF, c & 0xFFFF);
    if packed {
        low | one::<BF16>(op, flags, relu, a >> 16, b >> 16, c >> 16) << 16
    } else {
        low
    }
}

#[inline(always)]
fn half_body<const AVX2: bool>(w: &mut [Words], how: How, regs: [Reg; 4], mask: u32) {
    let How {
        op,
        format,
        flags,
        relu,
    } = how;
    let [d, a, b, c] = regs;
    let operand = |reg: Reg| {
        if reg == NONE {
            &[0; 32]
        } else {
            &w[reg as usize].0
        }
    };
    let (x, y, z) = (operand(a), operand(b), operand(c));
    let plain = !flags.ftz && !flags.sat && !relu;
    let packed = format.packed;
    #[cfg(target_arch = "x86_64")]
    if AVX2 && plain && packed && !format.bf16 && matches!(op, Half::Add | Half::Sub | Half::Mul) {
        // SAFETY: `AVX2` is true only behind `super::has_avx2`, which asked this CPU for the features.
        let out = unsafe { super::half_avx2::packed(op, x, y) };
        put(&mut w[d as usize].0, &out, mask);
        return;
    }
    // Constants in each arm let the loops become vector code.
    macro_rules! arm {
        ($bf16:literal, $op:expr) => {
            if plain && packed {
                map3(x, y, z, |x, y, z| {
                    both::<$bf16>(
                        true,
                        $op,
                        Flags {
                            ftz: false,
                            sat: false,
                        },
                        false,
                        x,
                        y,
                        z,
                    )
                })
            } else {
                map3(x, y, z, |x, y, z| {
                    both::<$bf16>(packed, $op, flags, relu, x, y, z)
                })
            }
        };
    }
    let out = match (format.bf16, op) {
        (false, Half::Fma) => arm!(false, Half::Fma),
        (false, op) => arm!(false, op),
        (true, Half::Fma) => arm!(true, Half::Fma),
        (true, op) => arm!(true, op),
    };
    put(&mut w[d as usize].0, &out, mask);
}
