//! An image's PTX on the CPU, under the emulator's checks.

use super::{Buffer, Device, DeviceError, LaunchConfig, LoadError, Region, check_image};
use pagesmith_emulator::{Address, Launch, Memory, Options, Program, Report, launch};
use pagesmith_spec::abi::DevicePtr;
use pagesmith_spec::{Gpu, Image};
use std::sync::{Arc, Mutex, PoisonError};

/// Allocations have at least one byte; kernels never touch that of an empty buffer.
const SMALLEST: u64 = 1;

/// A GPU that is emulated: it answers as `gpu` would, only slower, and finds faults.
///
/// ```
/// use pagesmith_runtime::device::{Buffer, Device, Emulated};
/// use pagesmith_spec::Gpu;
///
/// let device = Emulated::new(Gpu::by_name("a100-sxm4-80gb")?);
/// let buffer = device.alloc("numbers", 4)?;
/// let stream = device.stream();
/// device.upload(buffer.region(), &[1, 2, 3, 4], &stream)?;
///
/// let mut back = [0; 4];
/// device.download(buffer.region(), &mut back, &stream)?;
/// assert_eq!(back, [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Emulated {
    gpu: Gpu,
    memory: Arc<Memory>,
    options: EmulatedOptions,
    reports: Mutex<Vec<LaunchReport>>,
}

/// How launches are watched.
#[derive(Clone, Debug, Default)]
pub struct EmulatedOptions {
    /// Checks, counters, threads, limits.
    pub launch: Options,
    /// What becomes of what they find.
    pub findings: Findings,
}

/// What becomes of the findings of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Findings {
    /// A finding is an error of the launch. Reports are dropped, so that memory does not grow.
    #[default]
    Fail,
    /// Every report is kept for [`Emulated::take_reports`].
    Collect,
}

/// The report of one launch.
#[derive(Clone, Debug)]
pub struct LaunchReport {
    /// The kernel.
    pub entry: String,
    /// What it executed, and what is wrong with it.
    pub report: Report,
}

impl Emulated {
    /// An emulated `gpu` under all checks, a finding being an error.
    pub fn new(gpu: Gpu) -> Self {
        Self::with_options(gpu, EmulatedOptions::default())
    }

    /// An emulated `gpu` under the given checks.
    pub fn with_options(gpu: Gpu, options: EmulatedOptions) -> Self {
        Emulated {
            gpu,
            memory: Arc::new(Memory::new()),
            options,
            reports: Mutex::new(Vec::new()),
        }
    }

    /// The reports of all launches since the last call, in order; empty under [`Findings::Fail`].
    pub fn take_reports(&self) -> Vec<LaunchReport> {
        // A panic elsewhere leaves whole reports behind.
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reports)
    }

    /// Sets every byte of a region and marks it uninitialised: a kernel that reads it is found, and
    /// a test that reads it sees what the kernel did not write.
    ///
    /// # Errors
    /// When the region is not memory of this device.
    pub fn poison(&self, region: Region<'_>, value: u8) -> Result<(), DeviceError> {
        if region.bytes() == 0 {
            return Ok(());
        }
        self.memory
            .poison(Address(region.start().0), region.bytes(), value)
            .map_err(memory_error)
    }

    /// The emulated memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// The one queue there is: emulated work is done when a call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulatedStream;

/// Emulated memory, freed when dropped.
#[derive(Debug)]
pub struct EmulatedBuffer {
    memory: Arc<Memory>,
    address: Address,
    bytes: u64,
}

impl Buffer for EmulatedBuffer {
    fn region(&self) -> Region<'_> {
        // SAFETY: the allocation lives as long as `self`, and launches are over when they return.
        unsafe { Region::from_raw(DevicePtr(self.address.0), self.bytes) }
    }
}

impl Drop for EmulatedBuffer {
    fn drop(&mut self) {
        let freed = self.memory.free(self.address);
        debug_assert!(freed.is_ok(), "a buffer owns its allocation: {freed:?}");
    }
}

impl Device for Emulated {
    type Buffer = EmulatedBuffer;
    type Stream = EmulatedStream;
    type Module = Program;

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn stream(&self) -> EmulatedStream {
        EmulatedStream
    }

    fn alloc(&self, name: &str, bytes: u64) -> Result<EmulatedBuffer, DeviceError> {
        let address = self
            .memory
            .alloc(name, bytes.max(SMALLEST))
            .map_err(|error| DeviceError::OutOfMemory {
                name: name.to_owned(),
                bytes,
                reason: error.to_string(),
            })?;
        Ok(EmulatedBuffer {
            memory: Arc::clone(&self.memory),
            address,
            bytes,
        })
    }

    fn upload(
        &self,
        to: Region<'_>,
        bytes: &[u8],
        _stream: &EmulatedStream,
    ) -> Result<(), DeviceError> {
        let to = to.prefix(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.memory
            .write(Address(to.start().0), bytes)
            .map_err(memory_error)
    }

    fn download(
        &self,
        from: Region<'_>,
        bytes: &mut [u8],
        _stream: &EmulatedStream,
    ) -> Result<(), DeviceError> {
        let from = from.prefix(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.memory
            .read(Address(from.start().0), bytes)
            .map_err(memory_error)
    }

    fn fill(&self, to: Region<'_>, value: u8, _stream: &EmulatedStream) -> Result<(), DeviceError> {
        if to.bytes() == 0 {
            return Ok(());
        }
        self.memory
            .fill(Address(to.start().0), to.bytes(), value)
            .map_err(memory_error)
    }

    fn load(&self, image: &Image) -> Result<Program, LoadError> {
        check_image(image, self.gpu.arch)?;
        Program::parse(&image.ptx).map_err(|error| LoadError::Ptx(error.to_string()))
    }

    unsafe fn launch(
        &self,
        module: &Program,
        entry: &str,
        config: LaunchConfig,
        params: &[u8],
        _stream: &EmulatedStream,
    ) -> Result<(), DeviceError> {
        let request = Launch {
            entry,
            grid: [config.ctas, 1, 1],
            block: [config.threads, 1, 1],
            shared_bytes: config.shared_bytes,
            params,
        };
        let report =
            launch(module, &self.memory, &request, &self.options.launch).map_err(|error| {
                DeviceError::Launch {
                    entry: entry.to_owned(),
                    reason: error.to_string(),
                }
            })?;
        match (self.options.findings, report.findings.first()) {
            (Findings::Collect, _) => {
                let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
                reports.push(LaunchReport {
                    entry: entry.to_owned(),
                    report,
                });
                Ok(())
            }
            (Findings::Fail, None) => Ok(()),
            (Findings::Fail, Some(first)) => Err(DeviceError::Findings {
                entry: entry.to_owned(),
                count: report.findings.len() as u64 + report.findings_dropped,
                first: first.to_string(),
            }),
        }
    }

    fn synchronize(&self, _stream: &EmulatedStream) -> Result<(), DeviceError> {
        Ok(())
    }
}

fn memory_error(error: pagesmith_emulator::MemoryError) -> DeviceError {
    DeviceError::Memory(error.to_string())
}
