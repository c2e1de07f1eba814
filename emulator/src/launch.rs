//! What to launch and how to watch it.

use crate::check::Checks;

/// One kernel launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Entry name, as in the PTX.
    pub entry: &'a str,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes; uninitialised when a block starts.
    pub shared_bytes: u32,
    /// The bytes of the kernel's parameter space: each parameter at its aligned offset.
    pub params: &'a [u8],
}

/// Which blocks of the grid are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BlockSelection {
    /// The whole grid.
    #[default]
    All,
    /// Only these block indices, in this order. Special registers show the whole grid.
    Listed(Vec<[u32; 3]>),
}

/// How `mma` adds its products.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MmaMode {
    /// One f32 fused multiply-add a product, `k` ascending from the accumulator. Differs from hardware
    /// by rounding only.
    #[default]
    Fast,
    /// As the tensor cores of the A100 do (arXiv 2511.10909): eight products at a time, they and the accumulator cut to
    /// 24 fractional bits below the largest exponent, summed exactly, rounded toward zero. One lane at a time: slow.
    Exact,
}

/// Whether memory traffic is counted. Warp instructions are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Counters {
    /// Global sectors by allocation and shared-memory wavefronts.
    #[default]
    All,
    /// Only warp instructions.
    InstructionsOnly,
}

/// How a launch is watched. `Options::default()` checks everything, counts everything and uses every core.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which faults are looked for.
    pub checks: Checks,
    /// What is counted.
    pub counters: Counters,
    /// Worker threads; `None` takes the surrounding rayon pool. Results do not depend on it.
    pub threads: Option<usize>,
    /// Which blocks run.
    pub blocks: BlockSelection,
    /// Warp instructions one block may execute before it is stopped as an endless loop.
    pub instruction_limit: u64,
    /// Distinct findings kept; further ones are only counted.
    pub finding_limit: usize,
    /// How `mma` adds.
    pub mma: MmaMode,
    /// Uses only portable code even where the CPU has AVX2 and FMA. Results are the same; for tests.
    pub portable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            checks: Checks::all(),
            counters: Counters::All,
            threads: None,
            blocks: BlockSelection::All,
            instruction_limit: 200_000_000,
            finding_limit: 256,
            mma: MmaMode::Fast,
            portable: false,
        }
    }
}

impl Options {
    /// No checks: as fast as the emulator goes while it counts.
    #[must_use]
    pub fn functional() -> Self {
        Self {
            checks: Checks::none(),
            ..Self::default()
        }
    }
}
