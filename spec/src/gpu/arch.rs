//! Compute capabilities, and what one multiprocessor of each can hold.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A compute capability that pagesmith has kernels for.
///
/// The limits are those of the table "Technical Specifications per Compute Capability" in NVIDIA's
/// CUDA C++ programming guide, and of the occupancy calculator where that table is silent.
///
/// ```
/// use pagesmith_spec::Arch;
///
/// let arch: Arch = "sm_80".parse()?;
/// assert_eq!(arch, Arch::SM_80);
/// assert_eq!(arch.nvrtc_flag(), "--gpu-architecture=sm_80");
/// assert_eq!(arch.max_shared_bytes_per_block(), 163 * 1024);
/// # Ok::<(), pagesmith_spec::gpu::UnknownArch>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Arch {
    // Private: an `Arch` exists only where its limits are known, so the getters need no error.
    major: u8,
    minor: u8,
}

/// A compute capability without limits on file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arch: `{value}` is not supported; use one of sm_80, sm_90")]
pub struct UnknownArch {
    /// What was asked for.
    pub value: String,
}

impl Arch {
    /// Compute capability 8.0: A100.
    pub const SM_80: Arch = Arch { major: 8, minor: 0 };
    /// Compute capability 9.0: H100, H200.
    pub const SM_90: Arch = Arch { major: 9, minor: 0 };
    /// Every arch, oldest first.
    pub const ALL: [Arch; 2] = [Arch::SM_80, Arch::SM_90];

    /// Threads of a warp.
    pub const WARP: u32 = 32;
    /// Sub-cores of a multiprocessor, each with its own scheduler and registers.
    pub const SUB_CORES: u32 = 4;

    /// The arch of a device that reports this compute capability.
    ///
    /// # Errors
    /// When pagesmith does not know its limits.
    pub fn from_capability(major: u32, minor: u32) -> Result<Self, UnknownArch> {
        Self::ALL
            .into_iter()
            .find(|arch| (u32::from(arch.major), u32::from(arch.minor)) == (major, minor))
            .ok_or_else(|| UnknownArch {
                value: format!("compute capability {major}.{minor}"),
            })
    }

    /// Compute capability: major version.
    pub const fn major(self) -> u32 {
        self.major as u32
    }

    /// Compute capability: minor version.
    pub const fn minor(self) -> u32 {
        self.minor as u32
    }

    /// The option that makes NVRTC emit PTX and CUBIN for exactly this arch.
    pub fn nvrtc_flag(self) -> String {
        format!("--gpu-architecture={self}")
    }

    /// Shared memory of a multiprocessor in bytes.
    pub const fn max_shared_bytes_per_sm(self) -> u32 {
        match self {
            Arch::SM_90 => 228 * 1024,
            _ => 164 * 1024,
        }
    }

    /// Largest shared memory that one block can opt in to, in bytes.
    pub const fn max_shared_bytes_per_block(self) -> u32 {
        self.max_shared_bytes_per_sm() - self.reserved_shared_bytes_per_block()
    }

    /// Shared memory that the system takes for each resident block, in bytes.
    pub const fn reserved_shared_bytes_per_block(self) -> u32 {
        1024
    }

    /// Granularity of a block's shared memory in bytes.
    pub const fn shared_allocation_bytes(self) -> u32 {
        128
    }

    /// 32-bit registers of a multiprocessor.
    pub const fn registers_per_sm(self) -> u32 {
        64 * 1024
    }

    /// Most registers of one thread.
    pub const fn max_registers_per_thread(self) -> u32 {
        255
    }

    /// Granularity of a warp's registers.
    pub const fn register_allocation_unit(self) -> u32 {
        256
    }

    /// Most resident threads of a multiprocessor.
    pub const fn max_threads_per_sm(self) -> u32 {
        2048
    }

    /// Most resident warps of a multiprocessor.
    pub const fn max_warps_per_sm(self) -> u32 {
        self.max_threads_per_sm() / Self::WARP
    }

    /// Most resident blocks of a multiprocessor.
    pub const fn max_blocks_per_sm(self) -> u32 {
        32
    }

    /// Most threads of one block.
    pub const fn max_threads_per_block(self) -> u32 {
        1024
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(text: &str) -> Result<Self, UnknownArch> {
        Self::ALL
            .into_iter()
            .find(|arch| arch.to_string() == text)
            .ok_or_else(|| UnknownArch {
                value: text.to_owned(),
            })
    }
}

impl TryFrom<String> for Arch {
    type Error = UnknownArch;

    fn try_from(text: String) -> Result<Self, UnknownArch> {
        text.parse()
    }
}

impl From<Arch> for String {
    fn from(arch: Arch) -> String {
        arch.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arch_parses_back_from_its_name_and_capability() {
        for arch in Arch::ALL {
            assert_eq!(arch.to_string().parse(), Ok(arch));
            assert_eq!(Arch::from_capability(arch.major(), arch.minor()), Ok(arch));
        }
    }

    #[test]
    fn an_arch_without_limits_is_refused_with_the_known_ones() {
        for error in [
            "sm_75".parse::<Arch>().unwrap_err(),
            Arch::from_capability(8, 6).unwrap_err(),
            Arch::from_capability(264, 0).unwrap_err(),
        ] {
            assert!(error.to_string().contains("sm_80, sm_90"), "{error}");
        }
    }

    #[test]
    fn the_error_lists_every_arch() {
        let error = "sm_75".parse::<Arch>().unwrap_err().to_string();
        for arch in Arch::ALL {
            assert!(error.contains(&arch.to_string()), "{error}");
        }
    }
}
