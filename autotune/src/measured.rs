//! Times on a GPU: events around each decode, a cold L2 before it, candidates in turn.

use crate::workload::{Tensors, WorkloadError};
use pagesmith_runtime::device::cuda::{Samples, TimedError};
use pagesmith_runtime::{Cuda, Device, Kernels, LoadError};
use pagesmith_spec::{Image, KernelSpec, Provenance, Variant, Workload};
use std::process::{Command, Stdio};

/// Rounds in which every candidate is timed once: what drifts while measuring (clocks, temperature) then
/// touches all of them alike.
const ROUNDS: usize = 5;
/// Runs of one candidate in one round.
const SAMPLES: Samples = Samples {
    warm_up: 5,
    timed: 21,
};

/// A time that could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasuredError {
    /// The workload could not be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The image does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The work or the device failed while it was timed.
    #[error(transparent)]
    Timed(#[from] TimedError<WorkloadError>),
}

/// A measured time.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Median over all rounds, in microseconds.
    pub time_us: f64,
    /// Which GPU, driver and clock.
    pub provenance: Provenance,
    /// The median of each round, in microseconds: their spread is the measurement's.
    pub rounds_us: Vec<f64>,
}

/// Times the candidates of one spec in turn. A candidate that fails costs its own time and no other's.
///
/// # Errors
/// When the workload's tensors do not fit the device.
pub fn measure(
    device: &Cuda,
    spec: &KernelSpec,
    workload: Workload,
    candidates: &[(Variant, Image)],
) -> Result<Vec<Result<Measured, MeasuredError>>, WorkloadError> {
    let tensors = Tensors::new(device, spec, workload)?;
    let mut kernels = Kernels::new(device.clone());
    let mut outcomes: Vec<Result<Vec<f64>, MeasuredError>> =
        candidates.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..ROUNDS {
        for ((variant, image), outcome) in candidates.iter().zip(&mut outcomes) {
            if let Ok(rounds) = outcome {
                match round(&mut kernels, &tensors, variant, image) {
                    Ok(median_us) => rounds.push(median_us),
                    Err(error) => *outcome = Err(error),
                }
            }
        }
    }
    let provenance = Provenance::Measured {
        gpu: device.gpu().name.clone(),
        driver: device.driver_version().to_owned(),
        sm_clock_mhz: sm_clock_mhz(),
    };
    Ok(outcomes
        .into_iter()
        .map(|outcome| {
            outcome.map(|rounds_us| Measured {
                time_us: median(&rounds_us),
                provenance: provenance.clone(),
                rounds_us,
            })
        })
        .collect())
}

fn round(
    kernels: &mut Kernels<Cuda>,
    tensors: &Tensors<<Cuda as Device>::Buffer>,
    variant: &Variant,
    image: &Image,
) -> Result<f64, MeasuredError> {
    kernels.load(variant, image)?;
    let device = kernels.device().clone();
    let stream = device.stream();
    let mut plan = tensors.plan(kernels, &stream)?;
    let timing = device.time(SAMPLES, |stream| tensors.decode(kernels, &mut plan, stream))?;
    Ok(timing.median_us)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The SM clock right after timing, while the GPU is still warm; `None` where `nvidia-smi` does not tell,
/// or numbers the GPUs in another way than CUDA does.
fn sm_clock_mhz() -> Option<u32> {
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return None;
    }
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=clocks.sm", "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let clock = lines.next()?.trim().parse().ok();
    // Of several GPUs, which one was timed is not known here.
    clock.filter(|_| lines.next().is_none())
}
