//! The driver library: whether it is there, and which it is.

use super::{DeviceError, failed};
use cudarc::driver::sys;
use std::sync::OnceLock;

/// The driver's library where the system's loader finds it. cudarc looks for these names among
/// others.
const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
/// The oldest driver that has every call made here: `cuEventElapsedTime_v2` came last.
const OLDEST: i32 = 12_080;
const OLDEST_NAME: &str = "12.8";

/// Makes sure that cudarc, which panics without the library, can be called.
pub(super) fn require() -> Result<(), DeviceError> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        LIBRARIES.iter().any(|name| {
            // SAFETY: the driver's initialisers are what every CUDA program runs.
            let library = unsafe { libloading::Library::new(*name) };
            // Stays loaded: cudarc's own lookup then finds it whatever happens to the path.
            library.map(std::mem::forget).is_ok()
        })
    });
    if !found {
        return Err(DeviceError::NoDriver {
            library: "libcuda.so.1",
        });
    }
    let version = api_version()?;
    if version < OLDEST {
        return Err(DeviceError::OldDriver {
            found: dotted(version),
            needed: OLDEST_NAME,
        });
    }
    Ok(())
}

/// The version of the kernel module, or else of the CUDA that it supports.
pub(super) fn driver_version() -> Result<String, DeviceError> {
    let version = api_version()?;
    let module = std::fs::read_to_string("/proc/driver/nvidia/version")
        .ok()
        .as_deref()
        .and_then(module_version);
    Ok(module.unwrap_or_else(|| format!("CUDA {}", dotted(version))))
}

fn api_version() -> Result<i32, DeviceError> {
    let mut version = 0;
    // SAFETY: the library is there, and the call writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| failed("cuDriverGetVersion", error))?;
    Ok(version)
}

/// 13000 is 13.0.
fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// From the first line of `/proc/driver/nvidia/version`: the first word of digits with two dots.
fn module_version(text: &str) -> Option<String> {
    let line = text
        .lines()
        .find(|line| line.starts_with("NVRM version:"))?;
    line.split_whitespace()
        .find(|word| {
            let parts: Vec<&str> = word.split('.').collect();
            (2..=3).contains(&parts.len())
                && parts
                    .iter()
                    .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(dotted(13_000), "13.0");
        assert_eq!(dotted(12_080), "12.8");
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n\
                    GCC version:  gcc version 12.2.0\n";
        assert_eq!(module_version(text).as_deref(), Some("580.65.06"));
        assert_eq!(module_version("GCC version: 12.2.0\n"), None);
        assert_eq!(module_version(""), None);
    }
}
