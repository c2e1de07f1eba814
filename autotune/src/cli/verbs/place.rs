//! Which cache a verb works on.

use crate::cli::args::CacheDir;
use crate::cli::failure::Failure;
use pagesmith_runtime::KernelCache;
use pagesmith_runtime::cache::default_root;
use pagesmith_spec::Gpu;
use std::path::{Path, PathBuf};

/// The root of a cache.
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// `--cache`, `PAGESMITH_CACHE` (which clap reads), or the user's cache directory.
    pub(crate) fn of(cache: &CacheDir) -> Result<Self, Failure> {
        Ok(Place {
            root: default_root(cache.path.as_deref()).map_err(Failure::input)?,
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The cache of `gpu`, or of every GPU that the root has one for.
    pub(crate) fn caches(&self, gpu: Option<&str>) -> Result<Vec<KernelCache>, Failure> {
        let gpus = match gpu {
            Some(name) => vec![Gpu::by_name(name).map_err(Failure::input)?],
            None => Gpu::all()
                .into_iter()
                .filter(|gpu| self.root.join(&gpu.name).is_dir())
                .collect(),
        };
        gpus.iter()
            .map(|gpu| KernelCache::open(&self.root, gpu).map_err(Failure::input))
            .collect()
    }
}
