//! The pipes of a multiprocessor, and how long a launch occupies each.

use super::LaunchProfile;
use crate::sass::Class;
use pagesmith_spec::Gpu;
use serde::{Deserialize, Serialize};

/// A unit of a multiprocessor that serves instructions at a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pipe {
    /// The four schedulers: every instruction takes a slot.
    Issue,
    /// f32 and integer multiply-add.
    Fma,
    /// Packed half multiply-add on the tensor side.
    HalfMma,
    /// Integer, logic, compare.
    Integer,
    /// Special functions and conversions.
    Special,
    /// f64.
    Double,
    /// Matrix multiply.
    Tensor,
    /// Load/store issue: global, shared, shuffles.
    LoadStore,
    /// Banks of shared memory.
    Shared,
    /// Bytes between L1 and L2.
    L1,
}

impl Pipe {
    /// The word that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Pipe::Issue => "issue",
            Pipe::Fma => "fma",
            Pipe::HalfMma => "half-mma",
            Pipe::Integer => "integer",
            Pipe::Special => "special",
            Pipe::Double => "double",
            Pipe::Tensor => "tensor",
            Pipe::LoadStore => "load-store",
            Pipe::Shared => "shared",
            Pipe::L1 => "l1",
        }
    }
}

/// Multiply-adds of the mma that the kernels use, m16n8k16.
const PRODUCTS_PER_MMA: f64 = 16.0 * 8.0 * 16.0;
const LANES: f64 = 32.0;
/// Bytes of one shared-memory wavefront: 32 banks of 4.
const WAVEFRONT_BYTES: f64 = 128.0;

/// Cycles that each pipe of one multiprocessor would need for the whole launch.
///
/// A rate that the GPU's description does not give is taken from the nearest one that it does:
/// HFMA2.MMA from f32 (the two half pipes together have twice its rate), f64 at half of f32.
pub(crate) fn cycles(gpu: &Gpu, launch: &LaunchProfile) -> Vec<(Pipe, f64)> {
    let rate = &gpu.throughput;
    let count = |classes: &[Class]| -> f64 {
        classes
            .iter()
            .map(|&c| launch.instructions.get(c) as f64)
            .sum()
    };
    let lanes = |instructions: f64, per_clock: f64| instructions * LANES / per_clock;
    let load_store = [
        Class::LoadMatrix,
        Class::LoadShared,
        Class::StoreShared,
        Class::AtomicShared,
        Class::LoadGlobal,
        Class::StoreGlobal,
        Class::AtomicGlobal,
        Class::CopyAsync,
        Class::LoadLocal,
        Class::StoreLocal,
        Class::Shuffle,
        Class::MoveMatrix,
    ];
    vec![
        (
            Pipe::Issue,
            launch.instructions.total() as f64 / rate.warp_instructions.0,
        ),
        (Pipe::Fma, lanes(count(&[Class::Fma]), rate.fma_lanes.0)),
        (
            Pipe::HalfMma,
            lanes(count(&[Class::HalfMma]), rate.fma_lanes.0),
        ),
        (
            Pipe::Integer,
            lanes(count(&[Class::Integer]), rate.alu_lanes.0),
        ),
        (
            Pipe::Special,
            lanes(count(&[Class::Special]), rate.sfu_lanes.0),
        ),
        (
            Pipe::Double,
            lanes(count(&[Class::Double]), rate.fma_lanes.0 / 2.0),
        ),
        (
            Pipe::Tensor,
            count(&[Class::Tensor]) * PRODUCTS_PER_MMA / rate.mma_products.0,
        ),
        (Pipe::LoadStore, lanes(count(&load_store), rate.lsu_lanes.0)),
        (
            Pipe::Shared,
            launch.shared_wavefronts as f64 * WAVEFRONT_BYTES / rate.shared_bytes.0,
        ),
        (Pipe::L1, launch.l2_bytes.as_f64() / rate.l1_bytes.0),
    ]
}
