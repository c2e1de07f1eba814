//! What attention refuses.

use super::{AttentionBackend, TensorError};
use crate::cache::CacheError;
use crate::device::{DeviceError, LoadError, RegionError};
use crate::plan::PlanError;
use pagesmith_spec::SpecError;
use std::fmt;

/// The kinds of attention work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// One query token per sequence.
    Decode,
    /// Many query tokens per sequence.
    Prefill,
    /// Drafted tokens along a tree.
    Verify,
    /// A shared prefix read once.
    Cascade,
    /// New keys and values into the cache.
    KvWrite,
    /// Blocks copied inside the cache.
    Copy,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Decode => "decode",
            Family::Prefill => "prefill",
            Family::Verify => "verify",
            Family::Cascade => "cascade",
            Family::KvWrite => "kv_write",
            Family::Copy => "copy",
        })
    }
}

/// A family that a backend does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attention: {backend} has no {family}; use a backend that has")]
pub struct Unsupported {
    /// The family.
    pub family: Family,
    /// The backend.
    pub backend: String,
}

impl Unsupported {
    /// The answer of `backend` to a call of `family`.
    pub fn by<B: AttentionBackend + ?Sized>(backend: &B, family: Family) -> Self {
        Unsupported {
            family,
            backend: backend.name().to_owned(),
        }
    }
}

/// An attention call that was refused, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttentionError {
    /// The backend lacks the family.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// No kernel of that spec is loaded.
    #[error(
        "attention: no kernel for {spec} is loaded; load it with Kernels::load or from a cache"
    )]
    NotLoaded {
        /// The spec's slug.
        spec: String,
    },
    /// The spec itself has no kernel.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The batch cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A tensor that a kernel could not read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An argument that does not suit the plan.
    #[error("decode: {field} = {found}, the plan has {expected}; {fix}")]
    Mismatch {
        /// The argument.
        field: &'static str,
        /// What it is.
        found: String,
        /// What the plan needs.
        expected: String,
        /// What to do.
        fix: &'static str,
    },
    /// The image cannot run on the device.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The cache cannot be read, or has no usable kernel.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl From<RegionError> for AttentionError {
    fn from(error: RegionError) -> Self {
        AttentionError::Device(error.into())
    }
}
