//! One GPU product in numbers.

use super::{Arch, Bytes, BytesPerSecond, Cycles, GpuError, Megahertz, PerClock};
use serde::{Deserialize, Serialize};

/// One GPU product.
///
/// The fields are public so that a timing study can vary them; [`Gpu::check`] says whether the
/// result is still a possible GPU. Limits that follow from the compute capability are [`Arch`]'s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Gpu {
    /// pagesmith's name, in lower case: `a100-sxm4-80gb`.
    pub name: String,
    /// The driver's name without the vendor: `A100-SXM4-80GB`.
    pub product: String,
    /// Compute capability.
    pub arch: Arch,
    /// Multiprocessors.
    pub sms: u32,
    /// Boost clock of the multiprocessors.
    pub boost_mhz: Megahertz,
    /// Device memory.
    pub memory: Memory,
    /// Level-2 cache.
    pub l2: L2,
    /// Cycles from issue until the result can be used.
    pub latency: Latency,
    /// What one multiprocessor does in one clock.
    pub throughput: Throughput,
}

/// Device memory (HBM).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Memory {
    /// Capacity.
    pub bytes: Bytes,
    /// Bandwidth on the data sheet: what roofline fractions are of.
    pub peak_bytes_per_s: BytesPerSecond,
    /// Bandwidth that reads reach.
    pub achievable_bytes_per_s: BytesPerSecond,
    /// A load that misses every cache, unloaded.
    pub latency_cycles: Cycles,
}

/// Level-2 cache, in two halves: a multiprocessor reaches one of them through the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct L2 {
    /// Capacity of both halves.
    pub bytes: Bytes,
    /// Bandwidth while the set fits in about one half.
    pub bytes_per_s: BytesPerSecond,
    /// Bandwidth of a set that nearly fills both.
    pub far_bytes_per_s: BytesPerSecond,
    /// A hit in the near half.
    pub latency_cycles: Cycles,
    /// A hit in the far half.
    pub far_latency_cycles: Cycles,
}

/// Cycles from issue until the result can be used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Latency {
    /// A load that hits L1.
    pub l1_cycles: Cycles,
    /// A load from shared memory without conflicts.
    pub shared_cycles: Cycles,
    /// f32 and 32-bit integer arithmetic.
    pub alu_cycles: Cycles,
    /// Special functions: ex2, rcp, rsqrt, lg2.
    pub sfu_cycles: Cycles,
    /// `mma.sync` m16n8k16 with f32 accumulation.
    pub mma_cycles: Cycles,
}

/// What one multiprocessor does in one clock, all sub-cores together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Throughput {
    /// Warp-instructions issued.
    pub warp_instructions: PerClock,
    /// Lanes of f32 add, multiply and fma.
    pub fma_lanes: PerClock,
    /// Lanes of 32-bit integer add, logic and compare.
    pub alu_lanes: PerClock,
    /// Lanes of conversions between float types, and between float and integer.
    pub conversion_lanes: PerClock,
    /// Lanes of special functions.
    pub sfu_lanes: PerClock,
    /// Lanes of loads and stores.
    pub lsu_lanes: PerClock,
    /// Multiply-adds of `mma.sync` on 16-bit values with f32 accumulation.
    pub mma_products: PerClock,
    /// Bytes of shared memory.
    pub shared_bytes: PerClock,
    /// Bytes from L1.
    pub l1_bytes: PerClock,
}

/// Longest description that is read; the built-in ones have 3 KB.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;

impl Gpu {
    /// Reads a description in the form of `spec/gpus/*.toml` and checks it.
    ///
    /// # Errors
    /// When a field is missing, unknown, of another type, or holds what no GPU has.
    pub fn from_toml(text: &str) -> Result<Self, GpuError> {
        if text.len() > MAX_DESCRIPTION_BYTES {
            return Err(GpuError::Syntax {
                message: format!(
                    "{} bytes are more than the {MAX_DESCRIPTION_BYTES} that a description may have",
                    text.len()
                ),
            });
        }
        let gpu: Gpu = toml::from_str(text).map_err(|error| GpuError::Syntax {
            message: error.to_string().trim_end().to_owned(),
        })?;
        gpu.check()?;
        Ok(gpu)
    }

    /// Whether the numbers can be those of a GPU.
    ///
    /// # Errors
    /// The first field that cannot be right.
    pub fn check(&self) -> Result<(), GpuError> {
        let named = |text: &str, ok: fn(char) -> bool| {
            !text.is_empty() && text.len() <= 64 && text.chars().all(ok)
        };
        if !named(&self.name, |c| matches!(c, 'a'..='z' | '0'..='9' | '-')) {
            return Err(GpuError::Field {
                field: "name",
                value: format!("{:?}", self.name),
                reason: "is not 1 to 64 of a-z, 0-9 and -",
            });
        }
        if !named(&self.product, |c| c == ' ' || c.is_ascii_graphic()) {
            return Err(GpuError::Field {
                field: "product",
                value: format!("{:?}", self.product),
                reason: "is not 1 to 64 printable ASCII characters",
            });
        }
        if !(1..=4096).contains(&self.sms) {
            return Err(GpuError::Field {
                field: "sms",
                value: self.sms.to_string(),
                reason: "is not between 1 and 4096",
            });
        }
        self.check_ranges()?;
        self.check_order()
    }

    fn check_ranges(&self) -> Result<(), GpuError> {
        let (memory, l2) = (&self.memory, &self.l2);
        let (latency, throughput) = (&self.latency, &self.throughput);
        let clock = (1.0, 1e5);
        let capacity = (1024.0, 1e15);
        let rate = (1e6, 1e16);
        let cycles = (1.0, 1e5);
        let work = (1.0, 1e6);
        // One row a number: a field that is added and forgotten here has no `check`, so the rows
        // follow the order of the structs.
        let fields: [(&'static str, f64, (f64, f64)); 24] = [
            ("boost_mhz", self.boost_mhz.0, clock),
            ("memory.bytes", memory.bytes.as_f64(), capacity),
            ("memory.peak_bytes_per_s", memory.peak_bytes_per_s.0, rate),
            (
                "memory.achievable_bytes_per_s",
                memory.achievable_bytes_per_s.0,
                rate,
            ),
            ("memory.latency_cycles", memory.latency_cycles.0, cycles),
            ("l2.bytes", l2.bytes.as_f64(), capacity),
            ("l2.bytes_per_s", l2.bytes_per_s.0, rate),
            ("l2.far_bytes_per_s", l2.far_bytes_per_s.0, rate),
            ("l2.latency_cycles", l2.latency_cycles.0, cycles),
            ("l2.far_latency_cycles", l2.far_latency_cycles.0, cycles),
            ("latency.l1_cycles", latency.l1_cycles.0, cycles),
            ("latency.shared_cycles", latency.shared_cycles.0, cycles),
            ("latency.alu_cycles", latency.alu_cycles.0, cycles),
            ("latency.sfu_cycles", latency.sfu_cycles.0, cycles),
            ("latency.mma_cycles", latency.mma_cycles.0, cycles),
            (
                "throughput.warp_instructions",
                throughput.warp_instructions.0,
                work,
            ),
            ("throughput.fma_lanes", throughput.fma_lanes.0, work),
            ("throughput.alu_lanes", throughput.alu_lanes.0, work),
            (
                "throughput.conversion_lanes",
                throughput.conversion_lanes.0,
                work,
            ),
            ("throughput.sfu_lanes", throughput.sfu_lanes.0, work),
            ("throughput.lsu_lanes", throughput.lsu_lanes.0, work),
            ("throughput.mma_products", throughput.mma_products.0, work),
            ("throughput.shared_bytes", throughput.shared_bytes.0, work),
            ("throughput.l1_bytes", throughput.l1_bytes.0, work),
        ];
        for (field, value, (low, high)) in fields {
            // Written so that NaN is refused too.
            if !(low..=high).contains(&value) {
                return Err(GpuError::Field {
                    field,
                    value: value.to_string(),
                    reason: "is zero, no number, or of another order of magnitude than any GPU",
                });
            }
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), GpuError> {
        if self.memory.achievable_bytes_per_s.0 > self.memory.peak_bytes_per_s.0 {
            return Err(GpuError::Field {
                field: "memory.achievable_bytes_per_s",
                value: self.memory.achievable_bytes_per_s.0.to_string(),
                reason: "exceeds memory.peak_bytes_per_s",
            });
        }
        if self.l2.far_bytes_per_s.0 > self.l2.bytes_per_s.0 {
            return Err(GpuError::Field {
                field: "l2.far_bytes_per_s",
                value: self.l2.far_bytes_per_s.0.to_string(),
                reason: "exceeds l2.bytes_per_s",
            });
        }
        if self.l2.far_latency_cycles.0 < self.l2.latency_cycles.0 {
            return Err(GpuError::Field {
                field: "l2.far_latency_cycles",
                value: self.l2.far_latency_cycles.0.to_string(),
                reason: "is below l2.latency_cycles",
            });
        }
        if self.l2.bytes >= self.memory.bytes {
            return Err(GpuError::Field {
                field: "l2.bytes",
                value: self.l2.bytes.0.to_string(),
                reason: "is not below memory.bytes",
            });
        }
        Ok(())
    }
}
