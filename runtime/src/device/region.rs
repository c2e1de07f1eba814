//! A piece of device memory.

use pagesmith_spec::abi::DevicePtr;
use std::marker::PhantomData;

/// A piece of device memory that outlives `'m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region<'m> {
    start: DevicePtr,
    bytes: u64,
    memory: PhantomData<&'m ()>,
}

/// A part that does not lie inside its region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "region: {bytes} bytes at offset {offset} do not lie inside its {available} bytes; allocate more or ask for less"
)]
pub struct RegionError {
    /// Start of the part.
    pub offset: u64,
    /// Length of the part.
    pub bytes: u64,
    /// Length of the region.
    pub available: u64,
}

impl<'m> Region<'m> {
    /// Memory that pagesmith did not allocate.
    ///
    /// # Safety
    /// `bytes` bytes at `start` must be memory of the device that the region is used with, and stay
    /// allocated for `'m` and until every kernel or copy that was given the region is done.
    pub const unsafe fn from_raw(start: DevicePtr, bytes: u64) -> Self {
        Region {
            start,
            bytes,
            memory: PhantomData,
        }
    }

    /// Its first address.
    pub const fn start(self) -> DevicePtr {
        self.start
    }

    /// Its length.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The `bytes` bytes at `offset`.
    ///
    /// # Errors
    /// When they do not lie inside the region.
    pub fn part(self, offset: u64, bytes: u64) -> Result<Self, RegionError> {
        let start = self.start.offset(offset);
        match (offset.checked_add(bytes), start) {
            (Some(end), Some(start)) if end <= self.bytes => Ok(Region {
                start,
                bytes,
                memory: PhantomData,
            }),
            _ => Err(RegionError {
                offset,
                bytes,
                available: self.bytes,
            }),
        }
    }

    /// The first `bytes` bytes.
    ///
    /// # Errors
    /// When the region is shorter.
    pub fn prefix(self, bytes: usize) -> Result<Self, RegionError> {
        self.part(0, bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_leaves_its_region() {
        // SAFETY: never dereferenced.
        let region = unsafe { Region::from_raw(DevicePtr(0x1000), 64) };
        assert_eq!(
            region.part(16, 48).map(Region::start),
            Ok(DevicePtr(0x1010))
        );
        for (offset, bytes) in [(0, 65), (65, 0), (64, 1), (u64::MAX, 2), (2, u64::MAX)] {
            assert!(region.part(offset, bytes).is_err(), "{offset} {bytes}");
        }
    }
}
