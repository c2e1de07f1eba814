//! Why tuning stops.

use crate::WorkloadError;
use pagesmith_codegen::RenderError;
use pagesmith_runtime::DeviceError;
use pagesmith_runtime::cache::CacheError;
use pagesmith_spec::SpecError;
use pagesmith_spec::gpu::GpuError;
use pagesmith_spec::model::ModelError;
use std::path::PathBuf;

/// Why tuning stops. Each message names the field, what it held, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The model is unknown or impossible.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model's file cannot be read.
    #[error("model: cannot read {}: {source}; pass a built-in name, a config.json or a .gguf file", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A kind of model source that this version does not read.
    #[error(
        "model: {0} is not read by this version; pass a built-in name, a config.json or a .gguf file"
    )]
    ModelSource(String),
    /// The GPU is unknown.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// A spec has no kernel.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A template does not render.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// There is no compiler.
    #[error("{0}")]
    NoCompiler(String),
    /// The cache cannot be read or written.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The workload does not fit the device.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The device is missing or refuses.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl TuneError {
    /// Whether the caller asked for what cannot be, rather than something failing on the way.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            TuneError::Model(_)
                | TuneError::ModelFile { .. }
                | TuneError::ModelSource(_)
                | TuneError::Gpu(_)
                | TuneError::Spec(_)
                | TuneError::Cache(_)
                | TuneError::Device(DeviceError::NoDevice { .. })
        )
    }
}
