//! 32-bit arithmetic over a warp.

use super::lanes::{Words, map1, map2, map3, multiversion, put};
use super::numeric as n;
use crate::lower::op::{Binary32, Flags, Reg, Ternary32, Unary32};

multiversion! {
    /// `d = op(a)` in the lanes of `mask`.
    unary32(w: &mut [Words], op: Unary32, flags: Flags, d: Reg, a: Reg, mask: u32) = unary32_body
}
multiversion! {
    /// `d = op(a, b)` in the lanes of `mask`.
    binary32(w: &mut [Words], op: Binary32, flags: Flags, regs: [Reg; 3], mask: u32) = binary32_body
}
multiversion! {
    /// `d = op(a, b, c)` in the lanes of `mask`.
    ternary32(w: &mut [Words], op: Ternary32, flags: Flags, regs: [Reg; 4], mask: u32) = ternary32_body
}
multiversion! {
    /// `d = lut(a, b, c)` in the lanes of `mask`.
    lop3(w: &mut [Words], lut: u8, regs: [Reg; 4], mask: u32) = lop3_body
}

/// Sign of a 16-bit value in a zero-extended plane.
#[inline(always)]
const fn s16(value: u32) -> i32 {
    value as u16 as i16 as i32
}

const fn find_unsigned(value: u32) -> u32 {
    if value == 0 {
        u32::MAX
    } else {
        31 - value.leading_zeros()
    }
}

const fn find_signed(value: u32) -> u32 {
    find_unsigned(if (value as i32) < 0 { !value } else { value })
}

const fn shift_amount(position: u32) -> u32 {
    if position == u32::MAX {
        u32::MAX
    } else {
        31 - position
    }
}

#[inline(always)]
fn unary32_body<const AVX2: bool>(
    w: &mut [Words],
    op: Unary32,
    flags: Flags,
    d: Reg,
    a: Reg,
    mask: u32,
) {
    use Unary32 as U;
    let x = &w[a as usize].0;
    let Flags { ftz, sat } = flags;
    macro_rules! float {
        ($f:expr) => {
            if ftz {
                map1(x, |x: u32| {
                    n::finish($f(f32::from_bits(n::flush(x))), true, sat)
                })
            } else {
                map1(x, |x: u32| n::finish($f(f32::from_bits(x)), false, sat))
            }
        };
    }
    let out = match op {
        U::Mov => *x,
        U::Not => map1(x, |x: u32| !x),
        U::Not16 => map1(x, |x: u32| !x & 0xFFFF),
        U::Neg => map1(x, u32::wrapping_neg),
        U::Neg16 => map1(x, |x: u32| x.wrapping_neg() & 0xFFFF),
        U::Abs => map1(x, |x: u32| (x as i32).unsigned_abs()),
        U::Abs16 => map1(x, |x: u32| s16(x).unsigned_abs() & 0xFFFF),
        U::Popc => map1(x, u32::count_ones),
        U::Clz => map1(x, u32::leading_zeros),
        U::Brev => map1(x, u32::reverse_bits),
        U::FindU => map1(x, find_unsigned),
        U::FindS => map1(x, find_signed),
        U::FindShiftU => map1(x, |x: u32| shift_amount(find_unsigned(x))),
        U::FindShiftS => map1(x, |x: u32| shift_amount(find_signed(x))),
        U::Zext8 => map1(x, |x: u32| x & 0xFF),
        U::Zext16 => map1(x, |x: u32| x & 0xFFFF),
        U::Sext8 => map1(x, |x: u32| x as u8 as i8 as u32),
        U::Sext16 => map1(x, |x: u32| s16(x) as u32),
        U::FMov => float!(|x| x),
        U::FNeg => {
            if ftz {
                map1(x, |x: u32| n::flush(x) ^ 0x8000_0000)
            } else {
                map1(x, |x: u32| x ^ 0x8000_0000)
            }
        }
        U::FAbs => {
            if ftz {
                map1(x, |x: u32| n::flush(x) & 0x7FFF_FFFF)
            } else {
                map1(x, |x: u32| x & 0x7FFF_FFFF)
            }
        }
        U::Ex2 => float!(n::exp2),
        U::Lg2 => float!(|x: f32| f64::from(x).log2() as f32),
        U::Rcp => float!(|x: f32| 1.0 / x),
        U::Rsqrt => float!(|x: f32| (1.0 / f64::from(x).sqrt()) as f32),
        U::Sqrt => float!(f32::sqrt),
        U::Sin => float!(|x: f32| f64::from(x).sin() as f32),
        U::Cos => float!(|x: f32| f64::from(x).cos() as f32),
        U::Tanh => float!(|x: f32| f64::from(x).tanh() as f32),
        U::S32ToF32 => map1(x, |x: u32| (x as i32 as f32).to_bits()),
        U::U32ToF32 => map1(x, |x: u32| (x as f32).to_bits()),
        U::F32ToS32Trunc => map1(x, |x: u32| {
            f32::from_bits(n::flush_if(ftz, x)) as i32 as u32
        }),
        U::F16ToF32 => map1(x, |x: u32| n::flush_if(ftz, n::f16_to_f32(x))),
        U::BF16ToF32 => map1(x, |x: u32| n::flush_if(ftz, n::bf16_to_f32(x))),
        U::F32ToF16 => map1(x, n::f32_to_f16),
        U::F32ToBF16 => map1(x, n::f32_to_bf16),
    };
    put(&mut w[d as usize].0, &out, mask);
}

const fn shl(a: u32, by: u32) -> u32 {
    if by > 31 { 0 } else { a << by }
}

const fn shr(a: u32, by: u32) -> u32 {
    if by > 31 { 0 } else { a >> by }
}

const fn sar(a: i32, by: u32) -> u32 {
    (a >> if by > 31 { 31 } else { by }) as u32
}

#[inline(always)]
fn binary32_body<const AVX2: bool>(
    w: &mut [Words],
    op: Binary32,
    flags: Flags,
    regs: [Reg; 3],
    mask: u32,
) {
    use Binary32 as B;
    let [d, a, b] = regs;
    let (x, y) = (&w[a as usize].0, &w[b as usize].0);
    let Flags { ftz, sat } = flags;
    macro_rules! float {
        ($f:expr) => {
            if ftz {
                map2(x, y, |x: u32, y: u32| {
                    n::finish(
                        $f(f32::from_bits(n::flush(x)), f32::from_bits(n::flush(y))),
                        true,
                        sat,
                    )
                })
            } else {
                map2(x, y, |x: u32, y: u32| {
                    n::finish($f(f32::from_bits(x), f32::from_bits(y)), false, sat)
                })
            }
        };
    }
    macro_rules! int {
        ($f:expr) => {
            map2(x, y, $f)
        };
    }
    macro_rules! signed {
        ($f:expr) => {
            map2(x, y, |x: u32, y: u32| $f(x as i32, y as i32) as u32)
        };
    }
    macro_rules! signed16 {
        ($f:expr) => {
            map2(x, y, |x: u32, y: u32| $f(s16(x), s16(y)) as u32 & 0xFFFF)
        };
    }
    let out = match op {
        B::Add => int!(u32::wrapping_add),
        B::Add16 => int!(|x: u32, y: u32| x.wrapping_add(y) & 0xFFFF),
        B::Sub => int!(u32::wrapping_sub),
        B::Sub16 => int!(|x: u32, y: u32| x.wrapping_sub(y) & 0xFFFF),
        B::Mul => int!(u32::wrapping_mul),
        B::Mul16 => int!(|x: u32, y: u32| x.wrapping_mul(y) & 0xFFFF),
        B::MulHiS => signed!(|x: i32, y: i32| (i64::from(x) * i64::from(y)) >> 32),
        B::MulHiU => int!(|x: u32, y: u32| ((u64::from(x) * u64::from(y)) >> 32) as u32),
        B::MulHiS16 => signed16!(|x: i32, y: i32| (x * y) >> 16),
        B::MulHiU16 => int!(|x: u32, y: u32| x.wrapping_mul(y) >> 16),
        B::MulWideS16 => int!(|x: u32, y: u32| (s16(x) * s16(y)) as u32),
        // Division by zero gives all ones on NVIDIA GPUs; the ISA leaves it open.
        B::DivS => signed!(|x: i32, y: i32| if y == 0 { -1 } else { x.wrapping_div(y) }),
        B::DivU => int!(|x: u32, y: u32| x.checked_div(y).unwrap_or(u32::MAX)),
        B::DivS16 => signed16!(|x: i32, y: i32| if y == 0 { -1 } else { x.wrapping_div(y) }),
        B::RemS => signed!(|x: i32, y: i32| if y == 0 { x } else { x.wrapping_rem(y) }),
        B::RemU => int!(|x: u32, y: u32| x.checked_rem(y).unwrap_or(x)),
        B::RemS16 => signed16!(|x: i32, y: i32| if y == 0 { x } else { x.wrapping_rem(y) }),
        B::MinS => signed!(i32::min),
        B::MinU => int!(u32::min),
        B::MinS16 => signed16!(i32::min),
        B::MaxS => signed!(i32::max),
        B::MaxU => int!(u32::max),
        B::MaxS16 => signed16!(i32::max),
        B::And => int!(|x: u32, y: u32| x & y),
        B::Or => int!(|x: u32, y: u32| x | y),
        B::Xor => int!(|x: u32, y: u32| x ^ y),
        B::Shl => int!(shl),
        B::Shl16 => int!(|x: u32, y: u32| shl(x, y) & 0xFFFF),
        B::ShrU => int!(shr),
        B::ShrS => int!(|x: u32, y: u32| sar(x as i32, y)),
        B::ShrS16 => int!(|x: u32, y: u32| sar(s16(x), y) & 0xFFFF),
        B::Mul24S => signed!(|x: i32, y: i32| (x << 8 >> 8).wrapping_mul(y << 8 >> 8)),
        B::Mul24U => int!(|x: u32, y: u32| (x & 0xFF_FFFF).wrapping_mul(y & 0xFF_FFFF)),
        B::AddSatS => signed!(i32::saturating_add),
        B::SubSatS => signed!(i32::saturating_sub),
        B::FAdd => float!(|x: f32, y: f32| x + y),
        B::FSub => float!(|x: f32, y: f32| x - y),
        B::FMul => float!(|x: f32, y: f32| x * y),
        B::FDiv => float!(|x: f32, y: f32| x / y),
        B::FMin => float!(n::min),
        B::FMax => float!(n::max),
        B::FMinNan => float!(|x: f32, y: f32| if x.is_nan() || y.is_nan() {
            f32::NAN
        } else {
            n::min(x, y)
        }),
        B::FMaxNan => float!(|x: f32, y: f32| if x.is_nan() || y.is_nan() {
            f32::NAN
        } else {
            n::max(x, y)
        }),
        B::FCopySign => int!(|x: u32, y: u32| x & 0x7FFF_FFFF | y & 0x8000_0000),
        B::PackF16 => int!(|x: u32, y: u32| n::f32_to_f16(x) << 16 | n::f32_to_f16(y)),
        B::PackBF16 => int!(|x: u32, y: u32| n::f32_to_bf16(x) << 16 | n::f32_to_bf16(y)),
    };
    put(&mut w[d as usize].0, &out, mask);
}

const fn funnel(lo: u32, hi: u32) -> u64 {
    (hi as u64) << 32 | lo as u64
}

#[inline(always)]
fn ternary32_body<const AVX2: bool>(
    w: &mut [Words],
    op: Ternary32,
    flags: Flags,
    regs: [Reg; 4],
    mask: u32,
) {
    use Ternary32 as T;
    let [d, a, b, c] = regs;
    let (x, y, z) = (&w[a as usize].0, &w[b as usize].0, &w[c as usize].0);
    let Flags { ftz, sat } = flags;
    macro_rules! int {
        ($f:expr) => {
            map3(x, y, z, $f)
        };
    }
    let out = match op {
        T::Mad => int!(|x: u32, y: u32, z: u32| x.wrapping_mul(y).wrapping_add(z)),
        T::Mad16 => int!(|x: u32, y: u32, z: u32| x.wrapping_mul(y).wrapping_add(z) & 0xFFFF),
        T::MadHiS => int!(|x: u32, y: u32, z: u32| {
            (((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32).wrapping_add(z)
        }),
        T::MadHiU => int!(
            |x: u32, y: u32, z: u32| (((u64::from(x) * u64::from(y)) >> 32) as u32).wrapping_add(z)
        ),
        T::MadWideS16 => int!(|x: u32, y: u32, z: u32| ((s16(x) * s16(y)) as u32).wrapping_add(z)),
        T::Prmt => int!(n::prmt),
        T::ShfLWrap => int!(|x: u32, y: u32, z: u32| (funnel(x, y) << (z & 31) >> 32) as u32),
        T::ShfLClamp => int!(|x: u32, y: u32, z: u32| (funnel(x, y) << z.min(32) >> 32) as u32),
        T::ShfRWrap => int!(|x: u32, y: u32, z: u32| (funnel(x, y) >> (z & 31)) as u32),
        T::ShfRClamp => int!(|x: u32, y: u32, z: u32| (funnel(x, y) >> z.min(32)) as u32),
        T::BfeU => {
            int!(|x: u32, y: u32, z: u32| n::bit_field(u64::from(x), y, z, 32, false) as u32)
        }
        T::BfeS => int!(|x: u32, y: u32, z: u32| n::bit_field(u64::from(x), y, z, 32, true) as u32),
        T::Dp4aSS => int!(|x: u32, y: u32, z: u32| (0..4).fold(z, |sum, i| {
            let byte = |v: u32| i32::from((v >> (8 * i)) as u8 as i8);
            sum.wrapping_add((byte(x) * byte(y)) as u32)
        })),
        T::Dp4aUU => int!(|x: u32, y: u32, z: u32| (0..4).fold(z, |sum, i| {
            let byte = |v: u32| (v >> (8 * i)) & 0xFF;
            sum.wrapping_add(byte(x) * byte(y))
        })),
        T::SadS => int!(|x: u32, y: u32, z: u32| (x as i32).abs_diff(y as i32).wrapping_add(z)),
        T::SadU => int!(|x: u32, y: u32, z: u32| x.abs_diff(y).wrapping_add(z)),
        T::SlctS => int!(|x: u32, y: u32, z: u32| if z as i32 >= 0 { x } else { y }),
        T::SlctF => int!(
            |x: u32, y: u32, z: u32| if f32::from_bits(n::flush_if(ftz, z)) >= 0.0 {
                x
            } else {
                y
            }
        ),
        T::FFma => {
            if ftz {
                int!(|x: u32, y: u32, z: u32| {
                    let [x, y, z] = [x, y, z].map(|v| f32::from_bits(n::flush(v)));
                    n::finish(n::fma::<AVX2>(x, y, z), true, sat)
                })
            } else {
                int!(|x: u32, y: u32, z: u32| {
                    let [x, y, z] = [x, y, z].map(f32::from_bits);
                    n::finish(n::fma::<AVX2>(x, y, z), false, sat)
                })
            }
        }
    };
    put(&mut w[d as usize].0, &out, mask);
}

#[inline(always)]
fn lop3_body<const AVX2: bool>(w: &mut [Words], lut: u8, regs: [Reg; 4], mask: u32) {
    let [d, a, b, c] = regs;
    let (x, y, z) = (&w[a as usize].0, &w[b as usize].0, &w[c as usize].0);
    let out = match lut {
        // The tables that compilers emit most.
        0xEA => map3(x, y, z, |x, y, z| x & y | z),
        0xF8 => map3(x, y, z, |x, y, z| x | y & z),
        0x96 => map3(x, y, z, |x, y, z| x ^ y ^ z),
        0x80 => map3(x, y, z, |x, y, z| x & y & z),
        0xFE => map3(x, y, z, |x, y, z| x | y | z),
        0xCA => map3(x, y, z, |x, y, z| x & y | !x & z),
        _ => map3(x, y, z, |x, y, z| n::lop3(lut, x, y, z)),
    };
    put(&mut w[d as usize].0, &out, mask);
}
