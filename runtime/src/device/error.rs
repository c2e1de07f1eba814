//! What a device refuses.

use super::RegionError;
use pagesmith_spec::gpu::GpuError;
use pagesmith_spec::{Arch, ContentHash};

/// A device that is missing, or refused what it was asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The machine has no NVIDIA driver.
    #[error(
        "cuda: {library} was not found; install the NVIDIA driver, make it visible to this container (--gpus all), or use the emulated device"
    )]
    NoDriver {
        /// The library that was looked for.
        library: &'static str,
    },
    /// The driver is too old for the calls that are made.
    #[error("cuda: the driver supports CUDA {found}, {needed} is needed; update the NVIDIA driver")]
    OldDriver {
        /// What the driver supports.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// There is no device of that ordinal.
    #[error(
        "cuda: device {ordinal} does not exist; the driver shows {count} (CUDA_VISIBLE_DEVICES hides others)"
    )]
    NoDevice {
        /// The ordinal asked for.
        ordinal: usize,
        /// Devices there are.
        count: usize,
    },
    /// The device is no GPU that pagesmith knows.
    #[error("cuda: device {ordinal} is `{name}`: {source}")]
    UnknownGpu {
        /// Its ordinal.
        ordinal: usize,
        /// What the driver calls it.
        name: String,
        /// The names there are.
        source: GpuError,
    },
    /// The device has a known name and other numbers: part of a GPU, or another edition.
    #[error(
        "cuda: device {ordinal} `{name}` has {field} = {found}, {gpu} has {expected}; kernels tuned for one do not suit the other (a MIG slice is not the whole GPU)"
    )]
    OtherEdition {
        /// Its ordinal.
        ordinal: usize,
        /// What the driver calls it.
        name: String,
        /// The GPU of that name.
        gpu: String,
        /// What differs.
        field: &'static str,
        /// The device's.
        found: u64,
        /// The GPU's.
        expected: u64,
    },
    /// No room for an allocation.
    #[error("device: no room for `{name}` of {bytes} bytes: {reason}; free memory or ask for less")]
    OutOfMemory {
        /// Name of the allocation.
        name: String,
        /// Its size.
        bytes: u64,
        /// What the device says.
        reason: String,
    },
    /// A copy that does not fit.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A driver call failed.
    #[error("cuda: {call}: {reason}")]
    Driver {
        /// The call.
        call: &'static str,
        /// What the driver says.
        reason: String,
    },
    /// A copy failed on the emulated device.
    #[error("emulated: {0}")]
    Memory(String),
    /// A launch that the device refuses.
    #[error("launch of `{entry}`: {reason}")]
    Launch {
        /// The kernel.
        entry: String,
        /// Why not.
        reason: String,
    },
    /// The emulator's checks found faults in a kernel.
    #[error("launch of `{entry}`: {count} findings, the first: {first}")]
    Findings {
        /// The kernel.
        entry: String,
        /// How many.
        count: u64,
        /// The first of them.
        first: String,
    },
}

/// An image that a device cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Compiled for another arch.
    #[error("image: arch is {image}, the device is {device}; tune for this GPU")]
    Arch {
        /// The image's.
        image: Arch,
        /// The device's.
        device: Arch,
    },
    /// Compiled against another launch ABI.
    #[error("image: ABI is {image}, this runtime's is {runtime}; tune again with this version")]
    Abi {
        /// The image's.
        image: ContentHash,
        /// The runtime's.
        runtime: ContentHash,
    },
    /// Forged from another variant.
    #[error(
        "image: forged from {}, wanted for {wanted}; tune again to replace it",
        image.as_deref().unwrap_or("no variant")
    )]
    Variant {
        /// The id that it was to be loaded as.
        wanted: String,
        /// The last part of the id of the variant that it was forged from.
        image: Option<String>,
    },
    /// The image has no such kernel.
    #[error("image: no kernel `{entry}`; tune again to replace the image")]
    MissingEntry {
        /// The kernel.
        entry: &'static str,
    },
    /// The emulator cannot read the PTX.
    #[error("image: {0}")]
    Ptx(String),
    /// The driver cannot read the CUBIN.
    #[error("image: cuModuleLoadData: {0}; tune again to replace the image")]
    Cubin(String),
}
