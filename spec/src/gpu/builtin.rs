//! The descriptions that come with pagesmith.

use super::{Gpu, GpuError};

/// Name and text of each data file, in the order of [`Gpu::all`].
const FILES: [(&str, &str); 5] = [
    (
        "a100-sxm4-40gb",
        include_str!("../../gpus/a100-sxm4-40gb.toml"),
    ),
    (
        "a100-sxm4-80gb",
        include_str!("../../gpus/a100-sxm4-80gb.toml"),
    ),
    (
        "a100-pcie-40gb",
        include_str!("../../gpus/a100-pcie-40gb.toml"),
    ),
    (
        "a100-pcie-80gb",
        include_str!("../../gpus/a100-pcie-80gb.toml"),
    ),
    ("h200", include_str!("../../gpus/h200.toml")),
];

fn parse(text: &str) -> Gpu {
    Gpu::from_toml(text).expect("a test parses every built-in description")
}

impl Gpu {
    /// The names of the built-in GPUs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.into_iter().map(|(name, _)| name)
    }

    /// Every built-in GPU.
    pub fn all() -> Vec<Gpu> {
        FILES.into_iter().map(|(_, text)| parse(text)).collect()
    }

    /// The built-in GPU of that name.
    ///
    /// # Errors
    /// When there is none; the error lists the names.
    pub fn by_name(name: &str) -> Result<Self, GpuError> {
        FILES
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, text)| parse(text))
            .ok_or_else(|| unknown(name))
    }

    /// The built-in GPU that the driver calls `device_name`, with or without the vendor.
    ///
    /// ```
    /// use pagesmith_spec::Gpu;
    ///
    /// let gpu = Gpu::by_device_name("NVIDIA A100 80GB PCIe")?;
    /// assert_eq!(gpu.name, "a100-pcie-80gb");
    /// # Ok::<(), pagesmith_spec::gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// When there is none; the error lists the names.
    pub fn by_device_name(device_name: &str) -> Result<Self, GpuError> {
        let product = device_name
            .strip_prefix("NVIDIA ")
            .unwrap_or(device_name)
            .trim();
        Self::all()
            .into_iter()
            .find(|gpu| gpu.product == product)
            .ok_or_else(|| unknown(device_name))
    }
}

fn unknown(name: &str) -> GpuError {
    GpuError::Unknown {
        name: name.chars().take(64).collect(),
        known: Gpu::names().collect::<Vec<_>>().join(", "),
    }
}
