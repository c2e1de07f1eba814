//! Memory, and launching images: what [`crate::attention::Kernels`] needs of a machine.
//!
//! ```text
//!   Device ──┬── Emulated   the PTX of an image, on the CPU, under checks   (feature `emulated`)
//!            └── Cuda       its CUBIN, on an NVIDIA GPU                     (feature `cuda`)
//! ```
//!
//! Addresses are [`DevicePtr`](pagesmith_spec::abi::DevicePtr)s; a [`Region`] is an address with its length and the lifetime of the
//! memory behind it, so that safe code cannot hand a kernel memory that is gone.

mod error;
mod region;

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "emulated")]
pub mod emulated;

#[cfg(feature = "cuda")]
pub use cuda::Cuda;
#[cfg(feature = "emulated")]
pub use emulated::Emulated;
pub use error::{DeviceError, LoadError};
pub use region::{Region, RegionError};

use pagesmith_spec::{Arch, Gpu, Image, Variant, abi};

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// CTAs, along x.
    pub ctas: u32,
    /// Threads of a CTA, along x.
    pub threads: u32,
    /// Dynamic shared memory of a CTA in bytes.
    pub shared_bytes: u32,
}

/// Memory that a device gave out; dropping it gives it back.
///
/// Kernels and copies write through a shared reference, as a [`Cell`](std::cell::Cell) would allow:
/// the host never holds a Rust reference into device memory, and order is the stream's business.
pub trait Buffer {
    /// The whole buffer.
    fn region(&self) -> Region<'_>;

    /// Its length in bytes.
    fn bytes(&self) -> u64 {
        self.region().bytes()
    }
}

/// A machine that holds tensors and runs images.
///
/// Work submitted to one stream runs in order. `upload` may return before the copy is done, but
/// never reads `bytes` after it returned; `download` waits for its stream.
pub trait Device {
    /// Memory of this device. Dropping it must be safe while kernels that use it still run.
    type Buffer: Buffer;
    /// An ordered queue of work. Equal streams are the same queue.
    type Stream: Clone + PartialEq;
    /// A loaded image.
    type Module;

    /// Which product this is.
    fn gpu(&self) -> &Gpu;

    /// The stream this device works on unless told otherwise.
    fn stream(&self) -> Self::Stream;

    /// Allocates `bytes` bytes, aligned to at least 256; the contents are undefined.
    ///
    /// The name appears in findings, counters and errors.
    ///
    /// # Errors
    /// When the device has no room for it.
    fn alloc(&self, name: &str, bytes: u64) -> Result<Self::Buffer, DeviceError>;

    /// Copies `bytes` to the start of `to`.
    ///
    /// # Errors
    /// When they do not fit, or the device refuses.
    fn upload(
        &self,
        to: Region<'_>,
        bytes: &[u8],
        stream: &Self::Stream,
    ) -> Result<(), DeviceError>;

    /// Waits for `stream`, then copies from the start of `from` until `bytes` is full.
    ///
    /// # Errors
    /// When `from` is shorter, or the device refuses.
    fn download(
        &self,
        from: Region<'_>,
        bytes: &mut [u8],
        stream: &Self::Stream,
    ) -> Result<(), DeviceError>;

    /// Sets every byte of `to`.
    ///
    /// # Errors
    /// When the device refuses.
    fn fill(&self, to: Region<'_>, value: u8, stream: &Self::Stream) -> Result<(), DeviceError>;

    /// Loads an image after [`check_image`].
    ///
    /// # Errors
    /// When the image is for another arch or ABI, or the device cannot read it.
    fn load(&self, image: &Image) -> Result<Self::Module, LoadError>;

    /// Starts `entry` over `config`, `params` being the bytes of its one parameter struct.
    ///
    /// # Errors
    /// When the module has no such entry, or the device refuses. A fault of the kernel itself may
    /// show only when the stream is waited for.
    ///
    /// # Safety
    /// `params` must be the struct that `entry` of `module` takes, every address in it must be of
    /// memory of this device that is long enough for what the kernel does with it under `config`,
    /// and that memory must stay allocated until the kernel is done.
    unsafe fn launch(
        &self,
        module: &Self::Module,
        entry: &str,
        config: LaunchConfig,
        params: &[u8],
        stream: &Self::Stream,
    ) -> Result<(), DeviceError>;

    /// Waits until everything submitted to `stream` is done.
    ///
    /// # Errors
    /// When any of it failed.
    fn synchronize(&self, stream: &Self::Stream) -> Result<(), DeviceError>;
}

/// Whether a device of `arch` may run `image`: its CUBIN must be for exactly that arch, and its
/// kernels must read parameters as this runtime writes them.
///
/// # Errors
/// [`LoadError::Arch`] or [`LoadError::Abi`].
pub fn check_image(image: &Image, arch: Arch) -> Result<(), LoadError> {
    let header = &image.header;
    if header.arch != arch {
        return Err(LoadError::Arch {
            image: header.arch,
            device: arch,
        });
    }
    let runtime = abi::hash();
    if header.abi != runtime {
        return Err(LoadError::Abi {
            image: header.abi,
            runtime,
        });
    }
    Ok(())
}

/// Whether `image` is what `variant` was forged to: another variant's kernels take the same parameters,
/// and would follow them out of the tensors.
///
/// # Errors
/// [`LoadError::Variant`].
pub fn check_variant(image: &Image, variant: &Variant) -> Result<(), LoadError> {
    let wanted = variant.hash();
    if image.header.variant == Some(wanted) {
        return Ok(());
    }
    Err(LoadError::Variant {
        wanted: variant.id(),
        image: image.header.variant.map(|hash| hash.short()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagesmith_spec::ContentHash;
    use pagesmith_spec::image::ImageHeader;

    fn image() -> Image {
        Image {
            header: ImageHeader {
                arch: Arch::SM_80,
                entries: Vec::new(),
                abi: abi::hash(),
                source: ContentHash::of("test", &[]),
                variant: None,
                compiler: String::from("none"),
            },
            ptx: String::new(),
            cubin: Vec::new(),
        }
    }

    #[test]
    fn an_image_of_another_arch_is_refused_by_name() {
        assert_eq!(check_image(&image(), Arch::SM_80), Ok(()));
        let error = check_image(&image(), Arch::SM_90).unwrap_err();
        assert!(matches!(error, LoadError::Arch { .. }));
        let text = error.to_string();
        assert!(text.contains("sm_80") && text.contains("sm_90"), "{text}");
    }

    #[test]
    fn an_image_of_another_abi_is_refused_before_its_arch_is_used() {
        let mut old = image();
        old.header.abi = ContentHash::of("test", &[b"an older ABI"]);
        assert!(matches!(
            check_image(&old, Arch::SM_80),
            Err(LoadError::Abi { .. })
        ));
    }
}
