//! An image's CUBIN on an NVIDIA GPU.
//!
//! All of cudarc's use in this crate is in here. The driver is loaded at run time, so a program with
//! this feature links and starts on machines without one, and learns of it from
//! [`DeviceError::NoDriver`].

mod external;
mod identify;
mod library;
mod memory;
mod module;
mod timing;

pub use external::External;
pub use memory::CudaBuffer;
pub use module::CudaModule;
pub use timing::{Samples, TimedError, Timing};

use super::{Device, DeviceError, LaunchConfig, LoadError, Region, check_image};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use pagesmith_spec::{Gpu, Image};
use std::ffi::c_void;
use std::sync::Arc;

/// An NVIDIA GPU.
///
/// ```
/// use pagesmith_runtime::device::{Cuda, DeviceError};
///
/// match Cuda::new(0) {
///     Ok(cuda) => assert!(!cuda.driver_version().is_empty()),
///     // On a machine without a GPU.
///     Err(DeviceError::NoDriver { .. } | DeviceError::NoDevice { .. }) => {}
///     Err(error) => return Err(error.into()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cuda {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    driver_version: String,
    host_memory: HostMemory,
}

/// Whether the GPU reads pageable host memory in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostMemory {
    /// It does not: a copy from pageable memory has read its source when the call returns.
    Staged,
    /// It does, through the CPU's page tables (Grace): a copy may read its source later.
    InPlace,
}

impl Cuda {
    /// The device of that ordinal, on a stream of its own.
    ///
    /// # Errors
    /// When there is no driver or no such device, or it is no GPU that pagesmith knows.
    pub fn new(ordinal: usize) -> Result<Self, DeviceError> {
        library::require()?;
        let count = CudaContext::device_count().map_err(|error| failed("cuInit", error))?;
        let count = usize::try_from(count).unwrap_or(0);
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        let context =
            CudaContext::new(ordinal).map_err(|error| failed("cuDevicePrimaryCtxRetain", error))?;
        let stream = context
            .new_stream()
            .map_err(|error| failed("cuStreamCreate", error))?;
        Self::on_stream(stream)
    }

    /// The device of a stream that the caller owns, working on that stream.
    ///
    /// # Errors
    /// When the device is no GPU that pagesmith knows.
    pub fn on_stream(stream: Arc<CudaStream>) -> Result<Self, DeviceError> {
        library::require()?;
        let context = stream.context();
        let driver_version = library::driver_version()?;
        let gpu = identify::identify(context)?;
        let in_place = context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)
            .map_err(|error| failed("cuDeviceGetAttribute", error))?;
        Ok(Cuda {
            gpu,
            stream,
            driver_version,
            host_memory: match in_place {
                0 => HostMemory::Staged,
                _ => HostMemory::InPlace,
            },
        })
    }

    /// The driver's version, such as `580.65.06` or, where the kernel module does not tell,
    /// `CUDA 13.0`.
    pub fn driver_version(&self) -> &str {
        &self.driver_version
    }

    /// The context.
    pub fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    fn bind(&self) -> Result<(), DeviceError> {
        self.context()
            .bind_to_thread()
            .map_err(|error| failed("cuCtxSetCurrent", error))
    }
}

/// An error of a driver call.
fn failed(call: &'static str, error: DriverError) -> DeviceError {
    DeviceError::Driver {
        call,
        reason: reason(error),
    }
}

/// What the driver says of an error, with its name.
fn reason(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => format!("{:?}: {}", error.0, text.to_string_lossy()),
        Err(_) => format!("{:?}", error.0),
    }
}

impl Device for Cuda {
    type Buffer = CudaBuffer;
    type Stream = Arc<CudaStream>;
    type Module = CudaModule;

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn stream(&self) -> Arc<CudaStream> {
        Arc::clone(&self.stream)
    }

    fn alloc(&self, name: &str, bytes: u64) -> Result<CudaBuffer, DeviceError> {
        CudaBuffer::new(self.context(), name, bytes)
    }

    fn upload(
        &self,
        to: Region<'_>,
        bytes: &[u8],
        stream: &Arc<CudaStream>,
    ) -> Result<(), DeviceError> {
        let to = to.prefix(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: `to` is live device memory of this length. The copy may still read `bytes` when
        // the call returns only if they are pinned, or pageable memory that the GPU reads in place;
        // both are waited for below.
        unsafe { result::memcpy_htod_async(to.start().0, bytes, stream.cu_stream()) }
            .map_err(|error| failed("cuMemcpyHtoDAsync", error))?;
        if self.host_memory == HostMemory::InPlace || memory::is_pinned(bytes) {
            self.synchronize(stream)?;
        }
        Ok(())
    }

    fn download(
        &self,
        from: Region<'_>,
        bytes: &mut [u8],
        stream: &Arc<CudaStream>,
    ) -> Result<(), DeviceError> {
        let from = from.prefix(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: `from` is live device memory of this length, and `bytes` stay borrowed until the
        // stream has been waited for.
        let copied =
            unsafe { result::memcpy_dtoh_async(bytes, from.start().0, stream.cu_stream()) };
        let waited = self.synchronize(stream);
        copied.map_err(|error| failed("cuMemcpyDtoHAsync", error))?;
        waited
    }

    fn fill(&self, to: Region<'_>, value: u8, stream: &Arc<CudaStream>) -> Result<(), DeviceError> {
        if to.bytes() == 0 {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: `to` is live device memory of this length (a `usize`: it was allocated).
        unsafe {
            result::memset_d8_async(to.start().0, value, to.bytes() as usize, stream.cu_stream())
        }
        .map_err(|error| failed("cuMemsetD8Async", error))
    }

    fn load(&self, image: &Image) -> Result<CudaModule, LoadError> {
        check_image(image, self.gpu.arch)?;
        CudaModule::load(self.context(), image)
    }

    unsafe fn launch(
        &self,
        module: &CudaModule,
        entry: &str,
        config: LaunchConfig,
        params: &[u8],
        stream: &Arc<CudaStream>,
    ) -> Result<(), DeviceError> {
        let refused = |reason| DeviceError::Launch {
            entry: entry.to_owned(),
            reason,
        };
        let function = module
            .function(entry)
            .ok_or_else(|| refused(String::from("the image has no such kernel")))?;
        self.bind()?;
        // One parameter: the struct itself. The driver copies it before the call returns, as many
        // bytes as the kernel declares, and does not write through the pointer.
        let mut parameters = [params.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: the function is of a module that `module` keeps loaded; that `params` is the
        // kernel's struct over live memory is this method's contract.
        unsafe {
            result::launch_kernel(
                function,
                (config.ctas, 1, 1),
                (config.threads, 1, 1),
                config.shared_bytes,
                stream.cu_stream(),
                &mut parameters,
            )
        }
        .map_err(|error| refused(reason(error)))
    }

    fn synchronize(&self, stream: &Arc<CudaStream>) -> Result<(), DeviceError> {
        stream
            .synchronize()
            .map_err(|error| failed("cuStreamSynchronize", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_gets_a_typed_error_and_no_panic() {
        match Cuda::new(4096) {
            Err(DeviceError::NoDriver { library }) => assert!(library.contains("libcuda")),
            Err(DeviceError::NoDevice { ordinal, .. }) => assert_eq!(ordinal, 4096),
            Err(DeviceError::Driver { call, .. }) => assert_eq!(call, "cuInit"),
            other => panic!("{other:?}"),
        }
    }
}
