//! What a cache already knows of a variant.

use crate::{Kernel, Rendered, Toolshop};
use pagesmith_runtime::KernelCache;
use pagesmith_runtime::cache::Problem;
use pagesmith_spec::record::Proof;
use pagesmith_spec::{Exclusion, Image, Provenance, TuningRecord, Workload};
use pagesmith_timing::MODEL_VERSION;

/// How much of a variant's work is done.
#[derive(Debug)]
pub(crate) enum Recalled {
    /// All of it.
    Kernel(Kernel),
    /// It was judged, and not kept.
    Excluded(Exclusion),
    /// It is compiled; the proof is kept where it was made on the device that is asked for.
    Compiled(Image, Option<Proof>),
    /// None of it.
    Nothing,
}

/// Where kernels are proved and timed, as records name it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judge<'a> {
    /// On the emulator, by model.
    Emulated,
    /// On a GPU of this name.
    Gpu(&'a str),
}

impl Judge<'_> {
    /// Whether a record's time needs no second look. A measured time stays better than a modelled one.
    fn accepts(self, provenance: &Provenance) -> bool {
        match (self, provenance) {
            (_, Provenance::Measured { .. }) => true,
            (Judge::Emulated, Provenance::Modelled { model_version, .. }) => {
                model_version == MODEL_VERSION
            }
            (Judge::Gpu(_), Provenance::Modelled { .. }) => false,
        }
    }

    /// Whether a proof was made here, or where more is checked than a GPU can.
    fn trusts(self, proof: &Proof) -> bool {
        let here = match self {
            Judge::Emulated => proof.device == "emulated",
            Judge::Gpu(name) => proof.device == name,
        };
        here && proof.findings == 0 && proof.cases > 0
    }
}

/// Looks a variant up. What was made from another source, by another compiler release, or is damaged
/// does not count; damage is told to `report`.
pub(crate) fn recall(
    cache: &KernelCache,
    rendered: &Rendered,
    toolshop: &Toolshop<'_>,
    judge: Judge<'_>,
    workload: Workload,
    report: &dyn Fn(Problem),
) -> Recalled {
    match cache.excluded(&rendered.variant, toolshop.judged(rendered.hash)) {
        Ok(Some(exclusion)) => return Recalled::Excluded(exclusion),
        Ok(None) => {}
        Err(problem) => report(problem),
    }
    let (record, image) = match cache.reusable(&rendered.variant, rendered.hash) {
        Ok(Some(found)) => found,
        Ok(None) => return Recalled::Nothing,
        Err(problem) => {
            report(problem);
            return Recalled::Nothing;
        }
    };
    if !toolshop.would_make(&image.header.compiler) {
        return Recalled::Nothing;
    }
    let TuningRecord {
        proof,
        provenance,
        workload: timed,
        ..
    } = &record;
    if judge.accepts(provenance) && *timed == workload && proof.findings == 0 {
        return Recalled::Kernel(Kernel {
            header: image.header,
            record,
        });
    }
    let proof = judge.trusts(proof).then(|| proof.clone());
    Recalled::Compiled(image, proof)
}
