//! The emulated global memory.

use crate::MemoryError;
use std::fmt;

/// An address in the emulated global memory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Address(pub u64);

impl Address {
    /// The address this many bytes further.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The emulated global memory.
#[derive(Debug, Default)]
pub struct Memory {}

impl Memory {
    /// An empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates `bytes` bytes at a multiple of 256, between red zones. The contents are uninitialised.
    ///
    /// # Errors
    /// A size of 0 or beyond the address space, or a host without memory.
    pub fn alloc(&self, name: &str, bytes: u64) -> Result<Address, MemoryError> {
        Err(MemoryError::HostOutOfMemory {
            name: name.to_owned(),
            bytes,
        })
    }

    /// Frees the allocation that starts at `address`; kernels that touch it later are found.
    ///
    /// # Errors
    /// The address is not the start of a live allocation.
    pub fn free(&self, address: Address) -> Result<(), MemoryError> {
        Err(MemoryError::NotAnAllocation(address))
    }

    /// Writes bytes, which become initialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn write(&self, address: Address, bytes: &[u8]) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfBounds {
            address,
            bytes: bytes.len() as u64,
            near: None,
        })
    }

    /// Reads bytes; uninitialised ones have an unspecified value.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfBounds {
            address,
            bytes: bytes.len() as u64,
            near: None,
        })
    }

    /// Sets every byte of a range, which becomes initialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn fill(&self, address: Address, bytes: u64, value: u8) -> Result<(), MemoryError> {
        let _ = value;
        Err(MemoryError::OutOfBounds {
            address,
            bytes,
            near: None,
        })
    }

    /// Marks a range as uninitialised, its contents unchanged.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn mark_uninitialised(&self, address: Address, bytes: u64) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfBounds {
            address,
            bytes,
            near: None,
        })
    }

    /// Sets every byte of a range to `value` and marks the range as uninitialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn poison(&self, address: Address, bytes: u64, value: u8) -> Result<(), MemoryError> {
        self.fill(address, bytes, value)?;
        self.mark_uninitialised(address, bytes)
    }

    /// Whether every byte of a range was written.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn is_initialised(&self, address: Address, bytes: u64) -> Result<bool, MemoryError> {
        Err(MemoryError::OutOfBounds {
            address,
            bytes,
            near: None,
        })
    }
}
