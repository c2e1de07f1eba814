//! What the model is told about a launch.

use crate::carry::ClassCounts;
use crate::error::TimingError;
use pagesmith_spec::Gpu;
use pagesmith_spec::gpu::{Bytes, Footprint};

/// One launch: what its CTAs take, do and move. Totals are over the whole grid.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchProfile {
    /// Its name in reports, such as `decode` or `merge`.
    pub name: String,
    /// Registers, shared memory (static and dynamic) and threads of a CTA.
    pub footprint: Footprint,
    /// Work of each CTA in launch order, in any one unit: KV tokens of a work item, say. Its
    /// length is the grid; a CTA's part of all other figures is its part of the sum.
    pub cta_weights: Vec<f64>,
    /// Warp-instructions issued, by class ([`crate::SassCounts::by_class`]).
    pub instructions: ClassCounts,
    /// Bytes that must cross the DRAM interface: each byte once, unless it cannot stay in L2.
    pub dram_bytes: Bytes,
    /// Bytes between L1 and L2: 32 times the global sectors of loads, copies and stores.
    pub l2_bytes: Bytes,
    /// Wavefronts of shared memory, those of asynchronous copies included.
    pub shared_wavefronts: u64,
    /// Bytes of global loads that one CTA keeps outstanding in its steady state: for a pipeline of
    /// copies, `(stages - 1) * stage bytes` of all warps.
    pub cta_bytes_in_flight: Bytes,
    /// Loads that follow from one another before a CTA's steady state: work item, table, first block.
    pub dependent_loads: u32,
}

/// Largest grid that is predicted.
pub(crate) const MAX_CTAS: usize = 1 << 22;

impl LaunchProfile {
    /// CTAs that one multiprocessor holds.
    ///
    /// # Errors
    /// When the figures cannot be those of a launch on this GPU.
    pub(crate) fn check(&self, gpu: &Gpu) -> Result<u32, TimingError> {
        let wrong = |field, value, fix| TimingError::Profile {
            launch: self.name.clone(),
            field,
            value,
            fix,
        };
        let ctas = self.cta_weights.len();
        if ctas == 0 || ctas > MAX_CTAS {
            return Err(wrong(
                "cta_weights.len",
                ctas as f64,
                "give one weight for each CTA, 1 to 4194304",
            ));
        }
        let possible = |weight: f64| weight.is_finite() && weight >= 0.0;
        if let Some(&weight) = self.cta_weights.iter().find(|&&w| !possible(w)) {
            return Err(wrong(
                "cta_weights",
                weight,
                "weights are finite and not negative",
            ));
        }
        let total: f64 = self.cta_weights.iter().sum();
        if !total.is_finite() {
            return Err(wrong("cta_weights.sum", total, "use a larger unit of work"));
        }
        let occupancy = gpu.occupancy(self.footprint);
        if occupancy.ctas_per_sm == 0 {
            return Err(wrong(
                "footprint",
                f64::from(self.footprint.shared_bytes),
                "no CTA fits a multiprocessor: lower registers, shared memory or threads",
            ));
        }
        if self.dram_bytes.0 > 0 && self.cta_bytes_in_flight.0 == 0 {
            return Err(wrong(
                "cta_bytes_in_flight",
                0.0,
                "a CTA that reads DRAM has bytes in flight: give at least those of one load",
            ));
        }
        Ok(occupancy.ctas_per_sm)
    }
}
