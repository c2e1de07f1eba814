//! Elements as bytes, little endian, and back to f64.

use half::{bf16, f16};
use pagesmith_spec::{KvDtype, e4m3};
use std::sync::LazyLock;

/// The nearest stored element; e4m3 saturates at ±448.
pub fn encode(dtype: KvDtype, value: f32) -> u16 {
    match dtype {
        KvDtype::Bf16 => bf16::from_f32(value).to_bits(),
        KvDtype::F16 => f16::from_f32(value).to_bits(),
        KvDtype::Fp8E4M3 => u16::from(encode_e4m3(value)),
    }
}

/// What [`e4m3::encode`] gives, from a table: a cache has millions of elements.
fn encode_e4m3(value: f32) -> u8 {
    /// The largest magnitude that each code below 0x7E is the nearest to.
    static LARGEST: LazyLock<Vec<f32>> = LazyLock::new(|| {
        let midpoint = |code: u8| (e4m3::decode(code) + e4m3::decode(code + 1)) / 2.0;
        // Ties go to even codes.
        (0..0x7E)
            .map(|code| match code % 2 {
                0 => midpoint(code),
                _ => midpoint(code).next_down(),
            })
            .collect()
    });
    if value.is_nan() {
        return e4m3::encode(value);
    }
    let code = LARGEST.partition_point(|&largest| largest < value.abs()) as u8;
    code | if value.is_sign_negative() { 0x80 } else { 0 }
}

/// Writes elements one after the other.
pub fn encode_all(dtype: KvDtype, values: &[f32]) -> Vec<u8> {
    let bytes = dtype.bytes() as usize;
    values
        .iter()
        .flat_map(|&value| encode(dtype, value).to_le_bytes().into_iter().take(bytes))
        .collect()
}

/// The values of elements that lie one after the other; a trailing part of an element is ignored.
pub fn decode_all(dtype: KvDtype, bytes: &[u8]) -> Vec<f64> {
    let words = || {
        bytes
            .chunks_exact(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]))
    };
    match dtype {
        KvDtype::Bf16 => words().map(|bits| bf16::from_bits(bits).to_f64()).collect(),
        KvDtype::F16 => words().map(|bits| f16::from_bits(bits).to_f64()).collect(),
        KvDtype::Fp8E4M3 => bytes
            .iter()
            .map(|&code| f64::from(e4m3::decode(code)))
            .collect(),
    }
}

/// `count` elements of NaN: 0x7FFF, or 0x7F for e4m3.
pub fn nan(dtype: KvDtype, count: usize) -> Vec<u8> {
    match dtype {
        KvDtype::Bf16 | KvDtype::F16 => [0xFF, 0x7F].repeat(count),
        KvDtype::Fp8E4M3 => vec![e4m3::NAN; count],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Seed};

    #[test]
    fn the_table_gives_the_codes_of_the_definition() {
        let mut random = Random::new(Seed(5));
        let random = (0..10_000).map(|_| f32::from_bits(random.bits() as u32));
        let edges = (0..=255).flat_map(|code| {
            let (a, b) = (e4m3::decode(code), e4m3::decode(code ^ 1));
            [
                a,
                a.next_up(),
                a.next_down(),
                (a + b) / 2.0,
                ((a + b) / 2.0).next_up(),
            ]
        });
        for value in random.chain(edges) {
            assert_eq!(encode_e4m3(value), e4m3::encode(value), "{value}");
        }
    }

    #[test]
    fn every_dtype_reads_back_what_it_can_hold() {
        let values = [0.0, 1.0, -1.5, 448.0, -0.015_625];
        for dtype in KvDtype::ALL {
            let back = decode_all(dtype, &encode_all(dtype, &values));
            assert_eq!(back, values.map(f64::from), "{dtype}");
            assert!(decode_all(dtype, &nan(dtype, 3)).iter().all(|x| x.is_nan()));
        }
    }
}
