//! Times of launches, by events on the device.

use super::{Cuda, Device, DeviceError, failed};
use crate::device::Buffer;
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use std::sync::Arc;

/// How often to run what is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Untimed runs first: clocks rise, code is loaded.
    pub warm_up: u32,
    /// Timed runs.
    pub timed: u32,
}

impl Default for Samples {
    fn default() -> Self {
        Samples {
            warm_up: 10,
            timed: 100,
        }
    }
}

/// Times of the same work.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Median, in microseconds.
    pub median_us: f64,
    /// Every timed run in order, in microseconds.
    pub runs_us: Vec<f64>,
}

/// Work that failed while it was timed, or timing itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimedError<E: std::error::Error + 'static> {
    /// The work.
    #[error(transparent)]
    Work(E),
    /// The device.
    #[error(transparent)]
    Device(DeviceError),
}

/// Several times the largest L2: after writing this, none of what a kernel reads is left in it.
const FLUSHES_OF_L2: u64 = 4;

impl Cuda {
    /// Times `work` on the device's stream, each time with a cold L2.
    ///
    /// Writing over the L2 takes longer than submitting the launches does, so that they queue up
    /// behind it and the events bracket device time alone.
    ///
    /// # Errors
    /// When the work or the device fails.
    pub fn time<E: std::error::Error + 'static>(
        &self,
        samples: Samples,
        mut work: impl FnMut(&Arc<CudaStream>) -> Result<(), E>,
    ) -> Result<Timing, TimedError<E>> {
        let stream = self.stream();
        let device = TimedError::Device;
        let driver = |call| move |error| TimedError::Device(failed(call, error));
        let flush = self
            .alloc("l2 flush", FLUSHES_OF_L2 * self.gpu.l2.bytes.0)
            .map_err(device)?;
        let event = || {
            self.context()
                .new_event(Some(CU_EVENT_DEFAULT))
                .map_err(driver("cuEventCreate"))
        };
        let (begin, end) = (event()?, event()?);
        for _ in 0..samples.warm_up {
            work(&stream).map_err(TimedError::Work)?;
        }
        let mut runs_us = Vec::with_capacity(samples.timed as usize);
        for run in 0..samples.timed {
            self.fill(flush.region(), run as u8, &stream)
                .map_err(device)?;
            begin.record(&stream).map_err(driver("cuEventRecord"))?;
            work(&stream).map_err(TimedError::Work)?;
            end.record(&stream).map_err(driver("cuEventRecord"))?;
            let milliseconds = begin
                .elapsed_ms(&end)
                .map_err(driver("cuEventElapsedTime"))?;
            runs_us.push(f64::from(milliseconds) * 1e3);
        }
        Ok(Timing {
            median_us: median(&runs_us),
            runs_us,
        })
    }
}

/// The middle value, or the mean of the two middle ones; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_no_outlier() {
        assert_eq!(median(&[3.0, 1000.0, 1.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 900.0]), 3.0);
        assert_eq!(median(&[]), 0.0);
    }
}
