//! What a cache refuses, and what it misses.

use super::KernelCache;
use crate::device::LoadError;
use pagesmith_spec::gpu::GpuError;
use pagesmith_spec::image::ImageError;
use pagesmith_spec::{ContentHash, Exclusion, KernelSpec, SpecError};
use std::fmt;
use std::path::PathBuf;

/// A cache that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// No directory is named, and there is no home to put one in.
    #[error(
        "cache: no directory: none of PAGESMITH_CACHE, XDG_CACHE_HOME and HOME is set to an absolute path; set one, or pass --cache DIR"
    )]
    NoHome,
    /// The operating system refused.
    #[error("cache: cannot {action} {}: {source}; {fix}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// The GPU's description cannot be right.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// No usable kernel of a spec.
    #[error(transparent)]
    Miss(Box<CacheMiss>),
    /// A record and image that do not belong together, or not into this cache.
    #[error("cache: {id} was not kept: {kind}")]
    Unfit {
        /// The variant's id.
        id: String,
        /// What is wrong.
        kind: Box<ProblemKind>,
    },
}

/// A file of a cache that cannot be used. Tuning again replaces it.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    path: PathBuf,
    // Boxed: results carry a problem on their rare side.
    kind: Box<ProblemKind>,
}

impl Problem {
    /// What is wrong with the file at `path`.
    pub fn new(path: PathBuf, kind: ProblemKind) -> Self {
        Problem {
            path,
            kind: Box::new(kind),
        }
    }

    /// The file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What is wrong with it.
    pub fn kind(&self) -> &ProblemKind {
        &self.kind
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.kind)
    }
}

impl std::error::Error for Problem {}

/// What can be wrong with a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The operating system refuses to read it.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A record names it, and it is not there.
    #[error("is missing; tune again to write it")]
    Missing,
    /// Longer than any such file.
    #[error("is longer than {limit} bytes; tune again to replace it")]
    TooLong {
        /// The longest that is read.
        limit: u64,
    },
    /// Not of this format.
    #[error("format {found} is not {expected}; tune again with this version")]
    Format {
        /// The file's.
        found: u64,
        /// This version's.
        expected: u64,
    },
    /// Not JSON of the expected form.
    #[error("{0}; tune again to replace it")]
    Syntax(String),
    /// The contents are not those that were written.
    #[error("contents hash to {found}, {expected} is recorded; tune again to replace it")]
    Hash {
        /// As recorded.
        expected: ContentHash,
        /// As computed.
        found: ContentHash,
    },
    /// Filed under the wrong name.
    #[error("id is {found}, its contents are {expected}; tune again to replace it")]
    Id {
        /// By its contents.
        expected: String,
        /// By its name.
        found: String,
    },
    /// A spec without kernels.
    #[error(transparent)]
    Spec(SpecError),
    /// A tuning that the arch cannot run.
    #[error("tuning: {0}; tune again to replace it")]
    Tuning(Exclusion),
    /// Times of another GPU.
    #[error("provenance.gpu = {found}, this is the cache of {expected}; tune for this GPU")]
    Gpu {
        /// The record's.
        found: String,
        /// The cache's.
        expected: String,
    },
    /// A number that no tuning gives.
    #[error("{field} = {value} is out of range; tune again to replace it")]
    Number {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: f64,
    },
    /// A damaged image.
    #[error(transparent)]
    Image(ImageError),
    /// An image that the device refuses.
    #[error(transparent)]
    Load(LoadError),
}

/// A spec without a usable kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("cache: {}", Missed(self))]
pub struct CacheMiss {
    /// The spec's slug.
    pub spec: String,
    /// The GPU's name.
    pub gpu: String,
    /// Where was looked.
    pub directory: PathBuf,
    /// What there is and cannot be used.
    pub problems: Vec<Problem>,
}

impl CacheMiss {
    pub(crate) fn new(cache: &KernelCache, spec: &KernelSpec, problems: Vec<Problem>) -> Self {
        CacheMiss {
            spec: spec.slug(),
            gpu: cache.gpu().name.clone(),
            directory: cache.directory().to_owned(),
            problems,
        }
    }
}

impl From<CacheMiss> for CacheError {
    fn from(miss: CacheMiss) -> Self {
        CacheError::Miss(Box::new(miss))
    }
}

struct Missed<'a>(&'a CacheMiss);

impl fmt::Display for Missed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheMiss {
            spec,
            gpu,
            directory,
            problems,
        } = self.0;
        write!(f, "no usable kernel of {spec} in {}", directory.display())?;
        for problem in problems {
            write!(f, "; {problem}")?;
        }
        write!(f, "; fill it with `autotune run --gpu {gpu} --model MODEL`")
    }
}

/// A name that does not name one record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No id begins with it.
    #[error("kernel: `{name}` is in no record of {}; list them with `autotune cache ls`", .directory.display())]
    None {
        /// What was asked for.
        name: String,
        /// Where was looked.
        directory: PathBuf,
    },
    /// Several ids begin with it.
    #[error("kernel: `{name}` begins {} ids; use more of one: {}", .ids.len(), .ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The ids.
        ids: Vec<String>,
    },
    /// The cache cannot be read.
    #[error(transparent)]
    Cache(#[from] CacheError),
}
