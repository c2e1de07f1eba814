//! The checks: which there are, and what they found.

mod finding;
mod order;
mod shadow;
mod sink;

pub(crate) use shadow::{ALL_LANES, ATOMIC, Conflict, LAST_GROUP, Party, Shadow};
pub(crate) use sink::{Details, Sink, Site};

pub use finding::{Finding, FindingKind, Location};

/// Which faults are looked for; each has its own switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checks {
    /// Accesses outside live allocations, shared memory, local memory or parameters are reported.
    /// With the switch off they are still harmless: loads give 0 and stores are dropped.
    pub bounds: bool,
    /// Addresses that are no multiple of the access size.
    pub alignment: bool,
    /// Reads of registers, shared, local or global bytes that nothing wrote.
    pub uninitialised: bool,
    /// Unordered accesses to shared memory, cp.async windows included.
    pub races: bool,
    /// Barriers and warp-synchronous instructions in diverged control flow.
    pub convergence: bool,
}

impl Checks {
    /// Every check.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            bounds: true,
            alignment: true,
            uninitialised: true,
            races: true,
            convergence: true,
        }
    }

    /// No check.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            bounds: false,
            alignment: false,
            uninitialised: false,
            races: false,
            convergence: false,
        }
    }
}

impl Default for Checks {
    fn default() -> Self {
        Self::all()
    }
}
