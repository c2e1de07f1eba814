//! The emulated address space.

use std::fmt;

/// An address in the emulated global memory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Address(pub u64);

impl Address {
    /// The address this many bytes further.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Windows through which generic addresses reach the other spaces. Their low 32 bits are the offset in
/// the space, because compiled code truncates generic shared addresses.
pub(crate) const SHARED_WINDOW: u64 = 1 << 52;
pub(crate) const LOCAL_WINDOW: u64 = 2 << 52;
pub(crate) const PARAM_WINDOW: u64 = 3 << 52;
pub(crate) const CONST_WINDOW: u64 = 4 << 52;

/// `.global` variables of modules lie here, below every allocation.
pub(crate) const MODULE_BASE: u64 = 0x6000_0000_0000;
/// The first allocation. A null or small address is never inside one.
pub(crate) const HEAP_BASE: u64 = 0x7000_0000_0000;
pub(crate) const HEAP_END: u64 = 1 << 50;
