//! The text of a record's file: an envelope with format and hash around the record.

use super::{Problem, ProblemKind, store};
use pagesmith_spec::{ContentHash, Exclusion, Gpu, TuningRecord, Variant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the envelope and of what is inside.
pub(super) const FORMAT: u64 = 1;
/// The longest record that is read; they have about 1 KB.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// What a file holds.
pub(super) trait Stored: Serialize + DeserializeOwned {
    /// The domain of its hash.
    const DOMAIN: &'static str;
}

/// Why a variant was not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Excluded {
    pub(super) variant: Variant,
    /// What it was judged from.
    pub(super) source: ContentHash,
    pub(super) exclusion: Exclusion,
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    format: u64,
    hash: ContentHash,
    contents: T,
}

/// Read first, so that a file of a later version is called that and not damaged.
#[derive(Deserialize)]
struct FormatOnly {
    format: u64,
}

pub(super) fn record(record: &TuningRecord) -> Vec<u8> {
    text(record)
}

pub(super) fn excluded(excluded: &Excluded) -> Vec<u8> {
    text(excluded)
}

fn text<T: Stored>(contents: &T) -> Vec<u8> {
    let envelope = Envelope {
        format: FORMAT,
        hash: hash(contents),
        contents,
    };
    let mut text =
        serde_json::to_vec_pretty(&envelope).expect("a record of strings and numbers serialises");
    text.push(b'\n');
    text
}

/// Over the compact text, which reads back to the same numbers (serde_json's `float_roundtrip`).
fn hash<T: Stored>(contents: &T) -> ContentHash {
    let compact = serde_json::to_vec(contents).expect("a record of strings and numbers serialises");
    ContentHash::of(T::DOMAIN, &[&compact])
}

/// Reads a file; `None` when there is none.
pub(super) fn read<T: Stored>(path: &Path) -> Result<Option<T>, Problem> {
    parse(path).map_err(|kind| Problem::new(path.to_owned(), kind))
}

fn parse<T: Stored>(path: &Path) -> Result<Option<T>, ProblemKind> {
    let Some(bytes) = store::read(path, MAX_RECORD_BYTES)? else {
        return Ok(None);
    };
    let syntax = |error: serde_json::Error| ProblemKind::Syntax(error.to_string());
    let FormatOnly { format } = serde_json::from_slice(&bytes).map_err(syntax)?;
    if format != FORMAT {
        return Err(ProblemKind::Format {
            found: format,
            expected: FORMAT,
        });
    }
    let envelope: Envelope<T> = serde_json::from_slice(&bytes).map_err(syntax)?;
    let found = hash(&envelope.contents);
    if found != envelope.hash {
        return Err(ProblemKind::Hash {
            expected: envelope.hash,
            found,
        });
    }
    Ok(Some(envelope.contents))
}

/// Whether a record can be one of `gpu`'s.
pub(super) fn check_record(record: &TuningRecord, gpu: &Gpu) -> Result<(), ProblemKind> {
    let spec = record.variant.spec();
    spec.check().map_err(ProblemKind::Spec)?;
    record
        .variant
        .tuning()
        .check(spec, gpu.arch)
        .map_err(ProblemKind::Tuning)?;
    if record.id != record.variant.id() {
        return Err(ProblemKind::Id {
            expected: record.variant.id(),
            found: record.id.chars().take(128).collect(),
        });
    }
    if record.provenance.gpu() != gpu.name {
        return Err(ProblemKind::Gpu {
            found: record.provenance.gpu().chars().take(128).collect(),
            expected: gpu.name.clone(),
        });
    }
    let workload = record.workload;
    let numbers = [
        ("time_us", record.time_us, record.time_us > 0.0),
        (
            "roofline_fraction",
            record.roofline_fraction,
            record.roofline_fraction >= 0.0,
        ),
        (
            "proof.max_relative_l2",
            record.proof.max_relative_l2,
            (0.0..=spec.query.tolerance()).contains(&record.proof.max_relative_l2),
        ),
        // A kernel that was not proved, or was proved wrong, is never launched.
        (
            "proof.cases",
            f64::from(record.proof.cases),
            record.proof.cases > 0,
        ),
        (
            "proof.findings",
            f64::from(record.proof.findings),
            record.proof.findings == 0,
        ),
        (
            "workload.batch",
            f64::from(workload.batch),
            workload.batch > 0,
        ),
        (
            "workload.tokens",
            f64::from(workload.tokens),
            workload.tokens > 0,
        ),
        (
            "workload.kv_heads",
            f64::from(workload.kv_heads),
            workload.kv_heads > 0,
        ),
    ];
    for (field, value, possible) in numbers {
        if !possible || !value.is_finite() {
            return Err(ProblemKind::Number { field, value });
        }
    }
    Ok(())
}
