//! What is kept about a tuned variant: where its time comes from, and what proved it.

use crate::{ContentHash, Variant};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a time comes from. A modelled time is never called measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Provenance {
    /// Timed on a GPU.
    Measured {
        /// The GPU's pagesmith name.
        gpu: String,
        /// The driver's version.
        driver: String,
        /// The SM clock while timing, in MHz; absent where the driver does not tell.
        sm_clock_mhz: Option<u32>,
    },
    /// Predicted for a GPU.
    Modelled {
        /// The GPU's pagesmith name.
        gpu: String,
        /// The model that predicted it.
        model_version: String,
    },
}

impl Provenance {
    /// `measured` or `modelled`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Provenance::Measured { .. } => "measured",
            Provenance::Modelled { .. } => "modelled",
        }
    }

    /// The GPU that the time is of.
    pub fn gpu(&self) -> &str {
        match self {
            Provenance::Measured { gpu, .. } | Provenance::Modelled { gpu, .. } => gpu,
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Measured { driver, .. } => write!(f, "measured (driver {driver})"),
            Provenance::Modelled { model_version, .. } => write!(f, "modelled ({model_version})"),
        }
    }
}

/// The traffic a time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// Sequences in the batch.
    pub batch: u32,
    /// KV tokens of each.
    pub tokens: u32,
    /// KV heads of the model.
    pub kv_heads: u32,
}

/// How a variant was proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Where it ran: `emulated`, or a CUDA GPU's name.
    pub device: String,
    /// Cases compared with the f64 reference.
    pub cases: u32,
    /// Findings of the emulator's checks; a kept variant has none.
    pub findings: u32,
    /// Largest `‖out − reference‖ / ‖reference‖` over the cases.
    pub max_relative_l2: f64,
}

/// What is kept beside an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuningRecord {
    /// The variant's id.
    pub id: String,
    /// The variant.
    pub variant: Variant,
    /// The image it was compiled to.
    pub image: ContentHash,
    /// The traffic that `time_us` is of.
    pub workload: Workload,
    /// Where `time_us` comes from.
    pub provenance: Provenance,
    /// Time of one launch over `workload`, merge included, in microseconds.
    pub time_us: f64,
    /// Time of the cache's bytes at the GPU's HBM bandwidth over `time_us`.
    pub roofline_fraction: f64,
    /// How it was proved.
    pub proof: Proof,
}
