//! A roofline with occupancy: what a launch takes on a GPU, and what bounds it.
//!
//! Every limit is turned into the seconds it would take alone, from the launch's counts and the
//! GPU's description, and the limits are joined by a p-norm with p = 3: two equal ones cost 26 %
//! more than one, a limit of a third of the largest adds 1 %. For bandwidth against bytes in
//! flight that form and exponent fit public occupancy sweeps of A100 within 3 %; for the pipes
//! among one another it is an assumption.

mod pipes;
mod prediction;
mod profile;
mod schedule;

pub use pipes::Pipe;
pub use prediction::{Bound, Breakdown, LaunchPrediction, Prediction};
pub use profile::LaunchProfile;

use crate::error::TimingError;
use pagesmith_spec::Gpu;
use pagesmith_spec::gpu::Cycles;
use schedule::{Demand, Slots, norm};

/// Name of this model; it changes whenever a prediction does.
pub const MODEL_VERSION: &str = "roofline-1";

/// Seconds from one kernel's end to the next one's first CTA, inside a CUDA graph.
///
/// Not in a GPU's description because no figure for these products is published; 1.5 us is what
/// users commonly report for A100. It is the same for every variant with as many launches.
const LAUNCH_SECONDS: f64 = 1.5e-6;

/// Predicts launches that run one after the other.
///
/// # Errors
/// When a figure of a launch cannot be.
pub fn predict(gpu: &Gpu, launches: &[LaunchProfile]) -> Result<Prediction, TimingError> {
    let launches: Vec<LaunchPrediction> = launches
        .iter()
        .map(|launch| predict_launch(gpu, launch))
        .collect::<Result<_, _>>()?;
    let longest = launches
        .iter()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(Prediction {
        gpu: gpu.name.clone(),
        model_version: MODEL_VERSION,
        seconds: launches.iter().map(|launch| launch.seconds).sum(),
        bound_by: longest.map_or(Bound::Overhead, |launch| launch.bound_by),
        launches,
    })
}

fn predict_launch(gpu: &Gpu, launch: &LaunchProfile) -> Result<LaunchPrediction, TimingError> {
    let ctas_per_sm = launch.check(gpu)?;
    let ctas = launch.cta_weights.len();
    let clock = gpu.boost_mhz;
    let slots = Slots {
        sms: gpu.sms as usize,
        ctas_per_sm: ctas_per_sm as usize,
        startup: f64::from(launch.dependent_loads) * gpu.memory.latency_cycles.seconds(clock),
    };

    let dram = gpu.memory.achievable_bytes_per_s.seconds(launch.dram_bytes);
    // A set that fits one half is served from it; a larger one crosses between the halves.
    let near = launch.dram_bytes.0 <= gpu.l2.bytes.0 / 2;
    let l2_rate = if near {
        gpu.l2.bytes_per_s
    } else {
        gpu.l2.far_bytes_per_s
    };
    let l2 = l2_rate.seconds(launch.l2_bytes);
    let pipes: Vec<_> = pipes::cycles(gpu, launch)
        .into_iter()
        .map(|(pipe, cycles)| (pipe, Cycles(cycles).seconds(clock)))
        .collect();
    let latency = gpu.memory.latency_cycles.seconds(clock);
    let rounds = if launch.dram_bytes.0 == 0 {
        0.0
    } else {
        launch.dram_bytes.as_f64() / launch.cta_bytes_in_flight.as_f64()
    };
    let demand = Demand {
        // The DRAM figure was measured through L2, so that its bytes must not be paid for twice.
        shared: dram.max(l2),
        one_sm: norm(pipes.iter().map(|&(_, seconds)| seconds)),
        one_cta: rounds * latency,
    };

    let total: f64 = launch.cta_weights.iter().sum();
    let share = |weight: f64| {
        if total > 0.0 {
            weight / total
        } else {
            1.0 / ctas as f64
        }
    };
    let shares: Vec<f64> = launch.cta_weights.iter().map(|&w| share(w)).collect();
    let busy = schedule::run(demand, slots, &shares);
    let balanced = schedule::balanced(demand, slots, ctas);

    let slots_total = slots.sms * slots.ctas_per_sm;
    let resident = ctas.min(slots_total) as f64;
    let sms = ctas.min(slots.sms) as f64;
    let breakdown = Breakdown {
        dram,
        in_flight: demand.one_cta / resident,
        l2,
        pipes: pipes.into_iter().map(|(pipe, t)| (pipe, t / sms)).collect(),
        balanced,
        startup: slots.startup,
        tail: (busy - balanced - slots.startup).max(0.0),
        launch: LAUNCH_SECONDS,
    };
    Ok(LaunchPrediction {
        name: launch.name.clone(),
        seconds: busy + LAUNCH_SECONDS,
        bound_by: breakdown.bound(),
        ctas_per_sm,
        waves: ctas as f64 / slots_total as f64,
        sm_bytes_in_flight: launch.cta_bytes_in_flight.as_f64() * resident / sms,
        breakdown,
    })
}
