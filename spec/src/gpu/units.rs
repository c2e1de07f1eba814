//! Units of a GPU's figures, so that a bandwidth is never passed where a size is meant.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub f64);

/// Clock cycles of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cycles(pub f64);

/// A clock in MHz.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Megahertz(pub f64);

/// Work of one multiprocessor in one clock: lanes, bytes or products, as the field says.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerClock(pub f64);

impl Bytes {
    /// That many KiB.
    pub const fn kib(kib: u64) -> Self {
        Bytes(kib * 1024)
    }

    /// That many MiB.
    pub const fn mib(mib: u64) -> Self {
        Bytes(mib * 1024 * 1024)
    }

    /// The number as a float, for rates.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl BytesPerSecond {
    /// Seconds that `bytes` take at this rate.
    pub fn seconds(self, bytes: Bytes) -> f64 {
        bytes.as_f64() / self.0
    }
}

impl Cycles {
    /// Seconds that the cycles take at `clock`.
    pub fn seconds(self, clock: Megahertz) -> f64 {
        self.0 / clock.hertz()
    }
}

impl Megahertz {
    /// Clocks per second.
    pub const fn hertz(self) -> f64 {
        self.0 * 1e6
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        const KIB: u64 = 1 << 10;
        match self.0 {
            bytes if bytes >= MIB && bytes % MIB == 0 => write!(f, "{} MiB", bytes / MIB),
            bytes if bytes >= KIB && bytes % KIB == 0 => write!(f, "{} KiB", bytes / KIB),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} GB/s", self.0 / 1e9)
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.0)
    }
}

impl fmt::Display for Megahertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MHz", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_takes_half_a_millisecond_at_two_terabytes_a_second() {
        assert_eq!(BytesPerSecond(2e12).seconds(Bytes(1_000_000_000)), 0.5e-3);
        assert_eq!(Cycles(1410.0).seconds(Megahertz(1410.0)), 1e-6);
    }

    #[test]
    fn sizes_print_in_the_unit_that_divides_them() {
        assert_eq!(Bytes::mib(40).to_string(), "40 MiB");
        assert_eq!(Bytes::kib(164).to_string(), "164 KiB");
        assert_eq!(Bytes(1500).to_string(), "1500 B");
        assert_eq!(BytesPerSecond(2.039e12).to_string(), "2039 GB/s");
    }
}
