//! Tuned images on a device.

use super::check::params;
use super::step::{Planned, table_entries};
use super::{AttentionBackend, AttentionError, DecodeArgs, DecodeBatch, DevicePlan};
use crate::cache::{CacheError, CacheMiss, KernelCache, Problem, ProblemKind};
use crate::device::{Device, LaunchConfig, LoadError, Region, check_variant};
use crate::plan::{PlanTarget, Table};
use pagesmith_spec::{Image, KernelSpec, TuningRecord, Variant};
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

/// The decode kernel of an image.
pub(crate) const DECODE_ENTRY: &str = "pagesmith_decode";
/// The merge kernel of an image.
pub(crate) const MERGE_ENTRY: &str = "pagesmith_merge";
/// Threads of a merge CTA.
const MERGE_THREADS: u32 = 128;

/// Attention by tuned kernels on a device.
///
/// [`Kernels::plan_decode`](AttentionBackend::plan_decode) once a step, then
/// [`Kernels::decode`](AttentionBackend::decode) once a layer.
#[derive(Debug)]
pub struct Kernels<D: Device> {
    device: D,
    name: String,
    loaded: BTreeMap<KernelSpec, Loaded<D::Module>>,
}

#[derive(Debug)]
struct Loaded<M> {
    variant: Variant,
    module: M,
}

/// Which record of a cache was loaded, and why better ones were not.
#[derive(Debug)]
pub struct Choice {
    /// What was loaded.
    pub record: TuningRecord,
    /// What ranks before it and cannot be used.
    pub skipped: Vec<Problem>,
}

impl<D: Device> Kernels<D> {
    /// No kernels yet.
    pub fn new(device: D) -> Self {
        Kernels {
            name: format!("kernels on {}", device.gpu().name),
            device,
            loaded: BTreeMap::new(),
        }
    }

    /// The best kernel of each spec that a cache has.
    ///
    /// # Errors
    /// As [`Kernels::load_best`].
    pub fn from_cache<'s>(
        device: D,
        cache: &KernelCache,
        specs: impl IntoIterator<Item = &'s KernelSpec>,
    ) -> Result<Self, AttentionError> {
        let mut kernels = Kernels::new(device);
        for spec in specs {
            kernels.load_best(cache, spec)?;
        }
        Ok(kernels)
    }

    /// Loads the best kernel of `spec` that a cache has. One that is damaged, or that the device
    /// refuses, falls through to the next.
    ///
    /// # Errors
    /// When the cache cannot be read, or has no kernel of the spec that can be loaded; the error
    /// says what is wrong with each.
    pub fn load_best(
        &mut self,
        cache: &KernelCache,
        spec: &KernelSpec,
    ) -> Result<Choice, AttentionError> {
        let candidates = cache.candidates(spec)?;
        let mut skipped = candidates.problems;
        for record in candidates.records {
            let loaded = cache.load_image(&record).and_then(|image| {
                self.load(&record.variant, &image).map_err(|error| {
                    Problem::new(cache.image_path(&record.image), ProblemKind::Load(error))
                })
            });
            match loaded {
                Ok(()) => return Ok(Choice { record, skipped }),
                Err(problem) => skipped.push(problem),
            }
        }
        Err(CacheError::from(CacheMiss::new(cache, spec, skipped)).into())
    }

    /// Loads a variant's image; it replaces the variant of the same spec.
    ///
    /// # Errors
    /// When the device cannot run the image.
    pub fn load(&mut self, variant: &Variant, image: &Image) -> Result<(), LoadError> {
        for entry in [DECODE_ENTRY, MERGE_ENTRY] {
            if image.entry(entry).is_none() {
                return Err(LoadError::MissingEntry { entry });
            }
        }
        check_variant(image, variant)?;
        let module = self.device.load(image)?;
        self.loaded.insert(
            variant.spec().clone(),
            Loaded {
                variant: variant.clone(),
                module,
            },
        );
        Ok(())
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The variant that computes `spec`, when one is loaded.
    pub fn variant(&self, spec: &KernelSpec) -> Option<&Variant> {
        self.loaded.get(spec).map(|loaded| &loaded.variant)
    }

    fn loaded(&self, spec: &KernelSpec) -> Result<&Loaded<D::Module>, AttentionError> {
        self.loaded
            .get(spec)
            .ok_or_else(|| AttentionError::NotLoaded { spec: spec.slug() })
    }
}

impl<D: Device> AttentionBackend for Kernels<D> {
    type Tensor<'m> = Region<'m>;
    type Stream = D::Stream;
    type Plan = DevicePlan<D>;
    type Error = AttentionError;

    fn name(&self) -> &str {
        &self.name
    }

    fn plan_decode(
        &mut self,
        plan: &mut DevicePlan<D>,
        request: DecodeBatch<'_>,
        stream: &D::Stream,
    ) -> Result<(), AttentionError> {
        let DecodeBatch {
            spec,
            kv_heads,
            batch,
            table,
        } = request;
        plan.planned = None;
        let variant = &self.loaded(spec)?.variant;
        let target = PlanTarget::of(self.device.gpu(), variant.tuning());
        plan.plan.rebuild(variant, target, kv_heads, batch)?;
        plan.take_over(&self.device, stream)?;
        plan.upload(&self.device, variant, batch, table, stream)?;
        plan.planned = Some(Planned {
            variant: variant.clone(),
            kv_heads,
            // A plan has at least one CTA for each, and fewer than 2^31 CTAs.
            sequences: batch.sequences() as u32,
            blocks: batch.cache().count,
            table,
            table_row: match batch.table() {
                Table::Dense { row, .. } => row as i64,
                Table::Csr { .. } => 0,
            },
            table_entries: table_entries(batch),
        });
        Ok(())
    }

    fn decode(
        &mut self,
        plan: &mut DevicePlan<D>,
        args: DecodeArgs<Region<'_>>,
        stream: &D::Stream,
    ) -> Result<(), AttentionError> {
        let Some(planned) = &plan.planned else {
            return Err(AttentionError::Mismatch {
                field: "plan",
                found: String::from("empty"),
                expected: String::from("a planned batch"),
                fix: "call plan_decode first",
            });
        };
        let loaded = self.loaded(planned.variant.spec())?;
        if loaded.variant != planned.variant {
            return Err(AttentionError::Mismatch {
                field: "variant",
                found: loaded.variant.id(),
                expected: planned.variant.id(),
                fix: "plan again after loading another variant",
            });
        }
        let (decode, merge) = params(planned, plan.addresses(), &args)?;
        let variant = &loaded.variant;
        let decode_config = LaunchConfig {
            ctas: plan.plan.work().len() as u32,
            threads: variant.tuning().threads(),
            shared_bytes: variant.shared_bytes(),
        };
        let merge_config = LaunchConfig {
            ctas: plan.plan.merge().len() as u32,
            threads: MERGE_THREADS,
            shared_bytes: 0,
        };
        plan.take_over(&self.device, stream)?;
        if decode_config.ctas > 0 {
            // SAFETY: the module was made from an image whose ABI hash is this runtime's, so the entry
            // takes this struct, and of this very variant, so it walks it as planned. `params` checked that every tensor lies in live memory and suits
            // the plan, whose work list names only rows, blocks and slots that `Batch` and `Plan`
            // made sure of. The tensors' owners keep the memory until the work is done: a device's
            // buffers by the contract of `Device::Buffer`, others by that of `Region::from_raw`.
            unsafe {
                self.device.launch(
                    &loaded.module,
                    DECODE_ENTRY,
                    decode_config,
                    decode.as_bytes(),
                    stream,
                )?;
            }
        }
        if merge_config.ctas > 0 {
            // SAFETY: as above; the slots it reads are written by the launch before it on the stream.
            unsafe {
                self.device.launch(
                    &loaded.module,
                    MERGE_ENTRY,
                    merge_config,
                    merge.as_bytes(),
                    stream,
                )?;
            }
        }
        Ok(())
    }
}
