//! `autotune cache ls`, `verify` and `dir`.

use super::kernels::table;
use super::{Place, object};
use crate::cli::answer::Answer;
use crate::cli::args::{CacheVerb, InCache};
use crate::cli::failure::Failure;
use crate::cli::page::{Page, counted};
use pagesmith_autotune::{Kernel, KernelReport};
use pagesmith_runtime::KernelCache;
use pagesmith_spec::KernelSpec;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

pub(crate) fn cache(verb: &CacheVerb) -> Result<Box<dyn Answer>, Failure> {
    match verb {
        CacheVerb::Ls(args) => ls(args),
        CacheVerb::Verify(args) => verify(args),
        CacheVerb::Dir(args) => dir(args),
    }
}

fn ls(args: &InCache) -> Result<Box<dyn Answer>, Failure> {
    let place = Place::of(&args.cache)?;
    let mut listing = Listing {
        root: place.root().to_owned(),
        gpus: Vec::new(),
    };
    for cache in place.caches(args.gpu.as_deref())? {
        let mut listed = Listed {
            gpu: cache.gpu().name.clone(),
            kernels: Vec::new(),
            problems: Vec::new(),
        };
        let entries = cache.entries().map_err(Failure::failed)?;
        listed
            .problems
            .extend(entries.problems.iter().map(ToString::to_string));
        let specs: BTreeSet<KernelSpec> = entries
            .records
            .into_iter()
            .map(|record| record.variant.spec().clone())
            .collect();
        for spec in specs {
            for record in cache.candidates(&spec).map_err(Failure::failed)?.records {
                match cache.load_image(&record) {
                    Ok(image) => listed.kernels.push(
                        Kernel {
                            record,
                            header: image.header,
                        }
                        .report(),
                    ),
                    Err(problem) => listed.problems.push(problem.to_string()),
                }
            }
        }
        listing.gpus.push(listed);
    }
    Ok(Box::new(listing))
}

struct Listing {
    root: PathBuf,
    gpus: Vec<Listed>,
}

struct Listed {
    gpu: String,
    kernels: Vec<KernelReport>,
    problems: Vec<String>,
}

impl Answer for Listing {
    fn json(&self) -> Value {
        let kernels: Vec<Value> = self
            .gpus
            .iter()
            .flat_map(|listed| &listed.kernels)
            .map(object)
            .collect();
        let problems: Vec<&String> = self
            .gpus
            .iter()
            .flat_map(|listed| &listed.problems)
            .collect();
        json!({ "cache": self.root, "kernels": kernels, "problems": problems })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.gpus.iter().all(|listed| listed.kernels.is_empty()) {
            page.line(format_args!("no kernels in {}", self.root.display()))?;
        }
        for (index, listed) in self.gpus.iter().enumerate() {
            if index > 0 {
                page.blank()?;
            }
            if !listed.kernels.is_empty() {
                page.heading(format_args!(
                    "{}: {}",
                    listed.gpu,
                    counted(listed.kernels.len(), "kernel")
                ))?;
                table(page, &listed.kernels)?;
            }
            for problem in &listed.problems {
                page.bad("damaged:", problem)?;
            }
        }
        Ok(())
    }
}

fn verify(args: &InCache) -> Result<Box<dyn Answer>, Failure> {
    let place = Place::of(&args.cache)?;
    let mut intact = Intact {
        root: place.root().to_owned(),
        records: 0,
        images: 0,
        problems: Vec::new(),
    };
    for cache in place.caches(args.gpu.as_deref())? {
        let found = cache.verify().map_err(Failure::failed)?;
        intact.records += found.records;
        intact.images += found.images;
        intact
            .problems
            .extend(found.problems.iter().map(ToString::to_string));
    }
    if intact.records == 0 && intact.problems.is_empty() {
        return Err(Failure::input(format_args!(
            "cache: {} has no kernels to verify; fill it with `autotune run --model MODEL`",
            place.root().display(),
        )));
    }
    Ok(Box::new(intact))
}

struct Intact {
    root: PathBuf,
    records: usize,
    images: usize,
    problems: Vec<String>,
}

impl Answer for Intact {
    fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    fn json(&self) -> Value {
        json!({
            "cache": self.root,
            "records": self.records,
            "images": self.images,
            "problems": self.problems,
        })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for problem in &self.problems {
            page.bad("damaged:", problem)?;
        }
        let what = format!(
            "{} and {} in {}",
            counted(self.records, "record"),
            counted(self.images, "image"),
            self.root.display()
        );
        if self.problems.is_empty() {
            page.good("intact:", what)
        } else {
            page.bad(
                "failed:",
                format_args!("{}: {what}", counted(self.problems.len(), "problem")),
            )
        }
    }
}

fn dir(args: &InCache) -> Result<Box<dyn Answer>, Failure> {
    let place = Place::of(&args.cache)?;
    let path = match &args.gpu {
        None => place.root().to_owned(),
        Some(_) => match place.caches(args.gpu.as_deref())?.first() {
            Some(cache) => KernelCache::directory(cache).to_owned(),
            None => place.root().to_owned(),
        },
    };
    Ok(Box::new(Directory { path }))
}

struct Directory {
    path: PathBuf,
}

impl Answer for Directory {
    fn json(&self) -> Value {
        json!({ "cache": self.path })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line(self.path.display())
    }
}
