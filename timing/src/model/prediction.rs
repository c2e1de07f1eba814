//! What the model answers.

use super::Pipe;
use pagesmith_spec::Provenance;
use serde::Serialize;

/// A predicted time: modelled, never measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prediction {
    /// The GPU's pagesmith name.
    pub gpu: String,
    /// The model that predicted it: [`super::MODEL_VERSION`].
    pub model_version: &'static str,
    /// Seconds of all launches, one after the other.
    pub seconds: f64,
    /// What bounds the longest launch.
    pub bound_by: Bound,
    /// The launches.
    pub launches: Vec<LaunchPrediction>,
}

impl Prediction {
    /// The predicted time in microseconds.
    pub fn microseconds(&self) -> f64 {
        self.seconds * 1e6
    }

    /// Where the time comes from, for records and reports.
    pub fn provenance(&self) -> Provenance {
        Provenance::Modelled {
            gpu: self.gpu.clone(),
            model_version: self.model_version.to_owned(),
        }
    }
}

/// The prediction for one launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LaunchPrediction {
    /// The launch's name.
    pub name: String,
    /// Its seconds, overhead included.
    pub seconds: f64,
    /// Its largest single limit.
    pub bound_by: Bound,
    /// CTAs that a multiprocessor holds at once.
    pub ctas_per_sm: u32,
    /// CTAs over slots: 1.0 fills the GPU exactly once.
    pub waves: f64,
    /// Bytes in flight of a multiprocessor that is full, or as full as the grid makes it.
    pub sm_bytes_in_flight: f64,
    /// The limits, each as if it were the only one.
    pub breakdown: Breakdown,
}

/// Seconds that each limit alone would take, with work spread evenly; and what comes on top.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Breakdown {
    /// DRAM bytes at the bandwidth that reads reach.
    pub dram: f64,
    /// DRAM bytes at bytes in flight over latency (Little's law).
    pub in_flight: f64,
    /// L2 bytes at L2 bandwidth.
    pub l2: f64,
    /// The pipes of the multiprocessors.
    pub pipes: Vec<(Pipe, f64)>,
    /// The above joined, in perfect balance.
    pub balanced: f64,
    /// Loads that follow from one another before the first CTA's steady state.
    pub startup: f64,
    /// Uneven work, partial waves, and the startup of later waves that is not hidden.
    pub tail: f64,
    /// Fixed overhead of a launch.
    pub launch: f64,
}

/// What a time is bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "limit", content = "pipe")]
#[non_exhaustive]
pub enum Bound {
    /// DRAM bandwidth.
    Dram,
    /// Too few bytes in flight to fill DRAM's latency.
    InFlight,
    /// L2 bandwidth.
    L2,
    /// A pipe of the multiprocessors.
    Pipe(Pipe),
    /// Startup, uneven work and launch overhead together outlast the work itself.
    Overhead,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bound::Dram => "dram",
            Bound::InFlight => "in-flight",
            Bound::L2 => "l2",
            Bound::Pipe(pipe) => pipe.name(),
            Bound::Overhead => "overhead",
        })
    }
}

impl Breakdown {
    /// The largest limit.
    pub(super) fn bound(&self) -> Bound {
        let memory = [
            (Bound::Dram, self.dram),
            (Bound::InFlight, self.in_flight),
            (Bound::L2, self.l2),
        ];
        let pipes = self.pipes.iter().map(|&(pipe, t)| (Bound::Pipe(pipe), t));
        let work = memory
            .into_iter()
            .chain(pipes)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let overhead = self.startup + self.tail + self.launch;
        match work {
            Some((bound, _)) if self.balanced >= overhead => bound,
            _ => Bound::Overhead,
        }
    }
}
