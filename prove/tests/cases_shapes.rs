//! Shapes on which other systems crash or are silently wrong: every head dim, dtype and group is right, or
//! refused before anything is compiled.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{forged, gpu, spec};
use pagesmith_prove::{Seed, case::Effort, prove};
use pagesmith_spec::{Engine, KernelSpec, KvDtype, QueryDtype, TuningSpace, Variant};
use rayon::prelude::*;

fn all_are_right(specs: &[(KernelSpec, Engine)]) {
    let seed = Seed::fresh();
    let failures: Vec<String> = specs
        .par_iter()
        .filter_map(|(spec, engine)| {
            let (variant, image) = forged(spec, *engine);
            let verdict = prove(&variant, &image, &gpu(), Effort::Standard, seed).unwrap();
            (!verdict.passed()).then(|| format!("{spec} {}: {verdict:#?}", variant.tuning()))
        })
        .collect();
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
}

#[test]
fn every_head_dim_is_right_with_every_dtype_and_engine() {
    let mut specs = Vec::new();
    for head_dim in KernelSpec::HEAD_DIMS {
        for query in QueryDtype::ALL {
            for kv in [query.as_kv(), KvDtype::Fp8E4M3] {
                for engine in Engine::ALL {
                    let spec = KernelSpec {
                        head_dim,
                        ..spec(query, kv)
                    };
                    specs.push((spec, engine));
                }
            }
        }
    }
    assert_eq!(specs.len(), 7 * 4 * 2);
    all_are_right(&specs);
}

#[test]
fn every_number_of_query_heads_per_kv_head_is_right_with_both_engines() {
    let mut specs = Vec::new();
    for group in [1, 2, 3, 5, 6, 7, 8, 9, 12, 16, 32] {
        for engine in Engine::ALL {
            let kv = if group % 2 == 0 {
                KvDtype::Fp8E4M3
            } else {
                KvDtype::F16
            };
            let spec = KernelSpec {
                group,
                head_dim: 64,
                ..spec(QueryDtype::F16, kv)
            };
            specs.push((spec, engine));
        }
    }
    all_are_right(&specs);
}

#[test]
fn other_head_dims_are_refused_with_the_nearest_that_work() {
    for (head_dim, near) in [(72, "64 and 80"), (136, "128 and 192"), (512, "256")] {
        let spec = KernelSpec {
            head_dim,
            ..spec(QueryDtype::Bf16, KvDtype::Bf16)
        };
        let llama = common::spec(QueryDtype::Bf16, KvDtype::Bf16);
        let tuning = TuningSpace::enumerate(&llama, gpu().arch).legal()[0];
        let error = Variant::new(spec, tuning).unwrap_err();
        assert_eq!(error.field, "head_dim");
        assert!(error.to_string().contains(near), "{error}");
    }
}
