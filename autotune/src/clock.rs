//! Times for proved variants of one spec, by model or by measurement, and their records.

use crate::judge::{Failed, Proved, Step};
use crate::modelled::{Modeller, kv_bytes};
use crate::pipeline::Means;
use crate::proof::Bench;
use crate::{Kernel, ModelledError, TuneError, measured};
use pagesmith_runtime::Cuda;
use pagesmith_spec::gpu::Bytes;
use pagesmith_spec::{Gpu, Image, KernelSpec, Provenance, TuningRecord, Variant, Workload};

/// A time, and where it comes from.
pub(crate) struct Timed {
    pub(crate) time_us: f64,
    pub(crate) provenance: Provenance,
}

/// Times the variants of one spec and keeps them.
pub(crate) struct Clock<'a> {
    means: Means<'a>,
    spec: KernelSpec,
    workload: Workload,
    /// Made for the first variant that needs it: its tensors are large.
    modeller: Option<Modeller>,
    /// Candidates for the GPU, which times them in turn.
    waiting: Vec<Proved>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(means: Means<'a>, spec: &KernelSpec, workload: Workload) -> Self {
        Clock {
            means,
            spec: spec.clone(),
            workload,
            modeller: None,
            waiting: Vec::new(),
        }
    }

    /// Models and keeps a variant; one that is to be measured waits for [`Clock::finish`].
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub(crate) fn time(&mut self, proved: Proved) -> Result<Option<Step>, TuneError> {
        if let Bench::Cuda(_) = self.means.bench {
            self.waiting.push(proved);
            return Ok(None);
        }
        let timed = self.model(&proved.variant, &proved.image);
        self.step(proved, timed).map(Some)
    }

    /// Measures and keeps what waits, and gives the workload's memory back.
    ///
    /// # Errors
    /// When the workload does not fit the device, or the cache cannot be written.
    pub(crate) fn finish(&mut self) -> Result<Vec<Step>, TuneError> {
        self.modeller = None;
        let waiting = std::mem::take(&mut self.waiting);
        let Bench::Cuda(device) = self.means.bench else {
            return Ok(Vec::new());
        };
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let times = self.measure(device, &waiting)?;
        waiting
            .into_iter()
            .zip(times)
            .map(|(proved, timed)| self.step(proved, timed))
            .collect()
    }

    fn model(&mut self, variant: &Variant, image: &Image) -> Result<Timed, ModelledError> {
        let gpu = self.means.cache.gpu();
        let modeller = match self.modeller.take() {
            Some(modeller) => modeller,
            None => Modeller::new(gpu, &self.spec, self.workload)?,
        };
        let prediction = self
            .modeller
            .insert(modeller)
            .model(variant, image)?
            .prediction;
        Ok(Timed {
            time_us: prediction.microseconds(),
            provenance: prediction.provenance(),
        })
    }

    fn measure(
        &self,
        device: &Cuda,
        waiting: &[Proved],
    ) -> Result<Vec<Result<Timed, measured::MeasuredError>>, TuneError> {
        let candidates: Vec<(Variant, Image)> = waiting
            .iter()
            .map(|proved| (proved.variant.clone(), proved.image.clone()))
            .collect();
        let measured = measured::measure(device, &self.spec, self.workload, &candidates)?;
        Ok(measured
            .into_iter()
            .map(|outcome| {
                outcome.map(|measured| Timed {
                    time_us: measured.time_us,
                    provenance: measured.provenance,
                })
            })
            .collect())
    }

    fn step<E: std::error::Error>(
        &self,
        proved: Proved,
        timed: Result<Timed, E>,
    ) -> Result<Step, TuneError> {
        match timed {
            Ok(timed) => Ok(Step::Kept(Box::new(self.keep(proved, timed)?))),
            Err(error) => Ok(Step::Failed(Failed {
                id: proved.variant.id(),
                reasons: vec![error.to_string()],
            })),
        }
    }

    fn keep(&self, proved: Proved, timed: Timed) -> Result<Kernel, TuneError> {
        let Proved {
            variant,
            image,
            proof,
        } = proved;
        let record = TuningRecord {
            id: variant.id(),
            image: image.hash(),
            workload: self.workload,
            roofline_fraction: roofline_fraction(
                self.means.cache.gpu(),
                kv_bytes(&self.spec, self.workload),
                timed.time_us,
            ),
            time_us: timed.time_us,
            provenance: timed.provenance,
            variant,
            proof,
        };
        self.means.cache.put(&image, &record)?;
        Ok(Kernel {
            header: image.header,
            record,
        })
    }
}

/// Time of `bytes` at the peak bandwidth of the GPU's memory over `time_us`.
pub(crate) fn roofline_fraction(gpu: &Gpu, bytes: u64, time_us: f64) -> f64 {
    gpu.memory.peak_bytes_per_s.seconds(Bytes(bytes)) * 1e6 / time_us
}
