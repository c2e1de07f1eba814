//! Counters: what a launch executed and moved. They depend on nothing but the kernel and its inputs.

mod kind;
mod traffic;

pub use kind::InstructionKind;
use std::collections::BTreeMap;
pub(crate) use traffic::{sectors, wavefronts};

/// Traffic of one kind to one global allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Warp-level requests.
    pub requests: u64,
    /// 32-byte sectors touched, each once a request.
    pub sectors: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
}

impl Traffic {
    /// Adds another count.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.bytes += other.bytes;
    }
}

/// Traffic to one global allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AllocationTraffic {
    /// `ld.global`.
    pub loads: Traffic,
    /// `st.global`.
    pub stores: Traffic,
    /// `cp.async` reads.
    pub async_copies: Traffic,
    /// `atom` and `red`.
    pub atomics: Traffic,
}

impl AllocationTraffic {
    /// Adds another count.
    pub fn merge(&mut self, other: &Self) {
        self.loads.merge(&other.loads);
        self.stores.merge(&other.stores);
        self.async_copies.merge(&other.async_copies);
        self.atomics.merge(&other.atomics);
    }

    /// Loads and asynchronous copies: the sectors that L1 is asked for.
    #[must_use]
    pub const fn read_sectors(&self) -> u64 {
        self.loads.sectors + self.async_copies.sectors
    }
}

/// Shared-memory traffic. A wavefront is one pass over the 32 banks of 4 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SharedTraffic {
    /// Warp-level requests.
    pub requests: u64,
    /// Wavefronts needed.
    pub wavefronts: u64,
    /// Wavefronts that the same requests need without bank conflicts.
    pub minimum: u64,
}

impl SharedTraffic {
    /// Adds another count.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.wavefronts += other.wavefronts;
        self.minimum += other.minimum;
    }

    /// Wavefronts lost to bank conflicts.
    #[must_use]
    pub const fn conflicts(&self) -> u64 {
        self.wavefronts - self.minimum
    }
}

/// What one launch executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// PTX instructions executed, each once a warp.
    pub warp_instructions: u64,
    /// The same by kind; a kind that never ran is absent.
    pub by_kind: BTreeMap<InstructionKind, u64>,
    /// Global traffic by allocation name; traffic that hit no allocation is absent.
    pub global: BTreeMap<String, AllocationTraffic>,
    /// `ld.shared`, `ldmatrix`.
    pub shared_loads: SharedTraffic,
    /// `st.shared`.
    pub shared_stores: SharedTraffic,
    /// Shared-memory writes of `cp.async`.
    pub shared_async_copies: SharedTraffic,
    /// `atom.shared`, `red.shared`.
    pub shared_atomics: SharedTraffic,
    /// Blocks run.
    pub blocks: u64,
    /// Warps run.
    pub warps: u64,
}

impl Counts {
    /// Warp instructions of one kind.
    #[must_use]
    pub fn kind(&self, kind: InstructionKind) -> u64 {
        self.by_kind.get(&kind).copied().unwrap_or(0)
    }

    /// `mma` instructions.
    #[must_use]
    pub fn mma(&self) -> u64 {
        self.kind(InstructionKind::Mma)
    }

    /// Block-wide barriers, counted once a warp.
    #[must_use]
    pub fn barriers(&self) -> u64 {
        self.kind(InstructionKind::Barrier)
    }

    /// All shared-memory traffic.
    #[must_use]
    pub fn shared(&self) -> SharedTraffic {
        let mut all = self.shared_loads;
        all.merge(&self.shared_stores);
        all.merge(&self.shared_async_copies);
        all.merge(&self.shared_atomics);
        all
    }

    /// Wavefronts lost to shared-memory bank conflicts.
    #[must_use]
    pub fn shared_conflicts(&self) -> u64 {
        self.shared().conflicts()
    }

    /// Traffic to the allocation of this name; zero where it was not touched.
    #[must_use]
    pub fn allocation(&self, name: &str) -> AllocationTraffic {
        self.global.get(name).copied().unwrap_or_default()
    }
}
