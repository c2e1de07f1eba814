//! `autotune launch KERNEL`: one decode over the record's workload, nothing else on the GPU.

use super::Place;
use crate::cli::answer::Answer;
use crate::cli::args::{DeviceChoice, LaunchArgs};
use crate::cli::failure::Failure;
use crate::cli::page::Page;
use pagesmith_autotune::Tensors;
use pagesmith_runtime::{Device, KernelCache, Kernels};
use serde_json::{Value, json};
use std::io;

pub(crate) fn launch(args: &LaunchArgs) -> Result<Box<dyn Answer>, Failure> {
    let DeviceChoice::Cuda(ordinal) = args.device else {
        return Err(Failure::input(
            "device: only cuda:N can be profiled; `autotune show KERNEL` counts on the emulator",
        ));
    };
    let cuda = super::cuda(ordinal)?;
    let place = Place::of(&args.cache)?;
    let cache = KernelCache::open(place.root(), cuda.gpu()).map_err(Failure::input)?;
    let record = cache.find(&args.kernel).map_err(Failure::input)?;
    let image = cache.load_image(&record).map_err(Failure::failed)?;
    let spec = record.variant.spec();
    let tensors = Tensors::new(&cuda, spec, record.workload).map_err(Failure::failed)?;
    let stream = cuda.stream();
    let mut kernels = Kernels::new(cuda.clone());
    kernels
        .load(&record.variant, &image)
        .map_err(Failure::failed)?;
    let mut plan = tensors
        .plan(&mut kernels, &stream)
        .map_err(Failure::failed)?;
    tensors
        .decode(&mut kernels, &mut plan, &stream)
        .map_err(Failure::failed)?;
    cuda.synchronize(&stream).map_err(Failure::failed)?;
    Ok(Box::new(Launched { id: record.id }))
}

struct Launched {
    id: String,
}

impl Answer for Launched {
    fn json(&self) -> Value {
        json!({ "launched": self.id })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line(format_args!("launched {}", self.id))
    }
}
