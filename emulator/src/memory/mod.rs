//! The emulated global memory: allocations with red zones between them, each byte with a mark "was written".

mod address;
mod allocation;

pub use address::Address;
pub(crate) use address::{
    CONST_WINDOW, HEAP_BASE, HEAP_END, LOCAL_WINDOW, MODULE_BASE, PARAM_WINDOW, SHARED_WINDOW,
};
pub(crate) use allocation::Allocation;

use crate::MemoryError;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// As `cudaMalloc` aligns.
const ALIGNMENT: u64 = 256;
/// At least this many bytes before and after an allocation belong to no allocation.
const RED_ZONE: u64 = 4096;

/// The emulated global memory. Its methods take `&self`: threads may share it.
///
/// Addresses are never given out twice, so a use of freed memory is always recognised.
///
/// ```
/// use pagesmith_emulator::Memory;
/// let memory = Memory::new();
/// let q = memory.alloc("q", 64)?;
/// assert!(!memory.is_initialised(q, 64)?);
/// memory.write(q.offset(8), &[1, 2, 3])?;
/// let mut back = [0; 3];
/// memory.read(q.offset(8), &mut back)?;
/// assert_eq!(back, [1, 2, 3]);
/// # Ok::<(), pagesmith_emulator::MemoryError>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    regions: RwLock<Regions>,
}

#[derive(Debug)]
struct Regions {
    next: u64,
    /// By ascending address, freed ones included.
    all: Vec<Region>,
}

/// A part of the address space that is or was an allocation.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    pub(crate) name: Arc<str>,
    pub(crate) base: u64,
    pub(crate) end: u64,
    /// `None` once it is freed.
    pub(crate) live: Option<Arc<Allocation>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// An empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            regions: RwLock::new(Regions {
                next: HEAP_BASE,
                all: Vec::new(),
            }),
        }
    }

    // A panic elsewhere cannot leave the list half-changed: each change is one push or one assignment.
    fn lock(&self) -> RwLockReadGuard<'_, Regions> {
        self.regions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_mut(&self) -> RwLockWriteGuard<'_, Regions> {
        self.regions.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates `bytes` bytes at a multiple of 256, between red zones. The contents are uninitialised.
    /// Large allocations are cheap: the host commits a page when it is first written.
    ///
    /// # Errors
    /// A size of 0 or beyond the address space, or a host without memory.
    pub fn alloc(&self, name: &str, bytes: u64) -> Result<Address, MemoryError> {
        let mut regions = self.lock_mut();
        let base = regions.next;
        let limit = HEAP_END - base - RED_ZONE - ALIGNMENT;
        if bytes == 0 || bytes > limit {
            return Err(MemoryError::Size {
                name: name.to_owned(),
                bytes,
                limit,
            });
        }
        let name: Arc<str> = Arc::from(name);
        let Some(allocation) = Allocation::new(name.clone(), base, bytes) else {
            return Err(MemoryError::HostOutOfMemory {
                name: name.to_string(),
                bytes,
            });
        };
        regions.next = (base + bytes + RED_ZONE).next_multiple_of(ALIGNMENT);
        regions.all.push(Region {
            name,
            base,
            end: base + bytes,
            live: Some(Arc::new(allocation)),
        });
        Ok(Address(base))
    }

    /// Frees the allocation that starts at `address`; kernels that touch it later are found.
    /// A launch in progress keeps what it started with.
    ///
    /// # Errors
    /// The address is not the start of a live allocation.
    pub fn free(&self, address: Address) -> Result<(), MemoryError> {
        let mut regions = self.lock_mut();
        let found = regions
            .all
            .binary_search_by_key(&address.0, |region| region.base);
        match found.ok().and_then(|index| regions.all.get_mut(index)) {
            Some(region) if region.live.is_some() => {
                region.live = None;
                Ok(())
            }
            _ => Err(MemoryError::NotAnAllocation(address)),
        }
    }

    /// The regions as they are now, for one launch.
    pub(crate) fn snapshot(&self) -> Vec<Region> {
        self.lock().all.clone()
    }

    fn find(&self, address: Address, bytes: u64) -> Result<(Arc<Allocation>, u64), MemoryError> {
        let regions = self.lock();
        let below = regions
            .all
            .partition_point(|region| region.base <= address.0);
        let region = below
            .checked_sub(1)
            .and_then(|index| regions.all.get(index));
        match region.and_then(|region| region.live.as_ref()) {
            Some(live) if live.contains(address.0, bytes) => {
                Ok((live.clone(), address.0 - live.base))
            }
            _ => Err(MemoryError::OutOfBounds {
                address,
                bytes,
                near: region.map(|region| region.name.to_string()),
            }),
        }
    }

    /// Writes bytes, which become initialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn write(&self, address: Address, bytes: &[u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.find(address, bytes.len() as u64)?;
        allocation.write(offset, bytes);
        allocation.mark(offset, bytes.len() as u64);
        Ok(())
    }

    /// Reads bytes; uninitialised ones have an unspecified value.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.find(address, bytes.len() as u64)?;
        allocation.read(offset, bytes);
        Ok(())
    }

    /// Sets every byte of a range, which becomes initialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn fill(&self, address: Address, bytes: u64, value: u8) -> Result<(), MemoryError> {
        let (allocation, offset) = self.find(address, bytes)?;
        allocation.fill(offset, bytes, value);
        allocation.mark(offset, bytes);
        Ok(())
    }

    /// Marks a range as uninitialised, its contents unchanged.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn mark_uninitialised(&self, address: Address, bytes: u64) -> Result<(), MemoryError> {
        let (allocation, offset) = self.find(address, bytes)?;
        allocation.unmark(offset, bytes);
        Ok(())
    }

    /// Sets every byte of a range to `value` and marks the range as uninitialised.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn poison(&self, address: Address, bytes: u64, value: u8) -> Result<(), MemoryError> {
        let (allocation, offset) = self.find(address, bytes)?;
        allocation.fill(offset, bytes, value);
        allocation.unmark(offset, bytes);
        Ok(())
    }

    /// Whether every byte of a range was written.
    ///
    /// # Errors
    /// The range is not inside one live allocation.
    pub fn is_initialised(&self, address: Address, bytes: u64) -> Result<bool, MemoryError> {
        let (allocation, offset) = self.find(address, bytes)?;
        Ok(allocation.is_written(offset, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_one_live_allocation_are_refused_by_name() {
        let memory = Memory::new();
        let a = memory.alloc("a", 10).unwrap();
        let b = memory.alloc("b", 10).unwrap();
        assert_eq!(a.0 % 256, 0);
        assert!(b.0 - a.0 >= 10 + RED_ZONE);
        assert!(memory.write(a, &[0; 10]).is_ok());
        for (address, bytes) in [
            (a, 11),
            (a.offset(10), 1),
            (b.offset(u64::MAX), 1),
            (b.offset(5), 6),
        ] {
            let refused = memory.write(address, &vec![0; bytes]);
            assert!(
                matches!(refused, Err(MemoryError::OutOfBounds { near: Some(_), .. })),
                "{address}"
            );
        }
        assert!(matches!(
            memory.read(Address(0), &mut [0]),
            Err(MemoryError::OutOfBounds { near: None, .. })
        ));
        assert!(memory.fill(a, u64::MAX, 0).is_err());
    }

    #[test]
    fn freed_memory_is_refused_and_its_address_not_reused() {
        let memory = Memory::new();
        let a = memory.alloc("a", 10).unwrap();
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(MemoryError::NotAnAllocation(a)));
        assert!(memory.read(a, &mut [0]).is_err());
        assert_ne!(memory.alloc("b", 10).unwrap(), a);
    }

    #[test]
    fn sizes_of_zero_and_beyond_the_address_space_are_refused() {
        let memory = Memory::new();
        assert!(matches!(
            memory.alloc("a", 0),
            Err(MemoryError::Size { .. })
        ));
        assert!(matches!(
            memory.alloc("a", u64::MAX),
            Err(MemoryError::Size { .. })
        ));
    }

    #[test]
    fn eight_gibibytes_cost_nothing_until_touched() {
        let memory = Memory::new();
        let big = memory.alloc("big", 8 << 30).unwrap();
        memory
            .write(big.offset((8 << 30) - 4), &[1, 2, 3, 4])
            .unwrap();
        let mut back = [0; 4];
        memory.read(big.offset((8 << 30) - 4), &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        assert!(!memory.is_initialised(big, 1).unwrap());
    }
}
