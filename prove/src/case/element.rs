//! Elements as bytes, little endian, and back to f64.

use half::{bf16, f16};
use pagesmith_spec::{KvDtype, e4m3};

/// The nearest stored element; e4m3 saturates at ±448.
pub fn encode(dtype: KvDtype, value: f32) -> u16 {
    match dtype {
        KvDtype::Bf16 => bf16::from_f32(value).to_bits(),
        KvDtype::F16 => f16::from_f32(value).to_bits(),
        KvDtype::Fp8E4M3 => u16::from(e4m3::encode(value)),
    }
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
