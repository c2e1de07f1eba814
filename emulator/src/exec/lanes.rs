//! Registers as planes of 32 lanes, and loops over them.

/// Lanes of a warp.
pub(super) const LANES: usize = 32;
/// Every lane.
pub(super) const FULL: u32 = u32::MAX;

/// A 32-bit register of a warp. Aligned so that vector code needs no split loads.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Words(pub(crate) [u32; LANES]);

/// A 64-bit register of a warp.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Doubles(pub(crate) [u64; LANES]);

impl Words {
    pub(crate) const ZERO: Self = Self([0; LANES]);
}

impl Doubles {
    pub(crate) const ZERO: Self = Self([0; LANES]);
}

/// Stores the lanes of `mask`.
#[inline(always)]
pub(super) fn put<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: u32) {
    if mask == FULL {
        *to = *from;
    } else {
        for lane in 0..LANES {
            if mask >> lane & 1 != 0 {
                to[lane] = from[lane];
            }
        }
    }
}

#[inline(always)]
pub(super) fn map1<A: Copy, T: Copy + Default>(a: &[A; LANES], f: impl Fn(A) -> T) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for lane in 0..LANES {
        out[lane] = f(a[lane]);
    }
    out
}

#[inline(always)]
pub(super) fn map2<A: Copy, B: Copy, T: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    f: impl Fn(A, B) -> T,
) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for lane in 0..LANES {
        out[lane] = f(a[lane], b[lane]);
    }
    out
}

#[inline(always)]
pub(super) fn map3<A: Copy, B: Copy, C: Copy, T: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    c: &[C; LANES],
    f: impl Fn(A, B, C) -> T,
) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for lane in 0..LANES {
        out[lane] = f(a[lane], b[lane], c[lane]);
    }
    out
}

/// The lanes of a mask, ascending.
#[inline(always)]
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        Some(lane as usize)
    })
}

/// Compiles one body twice: portable, and with AVX2, FMA and F16C.
///
/// `target-cpu` is never relied on. The body is `#[inline(always)]` and takes `const AVX2: bool`, so that it becomes
/// part of a function with the features; whoever picks `AVX2 = true` has asked the CPU first.
macro_rules! multiversion {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        #[inline]
        pub(super) fn $name<const AVX2: bool>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            if AVX2 {
                #[target_feature(enable = "avx2,fma,f16c")]
                        fn fast($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                // SAFETY: `AVX2` is true only behind `super::has_avx2`, which asked this CPU for the features.
                return unsafe { fast($($arg),*) };
            }
            $body::<false>($($arg),*)
        }
    };
}
pub(super) use multiversion;
