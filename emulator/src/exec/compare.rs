//! Comparisons and selections over a warp. A predicate is one bit a lane.

use super::lanes::{Doubles, LANES, Words, multiversion, put};
use super::numeric as n;
use crate::lower::op::{Cmp, CmpTy, Reg};

multiversion! {
    /// The lanes where a comparison of 32-bit registers holds.
    compare32(w: &[Words], ty: CmpTy, cmp: Cmp, ftz: bool, a: Reg, b: Reg) -> u32 = compare32_body
}
multiversion! {
    /// The lanes where a comparison of 64-bit registers holds.
    compare64(v: &[Doubles], ty: CmpTy, cmp: Cmp, a: Reg, b: Reg) -> u32 = compare64_body
}
multiversion! {
    /// `d = p ? a : b`.
    select32(w: &mut [Words], regs: [Reg; 3], p: u32, mask: u32) = select32_body
}
multiversion! {
    /// `d = p ? a : b`.
    select64(v: &mut [Doubles], regs: [Reg; 3], p: u32, mask: u32) = select64_body
}

/// Collects one bit a lane: bytes first, which vector code packs well.
#[inline(always)]
fn bits<A: Copy>(a: &[A; LANES], b: &[A; LANES], f: impl Fn(A, A) -> bool) -> u32 {
    let mut out = 0;
    for lane in 0..LANES {
        out |= u32::from(f(a[lane], b[lane])) << lane;
    }
    out
}

#[inline(always)]
fn ordered<A: Copy + PartialOrd>(cmp: Cmp, a: &[A; LANES], b: &[A; LANES]) -> u32 {
    match cmp {
        Cmp::Eq => bits(a, b, |a, b| a == b),
        Cmp::Ne => bits(a, b, |a, b| a != b),
        Cmp::Lt => bits(a, b, |a, b| a < b),
        Cmp::Le => bits(a, b, |a, b| a <= b),
        Cmp::Gt => bits(a, b, |a, b| a > b),
        Cmp::Ge => bits(a, b, |a, b| a >= b),
        _ => 0,
    }
}

/// Ordered comparisons are false with NaN; `Ne` too, unlike Rust's.
#[inline(always)]
#[allow(
    clippy::neg_cmp_op_on_partial_ord,
    clippy::double_comparisons,
    reason = "the shorter forms treat NaN otherwise"
)]
fn floats<A: Copy + PartialOrd>(cmp: Cmp, a: &[A; LANES], b: &[A; LANES]) -> u32 {
    #[allow(clippy::eq_op)]
    let nan = |a: A, b: A| a != a || b != b;
    match cmp {
        Cmp::Ne => bits(a, b, |a, b| a < b || a > b),
        Cmp::Equ => bits(a, b, |a, b| !(a < b || a > b)),
        Cmp::Neu => bits(a, b, |a, b| a != b),
        Cmp::Ltu => bits(a, b, |a, b| !(a >= b)),
        Cmp::Leu => bits(a, b, |a, b| !(a > b)),
        Cmp::Gtu => bits(a, b, |a, b| !(a <= b)),
        Cmp::Geu => bits(a, b, |a, b| !(a < b)),
        Cmp::Num => bits(a, b, |a, b| !nan(a, b)),
        Cmp::Nan => bits(a, b, nan),
        cmp => ordered(cmp, a, b),
    }
}

#[inline(always)]
fn compare32_body<const AVX2: bool>(
    w: &[Words],
    ty: CmpTy,
    cmp: Cmp,
    ftz: bool,
    a: Reg,
    b: Reg,
) -> u32 {
    let (x, y) = (&w[a as usize].0, &w[b as usize].0);
    match ty {
        CmpTy::S32 => ordered(cmp, &x.map(|v| v as i32), &y.map(|v| v as i32)),
        CmpTy::S16 => ordered(cmp, &x.map(|v| v as i16), &y.map(|v| v as i16)),
        CmpTy::F32 if ftz => floats(
            cmp,
            &x.map(|v| f32::from_bits(n::flush(v))),
            &y.map(|v| f32::from_bits(n::flush(v))),
        ),
        CmpTy::F32 => floats(cmp, &x.map(f32::from_bits), &y.map(f32::from_bits)),
        CmpTy::F16 => {
            let wide = |v: u32| f32::from_bits(n::f16_to_f32(v & 0xFFFF));
            floats(cmp, &x.map(wide), &y.map(wide))
        }
        CmpTy::BF16 => {
            let wide = |v: u32| f32::from_bits(n::bf16_to_f32(v & 0xFFFF));
            floats(cmp, &x.map(wide), &y.map(wide))
        }
        _ => ordered(cmp, x, y),
    }
}

#[inline(always)]
fn compare64_body<const AVX2: bool>(v: &[Doubles], ty: CmpTy, cmp: Cmp, a: Reg, b: Reg) -> u32 {
    let (x, y) = (&v[a as usize].0, &v[b as usize].0);
    match ty {
        CmpTy::S64 => ordered(cmp, &x.map(|v| v as i64), &y.map(|v| v as i64)),
        CmpTy::F64 => floats(cmp, &x.map(f64::from_bits), &y.map(f64::from_bits)),
        _ => ordered(cmp, x, y),
    }
}

#[inline(always)]
fn select32_body<const AVX2: bool>(w: &mut [Words], regs: [Reg; 3], p: u32, mask: u32) {
    let [d, a, b] = regs;
    let mut out = w[b as usize].0;
    put(&mut out, &w[a as usize].0, p);
    put(&mut w[d as usize].0, &out, mask);
}

#[inline(always)]
fn select64_body<const AVX2: bool>(v: &mut [Doubles], regs: [Reg; 3], p: u32, mask: u32) {
    let [d, a, b] = regs;
    let mut out = v[b as usize].0;
    put(&mut out, &v[a as usize].0, p);
    put(&mut v[d as usize].0, &out, mask);
}
