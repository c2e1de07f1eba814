//! Bytes, numbers and texts of a header, in order, with the place for error messages.

use super::GgufError;
use std::io::{ErrorKind, Read};

/// Longest header that is read. Vocabularies of 256,000 tokens with merges take some 12 MB.
const MAX_HEADER_BYTES: u64 = 128 << 20;

/// Reads a header front to back.
pub(super) struct Reader<R> {
    bytes: R,
    offset: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(bytes: R) -> Self {
        Reader { bytes, offset: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn array<const N: usize>(&mut self, reading: &str) -> Result<[u8; N], GgufError> {
        let mut array = [0; N];
        self.fill(&mut array, reading)?;
        Ok(array)
    }

    pub(super) fn u32(&mut self, reading: &str) -> Result<u32, GgufError> {
        self.array(reading).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, reading: &str) -> Result<u64, GgufError> {
        self.array(reading).map(u64::from_le_bytes)
    }

    /// A count or length, refused before anything is done with it when it exceeds `limit`.
    pub(super) fn count(&mut self, reading: &str, limit: u64) -> Result<u64, GgufError> {
        let offset = self.offset;
        let value = self.u64(reading)?;
        if value > limit {
            return Err(GgufError::TooLarge {
                offset,
                reading: reading.to_owned(),
                value,
                limit,
            });
        }
        Ok(value)
    }

    /// A text of at most `limit` bytes.
    pub(super) fn text(&mut self, reading: &str, limit: u16) -> Result<String, GgufError> {
        let length = self.count(reading, limit.into())?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes, reading)?;
        String::from_utf8(bytes).map_err(|_| GgufError::Text {
            offset: self.offset,
            reading: reading.to_owned(),
        })
    }

    /// Reads a text without keeping it.
    pub(super) fn skip_text(&mut self, reading: &str) -> Result<(), GgufError> {
        let length = self.u64(reading)?;
        self.skip(length, reading)
    }

    /// Reads `length` bytes without keeping them.
    pub(super) fn skip(&mut self, length: u64, reading: &str) -> Result<(), GgufError> {
        self.check_end(length, reading)?;
        // Small: a vocabulary is some 100,000 skips of a few bytes, each of which clears this.
        let mut scratch = [0; 256];
        let mut left = length;
        while left > 0 {
            let step = left.min(scratch.len() as u64) as usize;
            self.fill(&mut scratch[..step], reading)?;
            left -= step as u64;
        }
        Ok(())
    }

    fn fill(&mut self, mut buffer: &mut [u8], reading: &str) -> Result<(), GgufError> {
        self.check_end(buffer.len() as u64, reading)?;
        while !buffer.is_empty() {
            match self.bytes.read(buffer) {
                Ok(0) => {
                    return Err(GgufError::Truncated {
                        offset: self.offset,
                        reading: reading.to_owned(),
                    });
                }
                Ok(read) => {
                    self.offset += read as u64;
                    buffer = &mut buffer[read..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(GgufError::Io {
                        offset: self.offset,
                        message: error.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Refuses what would reach beyond the longest header, before a byte of it is read.
    fn check_end(&self, length: u64, reading: &str) -> Result<(), GgufError> {
        let end = self.offset.saturating_add(length);
        if end <= MAX_HEADER_BYTES {
            return Ok(());
        }
        Err(GgufError::TooLarge {
            offset: self.offset,
            reading: format!("the end of {reading}"),
            value: end,
            limit: MAX_HEADER_BYTES,
        })
    }
}
