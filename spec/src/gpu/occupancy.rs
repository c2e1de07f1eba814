//! How many blocks of a kernel one multiprocessor holds.

use super::{Arch, Gpu};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What one block of a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic together.
    pub shared_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
}

/// The resource that keeps one more block from a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Resident warps.
    Warps,
    /// Resident blocks.
    Blocks,
    /// The block alone is more than a launch accepts.
    Launch,
}

/// Resident blocks of one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Occupancy {
    /// Blocks that are resident together; 0 when not even one can be launched.
    pub ctas_per_sm: u32,
    /// Warps of those blocks.
    pub warps_per_sm: u32,
    /// What keeps one more block out.
    pub limited_by: Limit,
}

impl Gpu {
    /// Resident blocks of a kernel on one multiprocessor of this GPU.
    ///
    /// ```
    /// use pagesmith_spec::Gpu;
    /// use pagesmith_spec::gpu::{Footprint, Limit};
    ///
    /// let gpu = Gpu::by_name("a100-sxm4-80gb")?;
    /// let occupancy = gpu.occupancy(Footprint { registers: 168, shared_bytes: 69_632, threads: 128 });
    /// assert_eq!((occupancy.ctas_per_sm, occupancy.limited_by), (2, Limit::SharedMemory));
    /// # Ok::<(), pagesmith_spec::gpu::GpuError>(())
    /// ```
    pub fn occupancy(&self, footprint: Footprint) -> Occupancy {
        self.arch.occupancy(footprint)
    }
}

impl Arch {
    /// Resident blocks of a kernel on one multiprocessor of this arch, by the rules of NVIDIA's
    /// occupancy calculator: a warp's registers are rounded up to the allocation unit and live in
    /// one sub-core; a block's shared memory is rounded up with the system's reserve added.
    pub fn occupancy(self, footprint: Footprint) -> Occupancy {
        let Footprint {
            registers,
            shared_bytes,
            threads,
        } = footprint;
        let refused = Occupancy {
            ctas_per_sm: 0,
            warps_per_sm: 0,
            limited_by: Limit::Launch,
        };
        if threads == 0
            || threads > self.max_threads_per_block()
            || registers > self.max_registers_per_thread()
            || shared_bytes > self.max_shared_bytes_per_block()
        {
            return refused;
        }
        let warps = threads.div_ceil(Self::WARP);
        let per_warp =
            (registers.max(1) * Self::WARP).next_multiple_of(self.register_allocation_unit());
        let warps_by_registers =
            self.registers_per_sm() / Self::SUB_CORES / per_warp * Self::SUB_CORES;
        let shared = (shared_bytes + self.reserved_shared_bytes_per_block())
            .next_multiple_of(self.shared_allocation_bytes());
        // In the order in which a tie is named: what a tuning can change comes first.
        let limits = [
            (Limit::Registers, warps_by_registers / warps),
            (Limit::SharedMemory, self.max_shared_bytes_per_sm() / shared),
            (Limit::Warps, self.max_warps_per_sm() / warps),
            (Limit::Blocks, self.max_blocks_per_sm()),
        ];
        let mut tightest = limits[0];
        for limit in limits {
            if limit.1 < tightest.1 {
                tightest = limit;
            }
        }
        let (limited_by, ctas_per_sm) = tightest;
        if ctas_per_sm == 0 {
            // 1,024 threads of more than 64 registers: no sub-core can hold its share.
            return refused;
        }
        Occupancy {
            ctas_per_sm,
            warps_per_sm: ctas_per_sm * warps,
            limited_by,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Registers => "registers",
            Limit::SharedMemory => "shared memory",
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
            Limit::Launch => "launch limits",
        })
    }
}
