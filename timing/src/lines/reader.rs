//! A cursor over untrusted bytes.

use crate::error::TimingError;

/// Reads little-endian numbers and LEB128 from a slice; running off its end is an error.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offset >= self.bytes.len()
    }

    pub(crate) fn error(&self, reason: &'static str) -> TimingError {
        TimingError::Lines {
            offset: self.offset,
            reason,
        }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], TimingError> {
        let rest = self.bytes.get(self.offset..).unwrap_or(&[]);
        let taken = rest
            .get(..length)
            .ok_or_else(|| self.error("it ends inside a field"))?;
        self.offset += length;
        Ok(taken)
    }

    /// A reader over the next `length` bytes, which keeps the offsets of the whole.
    pub(crate) fn sub(&mut self, length: usize) -> Result<Self, TimingError> {
        let begin = self.offset;
        self.take(length)?;
        Ok(Self {
            bytes: &self.bytes[..self.offset],
            offset: begin,
        })
    }

    pub(crate) fn u8(&mut self) -> Result<u8, TimingError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, TimingError> {
        let mut word = [0; 2];
        word.copy_from_slice(self.take(2)?);
        Ok(u16::from_le_bytes(word))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, TimingError> {
        let mut word = [0; 4];
        word.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(word))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, TimingError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    /// Unsigned LEB128; bits beyond 64 are dropped.
    pub(crate) fn uleb(&mut self) -> Result<u64, TimingError> {
        let (value, _, _) = self.leb()?;
        Ok(value)
    }

    /// Signed LEB128; bits beyond 64 are dropped.
    pub(crate) fn sleb(&mut self) -> Result<i64, TimingError> {
        let (value, bits, last) = self.leb()?;
        let negative = last & 0x40 != 0;
        Ok(if negative && bits < 64 {
            (value | u64::MAX << bits) as i64
        } else {
            value as i64
        })
    }

    fn leb(&mut self) -> Result<(u64, u32, u8), TimingError> {
        let (mut value, mut bits) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            if bits < 64 {
                value |= u64::from(byte & 0x7f) << bits;
            }
            bits = bits.saturating_add(7);
            if byte & 0x80 == 0 {
                return Ok((value, bits, byte));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_reads_the_examples_of_the_dwarf_standard() {
        let signed = |bytes: &[u8]| Reader::new(bytes).sleb().unwrap();
        assert_eq!(signed(&[2]), 2);
        assert_eq!(signed(&[0x7e]), -2);
        assert_eq!(signed(&[0xff, 0]), 127);
        assert_eq!(signed(&[0x81, 0x7f]), -127);
        assert_eq!(signed(&[0x80, 0x7f]), -128);
        assert_eq!(Reader::new(&[0xb9, 0x64]).uleb().unwrap(), 12857);
    }

    #[test]
    fn an_endless_leb128_ends_with_the_bytes() {
        assert!(Reader::new(&[0xff; 40]).uleb().is_err());
    }
}
