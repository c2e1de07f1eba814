//! One kept kernel, as reports show it.

use pagesmith_spec::image::ImageHeader;
use pagesmith_spec::record::Proof;
use pagesmith_spec::{KernelSpec, Provenance, Tuning, TuningRecord, Workload};
use serde::Serialize;

/// A record with what its image takes of a multiprocessor.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The record.
    pub record: TuningRecord,
    /// What the image was compiled from and for.
    pub header: ImageHeader,
}

/// A kernel as programs read it.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// The id.
    pub id: String,
    /// What it computes.
    pub spec: KernelSpec,
    /// How.
    pub tuning: Tuning,
    /// The traffic that the time is of.
    pub shape: Workload,
    /// Where the time comes from.
    pub provenance: Provenance,
    /// Time of one launch, merge included, in microseconds.
    pub time_us: f64,
    /// Time of the cache's bytes at the GPU's HBM bandwidth over `time_us`.
    pub roofline_fraction: f64,
    /// Registers a thread, of the decode kernel.
    pub registers: u32,
    /// Bytes a thread spills, of all its kernels.
    pub spill_bytes: u32,
    /// Shared memory of a decode CTA in bytes, static and dynamic.
    pub shared_bytes: u32,
    /// Largest `‖out − reference‖ / ‖reference‖` of its proof.
    pub max_relative_l2: f64,
    /// How it was proved.
    pub proof: Proof,
    /// The compiler's build.
    pub compiler: String,
}

impl Kernel {
    /// For reports.
    pub fn report(&self) -> KernelReport {
        let TuningRecord {
            id,
            variant,
            workload,
            provenance,
            time_us,
            roofline_fraction,
            proof,
            ..
        } = &self.record;
        let decode = self
            .header
            .entries
            .iter()
            .find(|entry| entry.name == crate::DECODE)
            .map(|entry| entry.resources)
            .unwrap_or_default();
        KernelReport {
            id: id.clone(),
            spec: variant.spec().clone(),
            tuning: *variant.tuning(),
            shape: *workload,
            provenance: provenance.clone(),
            time_us: *time_us,
            roofline_fraction: *roofline_fraction,
            registers: decode.registers,
            spill_bytes: self
                .header
                .entries
                .iter()
                .map(|entry| entry.resources.spill_bytes)
                .sum(),
            shared_bytes: decode.shared_bytes + variant.shared_bytes(),
            max_relative_l2: proof.max_relative_l2,
            proof: proof.clone(),
            compiler: self.header.compiler.clone(),
        }
    }
}
