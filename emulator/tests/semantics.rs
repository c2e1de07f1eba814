//! What each instruction computes, against values worked out by hand or by Rust.

mod common;

use common::{f, lanes, module, run, s};

/// `(body, a, b, c, expected)`.
type Case = (&'static str, u64, u64, u64, u64);

fn check(cases: &[Case]) {
    for (body, a, b, c, expected) in cases {
        let got = lanes(body, &[[*a, *b, *c]])[0];
        assert_eq!(
            got, *expected,
            "{body} on {a:#x}, {b:#x}, {c:#x}: {got:#x} instead of {expected:#x}"
        );
    }
}

const NAN: u64 = 0x7FFF_FFFF;

#[test]
fn integer_arithmetic_wraps_and_keeps_signs() {
    check(&[
        ("add.s32 %r9, %r1, %r2;", s(i32::MAX), 1, 0, s(i32::MIN)),
        ("add.s32 %r9, %r1, -7;", 3, 0, 0, s(-4)),
        ("sub.u32 %r9, %r1, %r2;", 0, 1, 0, s(-1)),
        ("add.sat.s32 %r9, %r1, %r2;", s(i32::MAX), 1, 0, s(i32::MAX)),
        ("mul.lo.s32 %r9, %r1, %r2;", s(-3), 5, 0, s(-15)),
        ("mul.hi.s32 %r9, %r1, %r2;", s(-1), 2, 0, s(-1)),
        ("mul.hi.u32 %r9, %r1, %r2;", s(-1), 2, 0, 1),
        ("mul.wide.s32 %rd9, %r1, %r2;", s(-1), 2, 0, -2i64 as u64),
        ("mul.wide.u32 %rd9, %r1, %r2;", s(-1), 2, 0, 0x1_FFFF_FFFE),
        ("mul.wide.s16 %r9, %h1, %h2;", 0xFFFF, 2, 0, s(-2)),
        ("mul.wide.u16 %r9, %h1, %h2;", 0xFFFF, 2, 0, 0x1_FFFE),
        ("mad.lo.s32 %r9, %r1, %r2, %r3;", 3, 4, 5, 17),
        ("mad.wide.s32 %rd9, %r1, %r2, %rd3;", s(-1), 1, 5, 4),
        ("mad.lo.s64 %rd9, %rd1, %rd2, %rd3;", 3, 4, 5, 17),
        ("div.s32 %r9, %r1, %r2;", s(-7), 2, 0, s(-3)),
        ("rem.s32 %r9, %r1, %r2;", s(-7), 2, 0, s(-1)),
        ("div.u32 %r9, %r1, %r2;", 7, 0, 0, 0xFFFF_FFFF),
        ("rem.u64 %rd9, %rd1, %rd2;", 100, 7, 0, 2),
        (
            "div.s64 %rd9, %rd1, %rd2;",
            -100i64 as u64,
            7,
            0,
            -14i64 as u64,
        ),
        ("min.s32 %r9, %r1, %r2;", s(-1), 1, 0, s(-1)),
        ("min.u32 %r9, %r1, %r2;", s(-1), 1, 0, 1),
        ("max.s64 %rd9, %rd1, %rd2;", u64::MAX, 1, 0, 1),
        ("neg.s32 %r9, %r1;", 5, 0, 0, s(-5)),
        ("abs.s32 %r9, %r1;", s(-5), 0, 0, 5),
        ("sad.s32 %r9, %r1, %r2, %r3;", s(-5), 5, 1, 11),
        ("add.s16 %h9, %h1, %h2;", 0xFFFF, 2, 0, 1),
        ("mul.lo.u16 %h9, %h1, %h2;", 0x101, 0x101, 0, 0x0201),
        ("min.s16 %h9, %h1, %h2;", 0xFFFF, 1, 0, 0xFFFF),
        ("add.s64 %rd9, %rd1, %rd2;", u64::MAX, 2, 0, 1),
        ("mul.hi.u64 %rd9, %rd1, %rd2;", u64::MAX, 2, 0, 1),
        (
            "dp4a.s32.s32 %r9, %r1, %r2, %r3;",
            0x01FF_0102,
            0x0203_0405,
            10,
            10 + 2 - 3 + 4 + 10,
        ),
    ]);
}

#[test]
fn shifts_clamp_and_bits_are_found() {
    check(&[
        ("shl.b32 %r9, %r1, %r2;", 1, 31, 0, 1 << 31),
        ("shl.b32 %r9, %r1, %r2;", 1, 32, 0, 0),
        ("shr.u32 %r9, %r1, %r2;", s(-1), 40, 0, 0),
        ("shr.s32 %r9, %r1, %r2;", s(-8), 1, 0, s(-4)),
        ("shr.s32 %r9, %r1, %r2;", s(-8), 99, 0, s(-1)),
        ("shl.b64 %rd9, %rd1, %r2;", 1, 63, 0, 1 << 63),
        ("shr.s64 %rd9, %rd1, %r2;", u64::MAX, 70, 0, u64::MAX),
        ("shr.s16 %h9, %h1, %r2;", 0x8000, 1, 0, 0xC000),
        ("shl.b16 %h9, %h1, %r2;", 0x8001, 1, 0, 2),
        ("shf.l.wrap.b32 %r9, %r1, %r2, %r3;", 0x8000_0000, 1, 1, 3),
        ("shf.r.wrap.b32 %r9, %r1, %r2, %r3;", 2, 1, 1, 0x8000_0001),
        ("shf.r.clamp.b32 %r9, %r1, %r2, %r3;", 2, 7, 40, 7),
        ("popc.b32 %r9, %r1;", 0xF0F0, 0, 0, 8),
        ("popc.b64 %r9, %rd1;", u64::MAX, 0, 0, 64),
        ("clz.b32 %r9, %r1;", 1, 0, 0, 31),
        ("clz.b64 %r9, %rd1;", 1, 0, 0, 63),
        ("brev.b32 %r9, %r1;", 1, 0, 0, 1 << 31),
        ("bfind.u32 %r9, %r1;", 0x100, 0, 0, 8),
        ("bfind.u32 %r9, %r1;", 0, 0, 0, 0xFFFF_FFFF),
        ("bfind.s32 %r9, %r1;", s(-1), 0, 0, 0xFFFF_FFFF),
        ("bfind.shiftamt.u32 %r9, %r1;", 0x100, 0, 0, 23),
        ("bfe.u32 %r9, %r1, %r2, %r3;", 0xABCD, 4, 8, 0xBC),
        ("bfe.s32 %r9, %r1, 8, 8;", 0x8000, 0, 0, s(-128)),
        ("bfe.u64 %rd9, %rd1, 60, 8;", u64::MAX, 0, 0, 15),
        ("bfi.b32 %r9, %r1, %r2, 8, 8;", 0xFF, 0, 0, 0xFF00),
        (
            "bfi.b64 %rd9, %rd1, %rd2, 32, 8;",
            0xAB,
            1,
            0,
            0xAB_0000_0001,
        ),
        (
            "lop3.b32 %r9, %r1, %r2, %r3, 0x1B;",
            0xF0,
            0xCC,
            0xAA,
            0xFFFF_FF1B,
        ),
        ("lop3.b32 %r9, %r1, %r2, %r3, 0xea;", 0xF0, 0xCC, 0xAA, 0xEA),
        (
            "prmt.b32 %r9, %r1, %r2, 0x5410;",
            0x2222_1111,
            0x4444_3333,
            0,
            0x3333_1111,
        ),
        ("not.b32 %r9, %r1;", 0, 0, 0, 0xFFFF_FFFF),
        ("not.b16 %h9, %h1;", 0, 0, 0, 0xFFFF),
        ("xor.b64 %rd9, %rd1, %rd2;", 5, 3, 0, 6),
        ("and.b32 %r9, %r1, 0xF0;", 0xABC, 0, 0, 0xB0),
    ]);
}

#[test]
fn floats_follow_ieee_with_one_nan_and_flush_when_asked() {
    let tiny = f(1e-40);
    check(&[
        ("add.f32 %f9, %f1, %f2;", f(1.5), f(2.25), 0, f(3.75)),
        (
            "sub.f32 %f9, %f1, %f2;",
            f(f32::INFINITY),
            f(f32::INFINITY),
            0,
            NAN,
        ),
        ("mul.f32 %f9, %f1, %f2;", tiny, f(1.0), 0, tiny),
        ("mul.ftz.f32 %f9, %f1, %f2;", tiny, f(1.0), 0, 0),
        (
            "add.ftz.f32 %f9, %f1, %f2;",
            tiny ^ 0x8000_0000,
            f(-0.0),
            0,
            0x8000_0000,
        ),
        ("mul.f32 %f9, %f1, 0f3F000000;", f(3.0), 0, 0, f(1.5)),
        (
            "fma.rn.f32 %f9, %f1, %f2, %f3;",
            f(1.0 + f32::EPSILON),
            f(1.0 - f32::EPSILON),
            f(-1.0),
            f(-1.4210855e-14),
        ),
        (
            "fma.rn.ftz.f32 %f9, %f1, %f2, %f3;",
            f(2.0),
            f(3.0),
            tiny,
            f(6.0),
        ),
        ("add.sat.f32 %f9, %f1, %f2;", f(1.0), f(1.0), 0, f(1.0)),
        ("add.sat.f32 %f9, %f1, %f2;", NAN, f(1.0), 0, 0),
        ("min.f32 %f9, %f1, %f2;", NAN, f(1.0), 0, f(1.0)),
        ("max.f32 %f9, %f1, %f2;", f(-0.0), f(0.0), 0, 0),
        ("max.NaN.f32 %f9, %f1, %f2;", NAN, f(1.0), 0, NAN),
        ("neg.f32 %f9, %f1;", f(1.0), 0, 0, f(-1.0)),
        ("abs.f32 %f9, %f1;", f(-1.0), 0, 0, f(1.0)),
        ("copysign.f32 %f9, %f1, %f2;", f(-1.0), f(3.0), 0, f(-3.0)),
        ("ex2.approx.ftz.f32 %f9, %f1;", f(-3.0), 0, 0, f(0.125)),
        ("ex2.approx.f32 %f9, %f1;", f(f32::NEG_INFINITY), 0, 0, 0),
        ("ex2.approx.ftz.f32 %f9, %f1;", f(-130.0), 0, 0, 0),
        ("ex2.approx.f32 %f9, %f1;", NAN, 0, 0, NAN),
        ("lg2.approx.f32 %f9, %f1;", f(8.0), 0, 0, f(3.0)),
        ("lg2.approx.f32 %f9, %f1;", 0, 0, 0, f(f32::NEG_INFINITY)),
        ("rcp.approx.ftz.f32 %f9, %f1;", f(4.0), 0, 0, f(0.25)),
        (
            "rcp.approx.f32 %f9, %f1;",
            f(-0.0),
            0,
            0,
            f(f32::NEG_INFINITY),
        ),
        ("rsqrt.approx.f32 %f9, %f1;", f(16.0), 0, 0, f(0.25)),
        ("sqrt.rn.f32 %f9, %f1;", f(2.0), 0, 0, f(2f32.sqrt())),
        ("div.full.f32 %f9, %f1, %f2;", f(1.0), f(4.0), 0, f(0.25)),
        (
            "slct.f32.s32 %f9, %f1, %f2, %r3;",
            f(1.0),
            f(2.0),
            s(-1),
            f(2.0),
        ),
        (
            "fma.rn.f64 %fd9, %fd1, %fd2, %fd3; mov.b64 %rd9, %fd9;",
            2f64.to_bits(),
            3f64.to_bits(),
            1f64.to_bits(),
            7f64.to_bits(),
        ),
    ]);
}

#[test]
fn half_arithmetic_rounds_once() {
    check(&[
        (
            "mul.f16x2 %r9, %r1, %r2;",
            0x4000_3C00,
            0x4200_4000,
            0,
            0x4600_4000,
        ),
        ("add.f16 %h9, %h1, %h2;", 0x3C00, 0x1000, 0, 0x3C00),
        (
            "fma.rn.f16 %h9, %h1, %h2, %h3;",
            0x3C01,
            0x3C01,
            0xBC02,
            0x0010,
        ),
        (
            "fma.rn.f16x2 %r9, %r1, %r2, %r3;",
            0x4000_4000,
            0x4200_4200,
            0x3C00_3C00,
            0x4700_4700,
        ),
        (
            "mul.f16x2 %r9, %r1, %r2;",
            0x7BFF_FC00,
            0x4000_0000,
            0,
            0x7C00_7FFF,
        ),
        (
            "fma.rn.bf16x2 %r9, %r1, %r2, %r3;",
            0x4000_4000,
            0x4040_4040,
            0x3F80_3F80,
            0x40E0_40E0,
        ),
        (
            "max.bf16x2 %r9, %r1, %r2;",
            0x7FC0_4000,
            0x3F80_4040,
            0,
            0x3F80_4040,
        ),
        ("neg.f16x2 %r9, %r1;", 0x3C00_BC00, 0, 0, 0xBC00_3C00),
        ("abs.bf16 %h9, %h1;", 0xBF80, 0, 0, 0x3F80),
        ("ex2.approx.f16 %h9, %h1;", 0x4200, 0, 0, 0x4800),
    ]);
}

#[test]
fn conversions_extend_round_and_saturate() {
    check(&[
        ("cvt.s64.s32 %rd9, %r1;", s(-1), 0, 0, u64::MAX),
        ("cvt.u64.u32 %rd9, %r1;", s(-1), 0, 0, 0xFFFF_FFFF),
        ("cvt.u32.u64 %r9, %rd1;", 0x1_2345_6789, 0, 0, 0x2345_6789),
        ("cvt.s32.s16 %r9, %h1;", 0x8000, 0, 0, s(-32768)),
        ("cvt.s32.s8 %r9, %r1;", 0x80, 0, 0, s(-128)),
        ("cvt.u32.u8 %r9, %r1;", 0x180, 0, 0, 0x80),
        ("cvt.u16.u32 %h9, %r1;", 0x1_2345, 0, 0, 0x2345),
        ("cvt.rn.f32.s32 %f9, %r1;", s(-3), 0, 0, f(-3.0)),
        (
            "cvt.rn.f32.u32 %f9, %r1;",
            0xFFFF_FFFF,
            0,
            0,
            f(4294967296.0),
        ),
        ("cvt.rzi.s32.f32 %r9, %f1;", f(-2.7), 0, 0, s(-2)),
        ("cvt.rni.s32.f32 %r9, %f1;", f(2.5), 0, 0, 2),
        ("cvt.rzi.s32.f32 %r9, %f1;", f(f32::NAN), 0, 0, 0),
        ("cvt.rzi.s64.f32 %rd9, %f1;", f(f32::NAN), 0, 0, 1 << 63),
        ("cvt.rzi.u64.f32 %rd9, %f1;", f(f32::NAN), 0, 0, 1 << 63),
        ("cvt.rpi.u32.f32 %r9, %f1;", f(2.1), 0, 0, 3),
        ("cvt.rmi.f32.f32 %f9, %f1;", f(-2.5), 0, 0, f(-3.0)),
        ("cvt.rn.f16.f32 %h9, %f1;", f(1.0), 0, 0, 0x3C00),
        ("cvt.f32.f16 %f9, %h1;", 0x3C00, 0, 0, f(1.0)),
        ("cvt.rn.bf16.f32 %h9, %f1;", f(1.0), 0, 0, 0x3F80),
        ("cvt.f32.bf16 %f9, %h1;", 0x3F80, 0, 0, f(1.0)),
        (
            "cvt.rn.bf16x2.f32 %r9, %f1, %f2;",
            f(1.0),
            f(2.0),
            0,
            0x3F80_4000,
        ),
        (
            "cvt.rn.f16x2.f32 %r9, %f1, %f2;",
            f(1.0),
            f(2.0),
            0,
            0x3C00_4000,
        ),
        ("cvt.rz.f16.f32 %h9, %f1;", f(1.9999), 0, 0, 0x3FFF),
        (
            "cvt.f64.f32 %fd9, %f1; mov.b64 %rd9, %fd9;",
            f(1.5),
            0,
            0,
            1.5f64.to_bits(),
        ),
        ("cvt.rn.f32.f64 %f9, %fd1;", 1.5f64.to_bits(), 0, 0, f(1.5)),
        (
            "cvt.rn.f64.s32 %fd9, %r1; mov.b64 %rd9, %fd9;",
            s(-5),
            0,
            0,
            (-5f64).to_bits(),
        ),
        ("cvt.sat.u8.s32 %r9, %r1;", s(-5), 0, 0, 0),
        ("cvt.ftz.f32.f32 %f9, %f1;", f(1e-40), 0, 0, 0),
    ]);
}

#[test]
fn moves_pack_and_unpack() {
    check(&[
        (
            "mov.b32 {%h4, %h5}, %r1; mov.b32 %r9, {%h5, %h4};",
            0x1234_5678,
            0,
            0,
            0x5678_1234,
        ),
        (
            "mov.b64 {%r4, %r5}, %rd1; mov.b64 %rd9, {%r5, %r4};",
            0x1_0000_0002,
            0,
            0,
            0x2_0000_0001,
        ),
        (
            "mov.b64 {%h4, %h5, %h6, %h7}, %rd1; mov.b64 %rd9, {%h7, %h6, %h5, %h4};",
            0x1_0002_0003_0004,
            0,
            0,
            0x4_0003_0002_0001,
        ),
        ("mov.b64 {_, %r9}, %rd1;", 0x7_0000_0002, 0, 0, 7),
        ("mov.u32 %r9, %laneid;", 0, 0, 0, 0),
        ("mov.u32 %r9, %ntid.x;", 0, 0, 0, 32),
        ("mov.u32 %r9, %nctaid.y;", 0, 0, 0, 1),
    ]);
}

#[test]
fn comparisons_know_nan_and_join_predicates() {
    let set = |compare: &'static str| {
        Box::leak(format!("{compare} selp.u32 %r9, 1, 0, %p1;").into_boxed_str()) as &'static str
    };
    check(&[
        (set("setp.lt.s32 %p1, %r1, %r2;"), s(-1), 0, 0, 1),
        (set("setp.lt.u32 %p1, %r1, %r2;"), s(-1), 0, 0, 0),
        (set("setp.hi.u32 %p1, %r1, %r2;"), s(-1), 0, 0, 1),
        (set("setp.gt.s16 %p1, %h1, %h2;"), 0xFFFF, 0, 0, 0),
        (set("setp.ge.s64 %p1, %rd1, %rd2;"), u64::MAX, 0, 0, 0),
        (set("setp.lt.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 0),
        (set("setp.ltu.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 1),
        (set("setp.ne.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 0),
        (set("setp.neu.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 1),
        (set("setp.num.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 0),
        (set("setp.nan.f32 %p1, %f1, %f2;"), NAN, f(1.0), 0, 1),
        (set("setp.eq.ftz.f32 %p1, %f1, %f2;"), f(1e-40), 0, 0, 1),
        (
            set("setp.ne.s32 %p2, %r1, 0; setp.lt.and.s32 %p1, %r2, %r3, %p2;"),
            1,
            2,
            3,
            1,
        ),
        (
            set("setp.ne.s32 %p2, %r1, 0; setp.lt.and.s32 %p1, %r2, %r3, !%p2;"),
            1,
            2,
            3,
            0,
        ),
        (set("setp.lt.s32 %p2|%p1, %r1, %r2;"), 1, 2, 0, 0),
        (
            set("setp.lt.s32 %p2, %r1, %r2; not.pred %p1, %p2;"),
            1,
            2,
            0,
            0,
        ),
        (
            set("setp.lt.s32 %p2, %r1, %r2; setp.lt.s32 %p3, %r2, %r1; or.pred %p1, %p2, %p3;"),
            1,
            2,
            0,
            1,
        ),
        (set("setp.gt.f16 %p1, %h1, %h2;"), 0x4000, 0x3C00, 0, 1),
        ("set.lt.u32.s32 %r9, %r1, %r2;", s(-1), 0, 0, 0xFFFF_FFFF),
        (
            "setp.lt.s32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 5; @!%p1 mov.u32 %r9, 6;",
            1,
            2,
            0,
            5,
        ),
        (
            "setp.lt.s32 %p1, %r1, %r2; selp.b64 %rd9, %rd1, %rd2, %p1;",
            1,
            2,
            0,
            1,
        ),
    ]);
}

#[test]
fn packed_half_arithmetic_has_the_same_bits_on_every_cpu() {
    // `lanes` runs both versions and compares them; any bits, so NaN, infinities and subnormals are among them.
    let mut state = 3u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    for _ in 0..8 {
        let inputs: Vec<[u64; 3]> = (0..32).map(|_| [next(), next(), next()]).collect();
        for body in [
            "mul.f16x2 %r9, %r1, %r2;",
            "add.f16x2 %r9, %r1, %r2;",
            "sub.f16x2 %r9, %r1, %r2;",
        ] {
            let got = lanes(body, &inputs);
            for (got, [a, b, _]) in got.into_iter().zip(&inputs) {
                for half in [0, 16] {
                    let of = |v: u64| half::f16::from_bits((v >> half) as u16).to_f32();
                    let expected = half::f16::from_f32(match &body[..3] {
                        "mul" => of(*a) * of(*b),
                        "add" => of(*a) + of(*b),
                        _ => of(*a) - of(*b),
                    });
                    let bits = (got >> half) as u16;
                    assert_eq!(
                        bits,
                        if expected.is_nan() {
                            0x7FFF
                        } else {
                            expected.to_bits()
                        }
                    );
                }
            }
        }
    }
}

/// Lane number as input.
fn numbered() -> Vec<[u64; 3]> {
    (0..32).map(|lane| [lane, lane * 3 % 32, 0]).collect()
}

#[test]
fn shuffles_move_values_between_lanes() {
    let inputs = numbered();
    let expect = |body: &str, want: &dyn Fn(u64) -> u64| {
        let got = lanes(body, &inputs);
        for (lane, got) in got.into_iter().enumerate() {
            assert_eq!(got, want(lane as u64), "{body}, lane {lane}");
        }
    };
    expect("shfl.sync.bfly.b32 %r9, %r1, 5, 31, -1;", &|lane| lane ^ 5);
    expect("shfl.sync.idx.b32 %r9, %r1, %r2, 31, -1;", &|lane| {
        lane * 3 % 32
    });
    expect("shfl.sync.up.b32 %r9, %r1, 3, 0, -1;", &|lane| {
        if lane < 3 { lane } else { lane - 3 }
    });
    expect("shfl.sync.down.b32 %r9, %r1, 3, 31, -1;", &|lane| {
        if lane > 28 { lane } else { lane + 3 }
    });
    // Segments of eight lanes.
    expect("shfl.sync.idx.b32 %r9, %r1, 2, 0x181f, -1;", &|lane| {
        lane / 8 * 8 + 2
    });
    expect(
        "shfl.sync.down.b32 %r9|%p1, %r1, 3, 31, -1; selp.u32 %r9, 1, 0, %p1;",
        &|lane| u64::from(lane <= 28),
    );
}

#[test]
fn votes_and_reductions_see_the_members() {
    let inputs = numbered();
    let all = |body: &str| lanes(body, &inputs);
    let odd = "and.b32 %r4, %r1, 1; setp.ne.u32 %p1, %r4, 0; ";
    assert!(
        all(&format!("{odd} vote.sync.ballot.b32 %r9, %p1, -1;"))
            .iter()
            .all(|v| *v == 0xAAAA_AAAA)
    );
    assert!(
        all(&format!(
            "{odd} vote.sync.any.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;"
        ))
        .iter()
        .all(|v| *v == 1)
    );
    assert!(
        all(&format!(
            "{odd} vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;"
        ))
        .iter()
        .all(|v| *v == 0)
    );
    assert!(
        all(&format!(
            "{odd} vote.sync.uni.pred %p2, !%p1, -1; selp.u32 %r9, 1, 0, %p2;"
        ))
        .iter()
        .all(|v| *v == 0)
    );
    assert!(all("activemask.b32 %r9;").iter().all(|v| *v == 0xFFFF_FFFF));
    assert!(
        all("redux.sync.add.s32 %r9, %r1, -1;")
            .iter()
            .all(|v| *v == 496)
    );
    assert_eq!(
        all("shr.u32 %r4, %r1, 3; match.any.sync.b32 %r9, %r4, -1;")[9],
        0xFF00
    );
}

#[test]
fn branches_diverge_and_meet_again() {
    // Odd lanes loop `lane` times, even lanes not at all; all meet at a shuffle.
    let body = "and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; mov.u32 %r5, 0; @%p1 bra DONE;
        LOOP: add.u32 %r5, %r5, 2; add.u32 %r1, %r1, -1; setp.ne.u32 %p2, %r1, 0; @%p2 bra LOOP;
        DONE: shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1;";
    let got = lanes(body, &numbered());
    for (lane, got) in got.into_iter().enumerate() {
        let other = lane as u64 ^ 1;
        assert_eq!(got, if other % 2 == 1 { 2 * other } else { 0 });
    }
}

#[test]
fn code_behind_the_join_still_meets_at_sync_instructions() {
    // The arm of the odd lanes lies behind the join and jumps back: lowest program counter first runs into the
    // shuffle without them, and must wait.
    let body = "and.b32 %r4, %r1, 1; setp.ne.u32 %p1, %r4, 0; mov.u32 %r5, 7; @%p1 bra FAR;
        JOIN: shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1; bra END;
        FAR: mov.u32 %r5, 8; bra JOIN;
        END: ";
    let got = lanes(body, &numbered());
    for (lane, got) in got.into_iter().enumerate() {
        assert_eq!(got, if lane % 2 == 0 { 8 } else { 7 });
    }
}

#[test]
fn branch_tables_go_to_their_labels() {
    let body = "and.b32 %r4, %r1, 3; T: .branchtargets L0, L1, L2, L3; brx.idx %r4, T;
        L0: mov.u32 %r9, 10; bra END; L1: mov.u32 %r9, 11; bra END; L2: mov.u32 %r9, 12; bra END; L3: mov.u32 %r9, 13;
        END: ";
    let got = lanes(body, &numbered());
    for (lane, got) in got.into_iter().enumerate() {
        assert_eq!(got, 10 + lane as u64 % 4);
    }
}

#[test]
fn memory_of_every_space_keeps_widths_and_signs() {
    let ptx = module(
        ".shared .align 16 .b8 sh[1024]; .local .align 8 .b8 lo[64];",
        "mov.u32 %r0, %tid.x;
         mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
         add.u32 %r1, %r0, 100; neg.s32 %r2, %r0; add.u32 %r3, %r0, 300; add.u32 %r4, %r0, 400;
         st.shared.v4.u32 [%rd3], {%r1, %r2, %r3, %r4};
         ld.shared.s8 %r5, [%rd3+4]; ld.shared.u16 %r6, [%rd3+4]; ld.shared.v2.b64 {%rd4, %rd5}, [%rd3];
         cvta.shared.u64 %rd6, %rd3; ld.u32 %r7, [%rd6+8];
         st.local.u32 [lo+4], %r7; ld.local.u32 %r8, [lo+4];
         mov.u64 %rd7, lo; cvta.local.u64 %rd7, %rd7; ld.u16 %r10, [%rd7+4];
         isspacep.shared %p1, %rd6; selp.u32 %r11, 1, 0, %p1;
         mad.wide.u32 %rd8, %r0, 40, %rd0;
         st.global.u32 [%rd8], %r5; st.global.u32 [%rd8+4], %r6; st.global.u64 [%rd8+8], %rd5;
         st.global.u32 [%rd8+16], %r8; st.global.u32 [%rd8+20], %r10; st.global.u32 [%rd8+24], %r11;
         st.global.u8 [%rd8+28], %r4; st.global.u16 [%rd8+30], %r4; st.global.v2.u32 [%rd8+32], {%r1, %r2};",
    );
    let outcome = run(&ptx, 32, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    let lane = |lane: usize| outcome.words(lane as u64 * 40, 10);
    for n in 1..32u32 {
        let got = lane(n as usize);
        let low = (n + 400) & 0xFF | (n + 400) << 16;
        let minus = (n as i32).wrapping_neg() as u32;
        let expected = [
            minus,
            minus & 0xFFFF,
            n + 300,
            n + 400,
            n + 300,
            n + 300,
            1,
            low,
            n + 100,
            minus,
        ];
        // Byte 29 was never written.
        let got: Vec<u32> = got
            .iter()
            .enumerate()
            .map(|(i, w)| if i == 7 { w & 0xFFFF_00FF } else { *w })
            .collect();
        assert_eq!(got, expected, "lane {n}");
    }
}

#[test]
fn atomics_add_up_and_return_old_values() {
    let ptx = module(
        ".shared .align 4 .u32 sum;",
        "mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sum], 0; bar.sync 0;
         atom.shared.add.u32 %r1, [sum], 1; red.global.add.u32 [%rd0], %r0; atom.global.max.s32 %r2, [%rd0+4], %r0;
         atom.global.cas.b32 %r3, [%rd0+8], 7, 9; cvt.rn.f32.u32 %f1, %r0; red.global.add.f32 [%rd0+12], %f1;
         cvt.u64.u32 %rd2, %r0; atom.global.add.u64 %rd3, [%rd0+16], %rd2;
         bar.sync 0; ld.shared.u32 %r4, [sum]; @%p1 st.global.u32 [%rd0+24], %r4;
         mad.wide.u32 %rd4, %r0, 4, %rd0; st.global.u32 [%rd4+64], %r1;",
    );
    let mut initial = [0u8; 64];
    initial[8] = 7;
    let outcome = run(&ptx, 64, &initial);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    assert_eq!(
        outcome.words(0, 7),
        [2016, 63, 9, 2016f32.to_bits(), 2016, 0, 64]
    );
    let mut order = outcome.words(64, 64);
    order.sort_unstable();
    assert_eq!(order, (0..64).collect::<Vec<u32>>());
}

#[test]
fn functions_are_inlined_with_their_own_registers() {
    let ptx = "
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 back) square(.param .b32 x)
{ .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.param.u32 %r1, [x]; setp.eq.u32 %p1, %r1, 3; @%p1 bra SKIP; mul.lo.u32 %r1, %r1, %r1;
SKIP: st.param.b32 [back+0], %r1; ret; }
.visible .entry k(.param .u64 data)
{ .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x;
  { .param .b32 in; st.param.b32 [in+0], %r1; .param .b32 out; call.uni (out), square, (in); ld.param.b32 %r2, [out+0]; }
  { .param .b32 in; st.param.b32 [in+0], %r2; .param .b32 out; call.uni (out), square, (in); ld.param.b32 %r2, [out+0]; }
  mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r2; ret; }";
    let outcome = run(ptx, 32, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    let expected: Vec<u32> = (0..32u32)
        .map(|n| {
            if n == 3 {
                3
            } else {
                let s = n * n;
                if s == 3 { 3 } else { s * s }
            }
        })
        .collect();
    assert_eq!(outcome.words(0, 32), expected);
}

#[test]
fn module_variables_are_there_and_initialised() {
    let ptx = "
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.global .align 4 .u32 counter = 5;
.visible .entry k(.param .u64 data)
{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
  mov.u64 %rd2, table; mad.wide.u32 %rd3, %r2, 4, %rd2; ld.const.f32 %f1, [%rd3];
  mad.wide.u32 %rd4, %r1, 4, %rd1; st.global.f32 [%rd4], %f1;
  mov.u64 %rd5, counter; red.global.add.u32 [%rd5], 1; ld.global.u32 %r3, [counter]; st.global.u32 [%rd4+128], %r3; ret; }";
    let outcome = run(ptx, 32, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    assert_eq!(
        outcome.words(0, 3),
        [1f32.to_bits(), 2f32.to_bits(), 3f32.to_bits()]
    );
    assert_eq!(outcome.words(128, 2), [37, 37]);
}
