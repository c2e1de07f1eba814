//! Device memory.

use super::super::{Buffer, DeviceError, Region};
use super::{failed, reason};
use cudarc::driver::sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
use cudarc::driver::{CudaContext, result, sys};
use pagesmith_spec::abi::DevicePtr;
use std::sync::Arc;

/// The driver refuses allocations of 0 bytes.
const SMALLEST: usize = 1;

/// Device memory, freed when dropped and not before the device is idle.
#[derive(Debug)]
pub struct CudaBuffer {
    context: Arc<CudaContext>,
    address: sys::CUdeviceptr,
    bytes: u64,
}

impl CudaBuffer {
    pub(super) fn new(
        context: &Arc<CudaContext>,
        name: &str,
        bytes: u64,
    ) -> Result<Self, DeviceError> {
        let refused = |reason| DeviceError::OutOfMemory {
            name: name.to_owned(),
            bytes,
            reason,
        };
        let size = usize::try_from(bytes).map_err(|error| refused(error.to_string()))?;
        context
            .bind_to_thread()
            .map_err(|error| failed("cuCtxSetCurrent", error))?;
        // Not the stream-ordered allocator: memory that several streams use would have to be freed
        // in the order of all of them.
        // SAFETY: the context is current; the memory is freed once, in `drop`.
        let address = unsafe { result::malloc_sync(size.max(SMALLEST)) }
            .map_err(|error| refused(reason(error)))?;
        Ok(CudaBuffer {
            context: Arc::clone(context),
            address,
            bytes,
        })
    }
}

impl Buffer for CudaBuffer {
    fn region(&self) -> Region<'_> {
        // SAFETY: the allocation lives as long as `self`, and `drop` waits for the device.
        unsafe { Region::from_raw(DevicePtr(self.address), self.bytes) }
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        // Kernels that were given the region may still run: regions end before them.
        self.context.record_err(self.context.synchronize());
        // SAFETY: allocated by `new`, freed here alone, and no work of the context uses it any more.
        self.context
            .record_err(unsafe { result::free_sync(self.address) });
    }
}

/// Whether host memory is known to the driver, as pinned memory is: copies from it return at once.
pub(super) fn is_pinned(bytes: &[u8]) -> bool {
    let mut kind: u32 = 0;
    // SAFETY: the attribute is an `unsigned int`; an address that the driver does not know is an
    // error, which means pageable.
    unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut kind).cast(),
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            bytes.as_ptr() as sys::CUdeviceptr,
        )
    }
    .result()
    .is_ok()
}
