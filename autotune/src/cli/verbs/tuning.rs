//! `autotune run` and `autotune compile`.

use super::kernels::{table, workload};
use super::{Place, object, plan::Plan};
use crate::cli::answer::Answer;
use crate::cli::args::{Build, Choices, CompileArgs, DeviceChoice, RunArgs, Strength};
use crate::cli::failure::Failure;
use crate::cli::page::{Page, counted, thousands};
use crate::cli::progress::Bar;
use pagesmith_autotune::{
    Bench, Effort, Event, Group, KernelReport, Means, Observer, Outcome, Request, SpecOutcome,
    Toolshop, enumerate, load_model, matrix_groups, tune,
};
use pagesmith_codegen::{Provisioning, Search};
use pagesmith_prove::Seed;
use pagesmith_runtime::{Cuda, Device, KernelCache};
use pagesmith_spec::{Gpu, KvDtype, Lse, Settings, Workload};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// The traffic of a model's times, until there are buckets.
const BATCH: u32 = 4;
const TOKENS: u32 = 4096;

pub(crate) fn run(args: &RunArgs) -> Result<Box<dyn Answer>, Failure> {
    let request = request(&args.model, &args.choices)?;
    let job = Job {
        build: &args.build,
        place: Place::of(&args.cache)?,
        device: args.device,
    };
    of_model(request, &job)
}

pub(crate) fn compile(args: &CompileArgs) -> Result<Box<dyn Answer>, Failure> {
    let job = Job {
        build: &args.build,
        place: Place::of(&args.cache)?,
        device: DeviceChoice::Emulated,
    };
    match (&args.model, args.matrix) {
        (Some(model), None) => of_model(request(model, &args.choices)?, &job),
        (_, Some(strength)) => {
            let gpu = Gpu::by_name(&args.choices.gpu).map_err(Failure::input)?;
            of_matrix(strength, gpu, &job)
        }
        (None, None) => Err(Failure::input("--model or --matrix says what is compiled")),
    }
}

/// How and where.
struct Job<'a> {
    build: &'a Build,
    place: Place,
    device: DeviceChoice,
}

/// What the arguments ask to be tuned.
fn request(model: &str, choices: &Choices) -> Result<Request, Failure> {
    let kv_dtypes = if choices.kv_dtype.is_empty() {
        vec![choices.query_dtype.as_kv(), KvDtype::Fp8E4M3]
    } else {
        choices.kv_dtype.clone()
    };
    Ok(Request {
        shape: load_model(model)?,
        settings: Settings {
            block_size: choices.block_size,
            query: choices.query_dtype,
            kv_dtypes,
            table: choices.table,
            lse: if choices.lse {
                Lse::Written
            } else {
                Lse::Omitted
            },
            ..Settings::default()
        },
        gpu: Gpu::by_name(&choices.gpu).map_err(Failure::input)?,
        effort: Effort::from(choices.effort),
    })
}

fn of_model(request: Request, job: &Job<'_>) -> Result<Box<dyn Answer>, Failure> {
    let specs = enumerate(&request).map_err(Failure::input)?;
    if job.build.dry_run {
        return Ok(Box::new(Plan { request, specs }));
    }
    let shape = &request.shape;
    let workload = Workload {
        batch: BATCH,
        tokens: TOKENS.min(shape.max_context()),
        kv_heads: shape.kv_heads(),
    };
    let groups = specs
        .into_iter()
        .map(|plan| Group {
            spec: plan.spec,
            variants: plan.variants,
            spare: Vec::new(),
            workload,
        })
        .collect();
    let about = format!(
        "{} on {}: {} query heads, {} KV heads, head dim {}, {}",
        shape.name(),
        request.gpu.name,
        shape.query_heads(),
        shape.kv_heads(),
        shape.head_dim(),
        counted(shape.layers() as usize, "layer"),
    );
    tuned(about, groups, &request.gpu, job)
}

fn of_matrix(strength: Strength, gpu: Gpu, job: &Job<'_>) -> Result<Box<dyn Answer>, Failure> {
    let groups = matrix_groups(strength.into(), gpu.arch).map_err(Failure::failed)?;
    if job.build.dry_run {
        return Ok(Box::new(super::plan::MatrixPlan { gpu, groups }));
    }
    let about = format!("{} matrix on {}", strength.name(), gpu.name);
    tuned(about, groups, &gpu, job)
}

fn tuned(
    about: String,
    groups: Vec<Group>,
    gpu: &Gpu,
    job: &Job<'_>,
) -> Result<Box<dyn Answer>, Failure> {
    let begin = Instant::now();
    super::threads(job.build.jobs)?;
    let device = chosen_device(job.device, gpu)?;
    let cache = KernelCache::open_or_create(job.place.root(), gpu).map_err(Failure::input)?;
    let bar = Bar::new();
    let provisioning = if job.build.offline {
        Provisioning::Offline
    } else {
        Provisioning::Allowed
    };
    let tell = |progress| bar.event(Event::Provision(&progress));
    let toolshop = Toolshop::new(Search::from_env(), provisioning, &tell);
    let bench = device.as_ref().map_or(Bench::Emulated, Bench::Cuda);
    let outcome = tune(
        groups,
        Means {
            cache: &cache,
            toolshop: &toolshop,
            bench: &bench,
            seed: Seed::fresh(),
            observer: &bar,
        },
    )?;
    Ok(Box::new(Tuned {
        about,
        gpu: gpu.clone(),
        cache: cache.directory().to_owned(),
        device: match job.device {
            _ if device.is_none() => String::from("emulated"),
            DeviceChoice::Cuda(ordinal) => format!("cuda:{ordinal}"),
            DeviceChoice::Auto | DeviceChoice::Emulated => String::from("cuda:0"),
        },
        outcome,
        elapsed_s: begin.elapsed().as_secs_f64(),
    }))
}

/// The CUDA device that is asked for; `None` is the emulator.
fn chosen_device(choice: DeviceChoice, gpu: &Gpu) -> Result<Option<Cuda>, Failure> {
    match choice {
        DeviceChoice::Emulated => Ok(None),
        // A device of another name would give times of another GPU.
        DeviceChoice::Auto => Ok(Cuda::new(0).ok().filter(|cuda| cuda.gpu().name == gpu.name)),
        DeviceChoice::Cuda(ordinal) => {
            let cuda = super::cuda(ordinal)?;
            let found = &cuda.gpu().name;
            if *found != gpu.name {
                return Err(Failure::input(format_args!(
                    "device: cuda:{ordinal} is {found}, --gpu is {}; pass --gpu {found}, or --device emulated",
                    gpu.name
                )));
            }
            Ok(Some(cuda))
        }
    }
}

/// What a run came to.
struct Tuned {
    about: String,
    gpu: Gpu,
    cache: PathBuf,
    device: String,
    outcome: Outcome,
    elapsed_s: f64,
}

impl Tuned {
    /// The best of each spec.
    fn winners(&self) -> Vec<KernelReport> {
        let best = |spec: &SpecOutcome| Some(spec.kernels.first()?.report());
        self.outcome.specs.iter().filter_map(best).collect()
    }

    fn excluded(&self) -> usize {
        self.outcome
            .specs
            .iter()
            .map(|spec| spec.excluded.len())
            .sum()
    }

    fn failed(&self) -> usize {
        self.outcome
            .specs
            .iter()
            .map(|spec| spec.failed.len())
            .sum()
    }

    fn kept(&self) -> usize {
        self.outcome
            .specs
            .iter()
            .map(|spec| spec.kernels.len())
            .sum()
    }
}

impl Answer for Tuned {
    fn is_good(&self) -> bool {
        self.failed() == 0 && self.winners().len() == self.outcome.specs.len()
    }

    fn json(&self) -> Value {
        let specs = &self.outcome.specs;
        let candidates: Vec<KernelReport> = specs
            .iter()
            .flat_map(|spec| spec.kernels.iter().map(|kernel| kernel.report()))
            .collect();
        let excluded: Vec<Value> = specs
            .iter()
            .flat_map(|spec| &spec.excluded)
            .map(|(variant, exclusion)| {
                json!({
                    "id": variant.id(),
                    "tuning": variant.tuning(),
                    "exclusion": exclusion,
                    "reason": exclusion.to_string(),
                })
            })
            .collect();
        json!({
            "gpu": self.gpu.name,
            "cache": self.cache,
            "device": self.device,
            "compiled": self.outcome.compiled,
            "reused": self.outcome.reused,
            "elapsed_s": self.elapsed_s,
            "kernels": self.winners(),
            "candidates": candidates,
            "excluded": excluded,
            "failed": specs.iter().flat_map(|spec| &spec.failed).map(object).collect::<Vec<_>>(),
        })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let winners = self.winners();
        page.heading(&self.about)?;
        page.line(format_args!(
            "{} compiled, {} reused, in {:.1} s; {} proved right, {} excluded for spills, {} wrong",
            thousands(self.outcome.compiled as u64),
            thousands(self.outcome.reused as u64),
            self.elapsed_s,
            thousands(self.kept() as u64),
            thousands(self.excluded() as u64),
            thousands(self.failed() as u64),
        ))?;
        page.blank()?;
        table(page, &winners)?;
        page.blank()?;
        if let Some(kernel) = winners.first() {
            page.fields(&[
                (
                    "time",
                    format!(
                        "one decode over {}; {}",
                        workload(kernel.shape),
                        kernel.provenance
                    ),
                ),
                (
                    "of HBM",
                    format!(
                        "the cache's bytes at {} GB/s over that time",
                        thousands((self.gpu.memory.peak_bytes_per_s.0 / 1e9).round() as u64)
                    ),
                ),
                (
                    "error",
                    format!(
                        "largest relative L2 against f64, {} proved {}",
                        counted(kernel.proof.cases as usize, "case"),
                        match kernel.proof.device.as_str() {
                            "emulated" => String::from("on the emulator under every check"),
                            gpu => format!("on {gpu}"),
                        }
                    ),
                ),
                ("cache", self.cache.display().to_string()),
            ])?;
        }
        for spec in &self.outcome.specs {
            for failed in &spec.failed {
                page.bad("wrong:", &failed.id)?;
                for reason in &failed.reasons {
                    page.line(format_args!("  {reason}"))?;
                }
            }
            if spec.kernels.is_empty() {
                page.bad(
                    "missing:",
                    format_args!("no kernel of {} is right", spec.spec),
                )?;
            }
        }
        Ok(())
    }
}
