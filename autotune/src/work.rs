//! What one decode of a kernel costs, in numbers that do not depend on any machine.

use crate::modelled::{Modelled, compulsory_bytes};
use pagesmith_spec::{KernelSpec, Workload};
use pagesmith_timing::Prediction;
use serde::Serialize;
use std::collections::BTreeMap;

/// Tensors of a decode, each byte of which must be touched once; the rest is the cost of splitting.
const TENSORS: [&str; 7] = ["q", "k", "v", "out", "lse", "table", "table_indptr"];
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// One decode over a workload, counted.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// The workload.
    pub shape: Workload,
    /// Machine instructions, each once a warp, merge included.
    pub warp_instructions: u64,
    /// The same by launch.
    pub launches: Vec<LaunchWork>,
    /// L1 sectors of queries, cache, outputs and table.
    pub tensor_sectors: u64,
    /// The same when each byte is touched once.
    pub tensor_sectors_minimum: u64,
    /// L1 sectors of work lists, split partials and their merge.
    pub split_sectors: u64,
    /// Shared-memory wavefronts lost to bank conflicts.
    pub bank_conflicts: u64,
    /// The predicted time, and what bounds it.
    pub prediction: Prediction,
}

/// One launch, counted.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchWork {
    /// `decode` or `merge`.
    pub name: String,
    /// CTAs.
    pub ctas: usize,
    /// Machine instructions, each once a warp.
    pub warp_instructions: u64,
    /// The same by class.
    pub by_class: BTreeMap<String, u64>,
    /// PTX instructions, each once a warp.
    pub ptx_instructions: u64,
    /// Tensor-core products.
    pub mma: u64,
    /// L1 sectors read, by buffer.
    pub read_sectors: BTreeMap<String, u64>,
    /// L1 sectors written, by buffer.
    pub written_sectors: BTreeMap<String, u64>,
    /// Shared-memory wavefronts.
    pub shared_wavefronts: u64,
}

impl Modelled {
    /// What the launches cost.
    pub fn work(&self, spec: &KernelSpec, workload: Workload) -> Work {
        Work {
            shape: workload,
            warp_instructions: self.warp_instructions(),
            launches: self.launches.iter().map(LaunchWork::from).collect(),
            tensor_sectors: self.sectors(|name| TENSORS.contains(&name)),
            tensor_sectors_minimum: compulsory_bytes(spec, workload).div_ceil(SECTOR),
            split_sectors: self.sectors(|name| !TENSORS.contains(&name)),
            bank_conflicts: self.bank_conflicts(),
            prediction: self.prediction.clone(),
        }
    }
}

impl From<&crate::Launched> for LaunchWork {
    fn from(launched: &crate::Launched) -> Self {
        let counts = &launched.report.counts;
        let by_buffer = |sectors: fn(&pagesmith_emulator::AllocationTraffic) -> u64| {
            counts
                .global
                .iter()
                .map(|(name, traffic)| (name.clone(), sectors(traffic)))
                .filter(|(_, sectors)| *sectors > 0)
                .collect()
        };
        LaunchWork {
            name: launched.profile.name.clone(),
            ctas: launched.profile.cta_weights.len(),
            warp_instructions: launched.sass.total(),
            by_class: launched
                .sass
                .by_class
                .iter()
                .map(|(class, count)| (class.name().to_owned(), count))
                .collect(),
            ptx_instructions: counts.warp_instructions,
            mma: counts.mma(),
            read_sectors: by_buffer(|traffic| traffic.read_sectors()),
            written_sectors: by_buffer(|traffic| traffic.stores.sectors + traffic.atomics.sectors),
            shared_wavefronts: counts.shared().wavefronts,
        }
    }
}
