//! The 8-bit float e4m3 ("e4m3fn", OCP 8-bit floating point specification, 2023): bias 7, no
//! infinities, NaN at 0x7F and 0xFF, largest finite value 448.

/// Largest finite magnitude.
pub const MAX: f32 = 448.0;
/// The NaN with a clear sign.
pub const NAN: u8 = 0x7F;

/// The value of a code; NaN for 0x7F and 0xFF.
///
/// ```
/// use pagesmith_spec::e4m3::decode;
///
/// assert_eq!(decode(0x7E), 448.0);
/// assert_eq!(decode(0x01), 2f32.powi(-9));
/// assert!(decode(0xFF).is_nan());
/// ```
pub fn decode(code: u8) -> f32 {
    let magnitude = code & 0x7F;
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    if magnitude == NAN {
        return f32::NAN.copysign(sign);
    }
    let exponent = i32::from(magnitude >> 3);
    let mantissa = f32::from(magnitude & 7);
    if exponent == 0 {
        sign * mantissa * 2f32.powi(-9)
    } else {
        sign * (8.0 + mantissa) * 2f32.powi(exponent - 10)
    }
}

/// The nearest code, ties to even; magnitudes above 448 saturate, infinities too, NaN stays NaN.
///
/// ```
/// use pagesmith_spec::e4m3::{decode, encode};
///
/// assert_eq!(decode(encode(1e9)), 448.0);
/// assert!(decode(encode(f32::NAN)).is_nan());
/// ```
pub fn encode(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return sign | NAN;
    }
    let magnitude = value.abs();
    if magnitude >= MAX {
        return sign | 0x7E;
    }
    // Codes 0..=0x7E grow with their value, so the nearest one is found by bisection; exactness is
    // kept because every code and every midpoint of two is an f32.
    let (mut low, mut high) = (0u8, 0x7Eu8);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if decode(middle) <= magnitude {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (below, above) = (decode(low), decode(high));
    let midpoint = (below + above) / 2.0;
    let up = magnitude > midpoint || (magnitude == midpoint && low & 1 == 1);
    sign | if up { high } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_decodes_and_encodes_back_to_itself() {
        for code in 0..=255u8 {
            let value = decode(code);
            if code & 0x7F == NAN {
                assert!(value.is_nan());
                assert_eq!(encode(value) & 0x7F, NAN);
            } else {
                assert_eq!(encode(value), code, "{code:#x} = {value}");
            }
        }
    }

    #[test]
    fn codes_agree_with_the_definition_in_integers() {
        for code in 0..0x7Fu8 {
            let (exponent, mantissa) = (i32::from(code >> 3), i64::from(code & 7));
            // value = units / 512
            let units = if exponent == 0 {
                mantissa
            } else {
                (8 + mantissa) << (exponent - 1)
            };
            assert_eq!(f64::from(decode(code)), units as f64 / 512.0, "{code:#x}");
        }
    }

    #[test]
    fn rounding_is_to_nearest_with_ties_to_even() {
        for code in 0..0x7Eu8 {
            let (below, above) = (decode(code), decode(code + 1));
            let midpoint = (below + above) / 2.0;
            let even = if code & 1 == 0 { code } else { code + 1 };
            assert_eq!(encode(midpoint), even, "{code:#x}");
            assert_eq!(encode(midpoint.next_down()), code);
            assert_eq!(encode(midpoint.next_up()), code + 1);
        }
    }

    #[test]
    fn out_of_range_values_saturate_and_nan_is_kept() {
        for value in [448.0, 449.0, 464.0, 465.0, 480.0, 1e30, f32::INFINITY] {
            assert_eq!(encode(value), 0x7E, "{value}");
            assert_eq!(encode(-value), 0xFE, "-{value}");
        }
        assert_eq!(encode(f32::NAN) & 0x7F, NAN);
    }
}
