//! `autotune show KERNEL`.

use super::kernels::workload;
use super::{Place, object};
use crate::cli::answer::Answer;
use crate::cli::args::ShowArgs;
use crate::cli::failure::Failure;
use crate::cli::page::{Column, Page, thousands};
use pagesmith_autotune::{Kernel, Modeller, Work, rendered};
use pagesmith_runtime::KernelCache;
use pagesmith_runtime::cache::FindError;
use pagesmith_spec::{Image, TuningRecord};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;

pub(crate) fn show(args: &ShowArgs) -> Result<Box<dyn Answer>, Failure> {
    let place = Place::of(&args.place.cache)?;
    let caches = place.caches(args.place.gpu.as_deref())?;
    let (cache, record) = find(&caches, &args.kernel, &place)?;
    let image = cache.load_image(&record).map_err(Failure::failed)?;
    let source = rendered(record.variant.clone(), cache.gpu().arch).map_err(Failure::failed)?;
    if args.source {
        return Ok(Box::new(Raw {
            field: "source",
            text: source.source.text,
        }));
    }
    if args.ptx {
        return Ok(Box::new(Raw {
            field: "ptx",
            text: image.ptx,
        }));
    }
    let spec = record.variant.spec();
    let work = Modeller::new(cache.gpu(), spec, record.workload)
        .and_then(|mut modeller| modeller.model(&record.variant, &image))
        .map_err(Failure::failed)?
        .work(spec, record.workload);
    Ok(Box::new(Shown {
        work,
        // The templates may have changed since the image was made.
        source_is_current: source.hash == image.header.source,
        source: source.source.text,
        path: cache.image_path(&record.image),
        record,
        image,
    }))
}

/// The one record of that name in all caches.
fn find<'c>(
    caches: &'c [KernelCache],
    name: &str,
    place: &Place,
) -> Result<(&'c KernelCache, TuningRecord), Failure> {
    let mut found = Vec::new();
    for cache in caches {
        match cache.find(name) {
            Ok(record) => found.push((cache, record)),
            Err(FindError::None { .. }) => {}
            Err(error @ FindError::Ambiguous { .. }) => return Err(Failure::input(error)),
            Err(error) => return Err(Failure::failed(error)),
        }
    }
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(Failure::input(format_args!(
            "kernel: `{}` is in no record of {}; list them with `autotune cache ls`",
            name.chars().take(128).collect::<String>(),
            place.root().display()
        ))),
        _ => {
            let gpus: Vec<&str> = found
                .iter()
                .map(|(cache, _)| cache.gpu().name.as_str())
                .collect();
            Err(Failure::input(format_args!(
                "kernel: `{name}` is in the caches of {}; choose one with --gpu",
                gpus.join(" and ")
            )))
        }
    }
}

struct Shown {
    work: Work,
    record: TuningRecord,
    image: Image,
    source: String,
    source_is_current: bool,
    path: PathBuf,
}

impl Answer for Shown {
    fn json(&self) -> Value {
        json!({
            "id": self.record.id,
            "record": self.record,
            "kernel": object(&Kernel {
                record: self.record.clone(),
                header: self.image.header.clone(),
            }.report()),
            "image": {
                "path": self.path,
                "hash": self.record.image,
                "arch": self.image.header.arch.to_string(),
                "compiler": self.image.header.compiler,
                "abi": self.image.header.abi,
                "source": self.image.header.source,
                "cubin_bytes": self.image.cubin.len(),
            },
            "resources": self.image.header.entries,
            "work": self.work,
            "source_is_current": self.source_is_current,
            "source": self.source,
            "ptx": self.image.ptx,
        })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let TuningRecord {
            id,
            variant,
            workload: shape,
            provenance,
            time_us,
            roofline_fraction,
            proof,
            ..
        } = &self.record;
        let tuning = variant.tuning();
        page.heading(id)?;
        page.fields(&[
            (
                "tuning",
                format!(
                    "{}: {} warps, {} tokens a tile, {} stages, {} heads a CTA, {} CTAs an SM",
                    tuning.engine,
                    tuning.warps,
                    tuning.tile_tokens,
                    tuning.stages,
                    tuning.head_tile,
                    tuning.ctas_per_sm
                ),
            ),
            (
                "time",
                format!(
                    "{time_us:.1} µs, {:.0} % of HBM; {}\n{}",
                    100.0 * roofline_fraction,
                    provenance,
                    workload(*shape)
                ),
            ),
            (
                "proof",
                format!(
                    "{} cases on {}: largest relative L2 error {:.2e}, {} findings",
                    proof.cases, proof.device, proof.max_relative_l2, proof.findings
                ),
            ),
            (
                "image",
                format!(
                    "{} by {}, PTX {} B, CUBIN {} B\n{}",
                    self.image.header.arch,
                    self.image.header.compiler,
                    thousands(self.image.ptx.len() as u64),
                    thousands(self.image.cubin.len() as u64),
                    self.path.display()
                ),
            ),
        ])?;
        page.blank()?;
        page.table(
            &[
                Column::text("entry"),
                Column::number("registers"),
                Column::number("spills"),
                Column::number("stack"),
                Column::number("static shared"),
                Column::number("barriers"),
            ],
            self.image
                .header
                .entries
                .iter()
                .map(|entry| {
                    let taken = entry.resources;
                    vec![
                        entry.name.clone(),
                        taken.registers.to_string(),
                        format!("{} B", taken.spill_bytes),
                        format!("{} B", taken.stack_bytes),
                        format!("{} B", taken.shared_bytes),
                        taken.barriers.to_string(),
                    ]
                })
                .collect(),
        )?;
        page.line(format_args!(
            "dynamic shared memory of the decode kernel: {} B a CTA",
            thousands(variant.shared_bytes().into())
        ))?;
        if !self.source_is_current {
            page.note(
                "note:",
                "the templates have changed since this image was compiled; --source shows the new ones",
            )?;
        }
        page.blank()?;
        self.text_of_work(page)?;
        page.blank()?;
        page.line("--source and --ptx print the code, --json everything")
    }
}

impl Shown {
    fn text_of_work(&self, page: &mut Page<'_>) -> io::Result<()> {
        let work = &self.work;
        page.heading(format_args!(
            "one decode over {}, counted on the emulator",
            workload(work.shape)
        ))?;
        let instructions: Vec<String> = work
            .launches
            .iter()
            .map(|launch| {
                format!(
                    "{} {} in {} CTAs",
                    launch.name,
                    thousands(launch.warp_instructions),
                    thousands(launch.ctas as u64)
                )
            })
            .collect();
        page.fields(&[
            (
                "instructions",
                format!(
                    "{} SASS warp-instructions: {}",
                    thousands(work.warp_instructions),
                    instructions.join(", ")
                ),
            ),
            (
                "L1 sectors",
                format!(
                    "{} of Q, K, V, O and table ({:.3} of the minimum), {} of splits ({:.2} %)",
                    thousands(work.tensor_sectors),
                    work.tensor_sectors as f64 / work.tensor_sectors_minimum as f64,
                    thousands(work.split_sectors),
                    100.0 * work.split_sectors as f64 / work.tensor_sectors_minimum as f64,
                ),
            ),
            ("bank conflicts", thousands(work.bank_conflicts)),
            (
                "bound by",
                format!(
                    "{}, modelled {:.1} µs ({})",
                    work.prediction.bound_by,
                    work.prediction.microseconds(),
                    work.prediction.model_version
                ),
            ),
        ])
    }
}

/// One text, as it is.
struct Raw {
    field: &'static str,
    text: String,
}

impl Answer for Raw {
    fn json(&self) -> Value {
        json!({ self.field: self.text })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.raw(&self.text)
    }
}
