//! The kernel cache: tuned images and their records for one GPU, as plain files.
//!
//! ```text
//!   ROOT/                                       0700, CACHEDIR.TAG
//!     a100-sxm4-80gb/
//!       images/3f/3f09…c1.image                 named by content; shared by equal images
//!       records/decode-d128-g4-b16-…/9a52….json one per variant: time, provenance, proof, image
//!       excluded/decode-d128-g4-b16-…/77e0….json why a variant was not kept
//! ```
//!
//! Contract
//! - A file appears whole or not at all: it is written under a temporary name and renamed. Writers
//!   need no lock; the last one to name a variant wins, and images are equal when their names are.
//! - Nothing in a file is trusted. Whatever does not read back as written, or is of another format,
//!   GPU, arch or launch ABI, is a [`Problem`] with a name, and the rest of the cache still works.
//! - Reading never writes: read-only directories work. A missing directory is an empty cache.
//! - Nothing depends on where the cache lies, on time, or on the order of a directory listing.
//!
//! Not a goal: safety from someone who may write the directory. A CUBIN is executable code, so the
//! root is made for its owner alone and is never put below `/tmp`.
//!
//! ```
//! use pagesmith_runtime::cache::KernelCache;
//! use pagesmith_spec::{Gpu, ModelShape, Settings};
//!
//! let spec = Settings::default().kernels(&ModelShape::by_name("llama-3-8b")?)?.remove(0);
//! let cache = KernelCache::open("/nonexistent", &Gpu::by_name("a100-sxm4-80gb")?)?;
//! let miss = cache.lookup(&spec).unwrap_err();
//! assert!(miss.to_string().contains("autotune run --gpu a100-sxm4-80gb"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod format;
mod rank;
mod root;
mod store;

pub use error::{CacheError, CacheMiss, FindError, Problem, ProblemKind};
pub use root::{default_root, resolve_root};

use crate::device::{check_image, check_variant};
use format::{Excluded, Stored};
use pagesmith_spec::{ContentHash, Exclusion, Gpu, Image, KernelSpec, TuningRecord, Variant};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const IMAGES: &str = "images";
const RECORDS: &str = "records";
const EXCLUDED: &str = "excluded";

/// The kernels tuned for one GPU.
#[derive(Clone, Debug)]
pub struct KernelCache {
    directory: PathBuf,
    gpu: Gpu,
}

/// What a scan found: usable records in a fixed order, and what is wrong with the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Usable records.
    pub records: Vec<TuningRecord>,
    /// What cannot be used, and why.
    pub problems: Vec<Problem>,
}

/// What [`KernelCache::verify`] looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verification {
    /// Records read.
    pub records: usize,
    /// Distinct images read.
    pub images: usize,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

impl KernelCache {
    /// Opens a cache for reading. A missing directory is an empty cache.
    ///
    /// # Errors
    /// When the GPU's description cannot be right: its name is a directory's.
    pub fn open(root: impl AsRef<Path>, gpu: &Gpu) -> Result<Self, CacheError> {
        gpu.check()?;
        Ok(KernelCache {
            directory: root.as_ref().join(&gpu.name),
            gpu: gpu.clone(),
        })
    }

    /// Opens a cache for writing, and makes its directories where they are missing.
    ///
    /// # Errors
    /// When they cannot be made or written to: now, not after the work of filling it.
    pub fn open_or_create(root: impl AsRef<Path>, gpu: &Gpu) -> Result<Self, CacheError> {
        let cache = Self::open(&root, gpu)?;
        store::create_root(root.as_ref())?;
        store::create_directory(&cache.directory)?;
        store::probe(&cache.directory)?;
        Ok(cache)
    }

    /// The directory of this GPU's kernels.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Keeps an image and its record; the record replaces the one of the same variant.
    ///
    /// # Errors
    /// When the two do not belong together or to this GPU, or a file cannot be written.
    pub fn put(&self, image: &Image, record: &TuningRecord) -> Result<(), CacheError> {
        let unfit = |kind| CacheError::Unfit {
            id: record.id.clone(),
            kind: Box::new(kind),
        };
        format::check_record(record, &self.gpu).map_err(unfit)?;
        check_image(image, self.gpu.arch)
            .and_then(|()| check_variant(image, &record.variant))
            .map_err(|error| unfit(ProblemKind::Load(error)))?;
        let hash = image.hash();
        if hash != record.image {
            return Err(unfit(ProblemKind::Hash {
                expected: record.image,
                found: hash,
            }));
        }
        // The image first: a record never names an image that is not there.
        store::write(&self.image_path(&hash), &image.to_bytes())?;
        store::write(
            &self.record_path(RECORDS, &record.variant),
            &format::record(record),
        )
    }

    /// Remembers why a variant was not kept, for as long as it renders to the same source.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put_excluded(
        &self,
        variant: &Variant,
        source: ContentHash,
        exclusion: Exclusion,
    ) -> Result<(), CacheError> {
        let excluded = Excluded {
            variant: variant.clone(),
            source,
            exclusion,
        };
        store::write(
            &self.record_path(EXCLUDED, variant),
            &format::excluded(&excluded),
        )
    }

    /// Why a variant was not kept; `None` when it was not judged, or under another source.
    ///
    /// # Errors
    /// When the file cannot be used; judging the variant again replaces it.
    pub fn excluded(
        &self,
        variant: &Variant,
        source: ContentHash,
    ) -> Result<Option<Exclusion>, Problem> {
        let path = self.record_path(EXCLUDED, variant);
        let Some(excluded) = format::read::<Excluded>(&path)? else {
            return Ok(None);
        };
        if excluded.variant != *variant {
            return Err(Problem::new(
                path,
                ProblemKind::Id {
                    expected: variant.id(),
                    found: excluded.variant.id(),
                },
            ));
        }
        Ok((excluded.source == source).then_some(excluded.exclusion))
    }

    /// The record of a variant; `None` when there is none.
    ///
    /// # Errors
    /// When the file cannot be used; tuning the variant again replaces it.
    pub fn record(&self, variant: &Variant) -> Result<Option<TuningRecord>, Problem> {
        self.read_record(&self.record_path(RECORDS, variant))
    }

    /// The record and image of a variant that were made from `source`; `None` when there are none,
    /// or from another source.
    ///
    /// # Errors
    /// When a file cannot be used; tuning the variant again replaces it.
    pub fn reusable(
        &self,
        variant: &Variant,
        source: ContentHash,
    ) -> Result<Option<(TuningRecord, Image)>, Problem> {
        let Some(record) = self.record(variant)? else {
            return Ok(None);
        };
        let image = self.load_image(&record)?;
        Ok((image.header.source == source).then_some((record, image)))
    }

    /// Every usable record of a spec, best first (the order of [`KernelCache::lookup`]).
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn candidates(&self, spec: &KernelSpec) -> Result<Records, CacheError> {
        let directory = self.directory.join(RECORDS).join(spec.slug());
        let mut found = Records::default();
        self.scan(&directory, &mut found)?;
        rank::best_first(&mut found.records, |record| {
            let image = self.load_image(record).ok()?;
            let entries = image.header.entries.iter();
            entries.map(|entry| entry.resources.registers).max()
        });
        Ok(found)
    }

    /// The best record of a spec: measured before modelled, then by time; within 2 % of the best
    /// one by a fixed order (fewest registers, fewest CTAs per SM, smallest tile, id), so that every
    /// machine picks the same.
    ///
    /// # Errors
    /// When the directory cannot be read, or there is no usable record ([`CacheError::Miss`]).
    pub fn lookup(&self, spec: &KernelSpec) -> Result<TuningRecord, CacheError> {
        let Records { records, problems } = self.candidates(spec)?;
        records
            .into_iter()
            .next()
            .ok_or_else(|| CacheMiss::new(self, spec, problems).into())
    }

    /// The record whose id is `name`, or the only one whose id begins with it.
    ///
    /// # Errors
    /// When there is none, or more than one, or the directory cannot be read.
    pub fn find(&self, name: &str) -> Result<TuningRecord, FindError> {
        let records = self.entries()?.records;
        let mut matching: Vec<TuningRecord> = records
            .into_iter()
            .filter(|record| record.id.starts_with(name))
            .collect();
        if let Some(exact) = matching.iter().position(|record| record.id == name) {
            return Ok(matching.swap_remove(exact));
        }
        match matching.len() {
            1 => Ok(matching.swap_remove(0)),
            0 => Err(FindError::None {
                name: name.chars().take(128).collect(),
                directory: self.directory.clone(),
            }),
            _ => Err(FindError::Ambiguous {
                name: name.to_owned(),
                ids: matching.into_iter().map(|record| record.id).collect(),
            }),
        }
    }

    /// The image of a record.
    ///
    /// # Errors
    /// When it is missing, damaged, or for another arch or ABI.
    pub fn load_image(&self, record: &TuningRecord) -> Result<Image, Problem> {
        let path = self.image_path(&record.image);
        let problem = |kind| Problem::new(path.clone(), kind);
        let bytes = store::read(&path, store::MAX_IMAGE_BYTES)
            .map_err(problem)?
            .ok_or_else(|| problem(ProblemKind::Missing))?;
        let image =
            Image::from_bytes(&bytes).map_err(|error| problem(ProblemKind::Image(error)))?;
        let found = image.hash();
        if found != record.image {
            return Err(problem(ProblemKind::Hash {
                expected: record.image,
                found,
            }));
        }
        check_image(&image, self.gpu.arch)
            .and_then(|()| check_variant(&image, &record.variant))
            .map_err(|error| problem(ProblemKind::Load(error)))?;
        Ok(image)
    }

    /// Where an image is kept.
    pub fn image_path(&self, hash: &ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.directory
            .join(IMAGES)
            .join(&name[..2])
            .join(format!("{name}.image"))
    }

    /// Every usable record, by id.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn entries(&self) -> Result<Records, CacheError> {
        let mut found = Records::default();
        for directory in store::list(&self.directory.join(RECORDS))? {
            if let Err(error) = self.scan(&directory, &mut found) {
                let kind = ProblemKind::Unreadable(error.to_string());
                found.problems.push(Problem::new(directory, kind));
            }
        }
        found.records.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// Reads every record and image.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn verify(&self) -> Result<Verification, CacheError> {
        let Records { records, problems } = self.entries()?;
        let mut verification = Verification {
            records: records.len() + problems.len(),
            images: 0,
            problems,
        };
        let mut images = BTreeSet::new();
        for record in &records {
            if images.insert(record.image)
                && let Err(problem) = self.load_image(record)
            {
                verification.problems.push(problem);
            }
        }
        verification.images = images.len();
        for directory in store::list(&self.directory.join(EXCLUDED))? {
            let paths = store::list(&directory).unwrap_or_else(|error| {
                let kind = ProblemKind::Unreadable(error.to_string());
                let problem = Problem::new(directory.clone(), kind);
                verification.problems.push(problem);
                Vec::new()
            });
            for path in paths {
                if let Err(problem) = format::read::<Excluded>(&path) {
                    verification.problems.push(problem);
                }
            }
        }
        Ok(verification)
    }

    /// Reads the records of one spec's directory.
    fn scan(&self, directory: &Path, found: &mut Records) -> Result<(), CacheError> {
        for path in store::list(directory)? {
            match self.read_record(&path) {
                Ok(Some(record)) => found.records.push(record),
                // Removed while the directory was listed.
                Ok(None) => {}
                Err(problem) => found.problems.push(problem),
            }
        }
        Ok(())
    }

    fn read_record(&self, path: &Path) -> Result<Option<TuningRecord>, Problem> {
        let problem = |kind| Problem::new(path.to_owned(), kind);
        let Some(record) = format::read::<TuningRecord>(path)? else {
            return Ok(None);
        };
        format::check_record(&record, &self.gpu).map_err(problem)?;
        let expected = self.record_path(RECORDS, &record.variant);
        if expected != path {
            return Err(problem(ProblemKind::Id {
                expected: record.id,
                found: path.display().to_string(),
            }));
        }
        Ok(Some(record))
    }

    fn record_path(&self, kind: &str, variant: &Variant) -> PathBuf {
        self.directory
            .join(kind)
            .join(variant.spec().slug())
            .join(format!("{}.json", variant.hash()))
    }
}

impl Stored for TuningRecord {
    const DOMAIN: &'static str = "pagesmith-record-1";
}

impl Stored for Excluded {
    const DOMAIN: &'static str = "pagesmith-excluded-1";
}
