//! Which of several records is the best, the same on every machine.

use pagesmith_spec::{Provenance, TuningRecord};

/// Times within this factor of the best are a tie: less than what two measurements differ by.
const TIE: f64 = 1.02;

/// Sorts records of one spec best first. `registers` reads the image, and is asked of ties only.
pub(super) fn best_first(
    records: &mut [TuningRecord],
    registers: impl Fn(&TuningRecord) -> Option<u32>,
) {
    records.sort_by(|a, b| {
        kind(a)
            .cmp(&kind(b))
            .then(time(a).total_cmp(&time(b)))
            .then_with(|| a.id.cmp(&b.id))
    });
    let Some(best) = records.first() else {
        return;
    };
    let (best_kind, limit) = (kind(best), time(best) * TIE);
    let ties = records.partition_point(|record| kind(record) == best_kind && time(record) <= limit);
    if ties > 1 {
        records[..ties].sort_by_cached_key(|record| {
            let tuning = record.variant.tuning();
            (
                // An image that cannot be read is no winner.
                registers(record).unwrap_or(u32::MAX),
                tuning.ctas_per_sm,
                tuning.warps * tuning.tile_tokens * tuning.head_tile,
                record.id.clone(),
            )
        });
    }
}

fn kind(record: &TuningRecord) -> u8 {
    match record.provenance {
        Provenance::Measured { .. } => 0,
        Provenance::Modelled { .. } => 1,
    }
}

/// Time for one KV token of one head: comparable between records of different workloads.
fn time(record: &TuningRecord) -> f64 {
    let workload = record.workload;
    record.time_us
        / (f64::from(workload.batch) * f64::from(workload.tokens) * f64::from(workload.kv_heads))
}
