//! 64-bit arithmetic over a warp, and conversions between the register files.

use super::lanes::{Doubles, Words, map1, map2, map3, multiversion, put};
use super::numeric as n;
use crate::lower::op::{Binary64, Narrow, Reg, Shift64, Ternary64, Unary64, Widen};

multiversion! {
    /// `d = op(a)` in the lanes of `mask`.
    unary64(v: &mut [Doubles], op: Unary64, d: Reg, a: Reg, mask: u32) = unary64_body
}
multiversion! {
    /// `d = op(a, b)` in the lanes of `mask`.
    binary64(v: &mut [Doubles], op: Binary64, regs: [Reg; 3], mask: u32) = binary64_body
}
multiversion! {
    /// `d = a op b` with a 32-bit amount.
    shift64(v: &mut [Doubles], w: &[Words], op: Shift64, regs: [Reg; 3], mask: u32) = shift64_body
}
multiversion! {
    /// 32 to 64 bits.
    widen(v: &mut [Doubles], w: &[Words], op: Widen, d: Reg, a: Reg, mask: u32) = widen_body
}
multiversion! {
    /// 64 to 32 bits.
    narrow(v: &[Doubles], w: &mut [Words], op: Narrow, d: Reg, a: Reg, mask: u32) = narrow_body
}
multiversion! {
    /// The whole product of two 32-bit values.
    mul_wide(v: &mut [Doubles], w: &[Words], signed: bool, regs: [Reg; 3], mask: u32) = mul_wide_body
}
multiversion! {
    /// The whole product of two 32-bit values and a 64-bit addend.
    mad_wide(v: &mut [Doubles], w: &[Words], signed: bool, regs: [Reg; 4], mask: u32) = mad_wide_body
}

#[inline(always)]
fn unary64_body<const AVX2: bool>(v: &mut [Doubles], op: Unary64, d: Reg, a: Reg, mask: u32) {
    use Unary64 as U;
    let x = &v[a as usize].0;
    let double = |f: fn(f64) -> f64| map1(x, |x: u64| f(f64::from_bits(x)).to_bits());
    let out = match op {
        U::Mov => *x,
        U::Not => map1(x, |x: u64| !x),
        U::Neg => map1(x, u64::wrapping_neg),
        U::Abs => map1(x, |x: u64| (x as i64).unsigned_abs()),
        U::Brev => map1(x, u64::reverse_bits),
        U::DNeg => map1(x, |x: u64| x ^ 1 << 63),
        U::DAbs => map1(x, |x: u64| x & !(1 << 63)),
        U::DRcp => double(|x| 1.0 / x),
        U::DSqrt => double(f64::sqrt),
        U::DRsqrt => double(|x| 1.0 / x.sqrt()),
    };
    put(&mut v[d as usize].0, &out, mask);
}

#[inline(always)]
fn binary64_body<const AVX2: bool>(v: &mut [Doubles], op: Binary64, regs: [Reg; 3], mask: u32) {
    let [d, a, b] = regs;
    use Binary64 as B;
    let (x, y) = (&v[a as usize].0, &v[b as usize].0);
    macro_rules! int {
        ($f:expr) => {
            map2(x, y, $f)
        };
    }
    macro_rules! signed {
        ($f:expr) => {
            map2(x, y, |x: u64, y: u64| $f(x as i64, y as i64) as u64)
        };
    }
    macro_rules! double {
        ($f:expr) => {
            map2(x, y, |x: u64, y: u64| {
                f64::to_bits($f(f64::from_bits(x), f64::from_bits(y)))
            })
        };
    }
    let out = match op {
        B::Add => int!(u64::wrapping_add),
        B::Sub => int!(u64::wrapping_sub),
        B::Mul => int!(u64::wrapping_mul),
        B::MulHiS => signed!(|x: i64, y: i64| (i128::from(x) * i128::from(y)) >> 64),
        B::MulHiU => int!(|x: u64, y: u64| ((u128::from(x) * u128::from(y)) >> 64) as u64),
        B::DivS => signed!(|x: i64, y: i64| if y == 0 { -1 } else { x.wrapping_div(y) }),
        B::DivU => int!(|x: u64, y: u64| x.checked_div(y).unwrap_or(u64::MAX)),
        B::RemS => signed!(|x: i64, y: i64| if y == 0 { x } else { x.wrapping_rem(y) }),
        B::RemU => int!(|x: u64, y: u64| x.checked_rem(y).unwrap_or(x)),
        B::MinS => signed!(i64::min),
        B::MinU => int!(u64::min),
        B::MaxS => signed!(i64::max),
        B::MaxU => int!(u64::max),
        B::And => int!(|x: u64, y: u64| x & y),
        B::Or => int!(|x: u64, y: u64| x | y),
        B::Xor => int!(|x: u64, y: u64| x ^ y),
        B::DAdd => double!(|x: f64, y: f64| x + y),
        B::DSub => double!(|x: f64, y: f64| x - y),
        B::DMul => double!(|x: f64, y: f64| x * y),
        B::DDiv => double!(|x: f64, y: f64| x / y),
        B::DMin => double!(f64::min),
        B::DMax => double!(f64::max),
    };
    put(&mut v[d as usize].0, &out, mask);
}

/// `d = op(a, b, c)`; rare enough for one version.
pub(super) fn ternary64(v: &mut [Doubles], op: Ternary64, regs: [Reg; 4], mask: u32) {
    let [d, a, b, c] = regs;
    let (x, y, z) = (&v[a as usize].0, &v[b as usize].0, &v[c as usize].0);
    let out = match op {
        Ternary64::Mad => map3(x, y, z, |x: u64, y: u64, z: u64| {
            x.wrapping_mul(y).wrapping_add(z)
        }),
        Ternary64::DFma => map3(x, y, z, |x: u64, y: u64, z: u64| {
            f64::from_bits(x)
                .mul_add(f64::from_bits(y), f64::from_bits(z))
                .to_bits()
        }),
    };
    put(&mut v[d as usize].0, &out, mask);
}

#[inline(always)]
fn shift64_body<const AVX2: bool>(
    v: &mut [Doubles],
    w: &[Words],
    op: Shift64,
    regs: [Reg; 3],
    mask: u32,
) {
    let [d, a, b] = regs;
    let (x, y) = (&v[a as usize].0, &w[b as usize].0);
    let out = match op {
        Shift64::Shl => map2(x, y, |x: u64, y: u32| if y > 63 { 0 } else { x << y }),
        Shift64::ShrU => map2(x, y, |x: u64, y: u32| if y > 63 { 0 } else { x >> y }),
        Shift64::ShrS => map2(x, y, |x: u64, y: u32| (x as i64 >> y.min(63)) as u64),
    };
    put(&mut v[d as usize].0, &out, mask);
}

#[inline(always)]
fn widen_body<const AVX2: bool>(
    v: &mut [Doubles],
    w: &[Words],
    op: Widen,
    d: Reg,
    a: Reg,
    mask: u32,
) {
    let x = &w[a as usize].0;
    let out = match op {
        Widen::Zext => map1(x, |x: u32| u64::from(x)),
        Widen::Sext => map1(x, |x: u32| x as i32 as u64),
    };
    put(&mut v[d as usize].0, &out, mask);
}

#[inline(always)]
fn narrow_body<const AVX2: bool>(
    v: &[Doubles],
    w: &mut [Words],
    op: Narrow,
    d: Reg,
    a: Reg,
    mask: u32,
) {
    let x = &v[a as usize].0;
    let find = |x: u64| {
        if x == 0 {
            u32::MAX
        } else {
            63 - x.leading_zeros()
        }
    };
    let magnitude = |x: u64| if (x as i64) < 0 { !x } else { x };
    let shift = |at: u32| if at == u32::MAX { at } else { 63 - at };
    let out = match op {
        Narrow::Trunc => map1(x, |x: u64| x as u32),
        Narrow::Popc => map1(x, u64::count_ones),
        Narrow::Clz => map1(x, u64::leading_zeros),
        Narrow::FindU => map1(x, find),
        Narrow::FindS => map1(x, |x: u64| find(magnitude(x))),
        Narrow::FindShiftU => map1(x, |x: u64| shift(find(x))),
        Narrow::FindShiftS => map1(x, |x: u64| shift(find(magnitude(x)))),
    };
    put(&mut w[d as usize].0, &out, mask);
}

#[inline(always)]
const fn product(signed: bool, x: u32, y: u32) -> u64 {
    if signed {
        (x as i32 as i64 * y as i32 as i64) as u64
    } else {
        x as u64 * y as u64
    }
}

#[inline(always)]
fn mul_wide_body<const AVX2: bool>(
    v: &mut [Doubles],
    w: &[Words],
    signed: bool,
    regs: [Reg; 3],
    mask: u32,
) {
    let [d, a, b] = regs;
    let (x, y) = (&w[a as usize].0, &w[b as usize].0);
    let out = if signed {
        map2(x, y, |x: u32, y: u32| product(true, x, y))
    } else {
        map2(x, y, |x: u32, y: u32| product(false, x, y))
    };
    put(&mut v[d as usize].0, &out, mask);
}

#[inline(always)]
fn mad_wide_body<const AVX2: bool>(
    v: &mut [Doubles],
    w: &[Words],
    signed: bool,
    regs: [Reg; 4],
    mask: u32,
) {
    let [d, a, b, c] = regs;
    let (x, y, z) = (&w[a as usize].0, &w[b as usize].0, &v[c as usize].0);
    let out = map3(x, y, z, |x: u32, y: u32, z: u64| {
        product(signed, x, y).wrapping_add(z)
    });
    put(&mut v[d as usize].0, &out, mask);
}

/// `bfe` and `bfi` on 64 bits.
pub(super) fn bit_field64(x: u64, position: u32, length: u32, signed: bool) -> u64 {
    n::bit_field(x, position, length, 64, signed)
}
