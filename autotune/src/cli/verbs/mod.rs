//! One file a verb: arguments to answer.

mod cache;
mod completions;
mod doctor;
mod kernels;
mod launch;
mod measuring;
mod place;
mod plan;
mod show;
mod tuning;
mod verify;

use super::answer::Answer;
use super::args::{Cli, Verb};
use super::failure::Failure;
use pagesmith_runtime::{Cuda, DeviceError};
use place::Place;
use serde::Serialize;
use serde_json::Value;

/// Does what the command line asks for.
pub(crate) fn answer(cli: &Cli) -> Result<Box<dyn Answer>, Failure> {
    match &cli.verb {
        Verb::Run(args) => tuning::run(args),
        Verb::Compile(args) => tuning::compile(args),
        Verb::Measure(args) => measuring::measure(args),
        Verb::Verify(args) => verify::verify(args),
        Verb::Cache(args) => cache::cache(&args.verb),
        Verb::Show(args) => show::show(args),
        Verb::Launch(args) => launch::launch(args),
        Verb::Doctor(args) => Ok(doctor::doctor(args)),
        Verb::Completions { shell } => Ok(Box::new(completions::Completions::new(*shell))),
    }
}

/// A CUDA device that was asked for by its number.
fn cuda(ordinal: usize) -> Result<Cuda, Failure> {
    Cuda::new(ordinal).map_err(|error| match error {
        // A machine without a GPU, or a number that it has not: another choice would have been right.
        DeviceError::NoDriver { .. } | DeviceError::NoDevice { .. } => Failure::input(error),
        other => Failure::failed(other),
    })
}

/// Limits the threads of this process.
fn threads(jobs: Option<u16>) -> Result<(), Failure> {
    match jobs {
        None => Ok(()),
        Some(jobs) => rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.into())
            .build_global()
            .map_err(Failure::failed),
    }
}

/// Plain data as JSON.
fn object(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_else(|error| Value::String(error.to_string()))
}
