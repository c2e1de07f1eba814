//! From a model and a server's settings to the variants that are tried.

use crate::Effort;
use pagesmith_spec::{Exclusion, KernelSpec, SpecError, Tuning, TuningSpace, Variant};
use pagesmith_spec::{Gpu, ModelShape, Settings};
use serde::Serialize;

/// What a run tunes.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model.
    pub shape: ModelShape,
    /// The server's choices.
    pub settings: Settings,
    /// The GPU that the kernels are for.
    pub gpu: Gpu,
    /// How much of each space is tried.
    pub effort: Effort,
}

/// One spec with what is tried for it and what is not.
#[derive(Clone, Debug, Serialize)]
pub struct SpecPlan {
    /// The spec.
    pub spec: KernelSpec,
    /// What is tried, in order.
    #[serde(skip)]
    pub variants: Vec<Variant>,
    /// Legal tunings, tried or not.
    pub legal: usize,
    /// Tunings that cannot be, each with its reason.
    pub excluded: Vec<(Tuning, Exclusion)>,
}

/// The specs that `request` needs, and for each the variants that its effort tries.
///
/// # Errors
/// When the model needs a feature that no kernel has, or a spec has no kernel.
pub fn enumerate(request: &Request) -> Result<Vec<SpecPlan>, SpecError> {
    request
        .settings
        .kernels(&request.shape)?
        .into_iter()
        .map(|spec| {
            let space = TuningSpace::enumerate(&spec, request.gpu.arch);
            let variants = request
                .effort
                .select(&spec, &space)
                .into_iter()
                .map(|tuning| Variant::new(spec.clone(), tuning))
                .collect::<Result<_, _>>()?;
            Ok(SpecPlan {
                variants,
                legal: space.legal().len(),
                excluded: space.excluded().to_vec(),
                spec,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tuning_of_the_space_is_legal_or_has_a_reason() {
        let request = Request {
            shape: ModelShape::by_name("llama-3-8b").unwrap(),
            settings: Settings::default(),
            gpu: Gpu::by_name("a100-sxm4-80gb").unwrap(),
            effort: Effort::Quick,
        };
        let plans = enumerate(&request).unwrap();
        assert_eq!(plans.len(), 2);
        for plan in plans {
            let offered = Tuning::WARPS.len()
                * Tuning::TILE_TOKENS.len()
                * Tuning::CTAS_PER_SM.len()
                * (Tuning::SIMT_HEAD_TILES.len()
                    + Tuning::MMA_HEAD_TILES.len() * Tuning::STAGES.len());
            assert_eq!(plan.legal + plan.excluded.len(), offered, "{}", plan.spec);
            assert!(!plan.variants.is_empty());
        }
    }
}
