//! A spec and a tuning together: what renders to exactly one source.

use crate::{ContentHash, KernelSpec, SpecError, Tuning};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kernel spec with one way to compute it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    spec: KernelSpec,
    tuning: Tuning,
}

impl Variant {
    /// Pairs a spec with a tuning.
    ///
    /// The tuning's limits depend on an arch and are [`Tuning::check`]'s to judge.
    ///
    /// # Errors
    /// When the spec itself has no kernel.
    pub fn new(spec: KernelSpec, tuning: Tuning) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Variant { spec, tuning })
    }

    /// What it computes.
    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// How.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Identifies the variant.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(
            "pagesmith-variant-1",
            &[self.spec.hash().as_bytes(), self.tuning.hash().as_bytes()],
        )
    }

    /// The id by which people name it: the spec's slug and eight digits of the hash.
    pub fn id(&self) -> String {
        format!("{}-{}", self.spec.slug(), self.hash().short())
    }

    /// Dynamic shared memory of its decode CTA in bytes.
    pub fn shared_bytes(&self) -> u32 {
        self.tuning.shared_bytes(&self.spec)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}
