//! Tensors that the caller owns.

use super::super::Region;
use cudarc::driver::{
    CudaStream, DevicePtr as Readable, DevicePtrMut as Writable, SyncOnDrop, sys,
};
use pagesmith_spec::abi::DevicePtr;

/// A caller's `CudaSlice` or view, borrowed for work on one stream.
///
/// Keep it until that work is submitted: dropping it tells cudarc that the stream has used the
/// slice, so that other streams, and freeing it, wait.
///
/// ```no_run
/// use cudarc::driver::{CudaContext, CudaSlice};
/// use pagesmith_runtime::device::cuda::{Cuda, External};
///
/// let context = CudaContext::new(0)?;
/// let stream = context.default_stream();
/// let cuda = Cuda::on_stream(stream.clone())?;
///
/// let query: CudaSlice<u8> = stream.alloc_zeros(4096)?;
/// let mut out: CudaSlice<u8> = stream.alloc_zeros(4096)?;
/// let query = External::read(&query, &stream);
/// let out = External::write(&mut out, &stream);
/// assert_eq!(query.region().bytes(), out.region().bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct External<'m> {
    address: sys::CUdeviceptr,
    bytes: u64,
    _sync: SyncOnDrop<'m>,
}

impl<'m> External<'m> {
    /// For kernels that read it. `stream` waits for what was written before.
    pub fn read<T>(slice: &'m impl Readable<T>, stream: &'m CudaStream) -> Self {
        let bytes = slice.num_bytes() as u64;
        let (address, sync) = slice.device_ptr(stream);
        External {
            address,
            bytes,
            _sync: sync,
        }
    }

    /// For kernels that write it. `stream` waits for what was read and written before.
    pub fn write<T>(slice: &'m mut impl Writable<T>, stream: &'m CudaStream) -> Self {
        let bytes = slice.num_bytes() as u64;
        let (address, sync) = slice.device_ptr_mut(stream);
        External {
            address,
            bytes,
            _sync: sync,
        }
    }

    /// The memory, for as long as this is kept.
    pub fn region(&self) -> Region<'_> {
        // SAFETY: the slice is borrowed for as long as `self` lives. When `self` is dropped, cudarc
        // records on the slice that the stream uses it, and frees it after that.
        unsafe { Region::from_raw(DevicePtr(self.address), self.bytes) }
    }
}
