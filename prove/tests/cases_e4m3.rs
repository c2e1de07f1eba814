//! fp8 e4m3 through the kernels: every code decodes rightly, NaN stays NaN, and both scales reach every path.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{forged, gpu, spec};
use pagesmith_prove::case::{Case, CaseSpec};
use pagesmith_prove::reference::attend;
use pagesmith_prove::{Seed, prove_cases};
use pagesmith_spec::{Engine, KernelSpec, KvDtype, QueryDtype, e4m3};

fn e4m3_spec(query: QueryDtype) -> KernelSpec {
    spec(query, KvDtype::Fp8E4M3)
}

/// 256 sequences of one token.
fn one_token_each(spec: &KernelSpec) -> Case {
    Case::generate(
        spec,
        &CaseSpec::of_lengths("codes", vec![1; 256]),
        Seed::fresh(),
    )
}

fn passes(spec: &KernelSpec, engine: Engine, case: Case) {
    let (variant, image) = forged(spec, engine);
    let seed = case.seed;
    let verdict = prove_cases(&variant, &image, &gpu(), seed, &[case]).unwrap();
    assert!(verdict.passed(), "{engine}: {verdict:#?}");
}

#[test]
fn every_code_of_a_value_decodes_rightly_in_every_dim_and_nan_stays_nan() {
    for query in QueryDtype::ALL {
        for engine in Engine::ALL {
            let spec = e4m3_spec(query);
            let mut case = one_token_each(&spec);
            case.v_scale = 0.125;
            for sequence in 0..256 {
                let at = case.value_offset(sequence, 0, 0);
                for dim in 0..spec.head_dim as usize {
                    case.v[at + dim] = (sequence + dim) as u8;
                }
            }
            // One token has all the weight: the output is its value.
            let right = attend(&case);
            for code in 0..=255u8 {
                let out = right.out[usize::from(code) * 4 * 128];
                let value = f64::from(e4m3::decode(code)) * 0.125;
                assert!(
                    out == value || (out.is_nan() && value.is_nan()),
                    "{code:#x}"
                );
            }
            passes(&spec, engine, case);
        }
    }
}

#[test]
fn every_code_of_a_key_decodes_rightly_in_every_dim_and_nan_stays_nan() {
    for query in QueryDtype::ALL {
        for engine in Engine::ALL {
            let spec = e4m3_spec(query);
            let mut case = one_token_each(&spec);
            case.k_scale = 1.5;
            // The query selects one dim, so that the log-sum-exp is that element.
            case.q.fill(0);
            for code in 0..=255u8 {
                let sequence = usize::from(code);
                let dim = sequence * 37 % 128;
                let at = case.key_offset(sequence, 0, 0);
                case.k[at..at + 128].fill(0);
                case.k[at + dim] = code;
                for head in 0..4 {
                    let at = sequence * case.q_strides.token + head * case.q_strides.head + dim;
                    let one = pagesmith_prove::case::element::encode(query.as_kv(), 1.0);
                    case.q[2 * at..2 * at + 2].copy_from_slice(&one.to_le_bytes());
                }
            }
            let right = attend(&case);
            assert_eq!(right.lse.iter().filter(|lse| lse.is_nan()).count(), 2 * 4);
            passes(&spec, engine, case);
        }
    }
}

#[test]
fn a_live_nan_reaches_exactly_the_outputs_that_depend_on_it() {
    let cases = [
        (QueryDtype::Bf16, KvDtype::Fp8E4M3),
        (QueryDtype::Bf16, KvDtype::Bf16),
        (QueryDtype::F16, KvDtype::F16),
    ];
    for (query, kv) in cases {
        for engine in Engine::ALL {
            for sms in [1, 64] {
                let spec = spec(query, kv);
                let three = CaseSpec {
                    sms,
                    kv_heads: 2,
                    ..CaseSpec::of_lengths("nan", vec![300, 200, 40])
                };
                let mut case = Case::generate(&spec, &three, Seed::fresh());
                let bytes = kv.bytes() as usize;
                let nan: &[u8] = if bytes == 1 { &[0xFF] } else { &[0xFF, 0xFF] };
                let at = case.value_offset(0, 123, 1) + 77 * bytes;
                case.v[at..at + bytes].copy_from_slice(nan);
                let at = case.key_offset(1, 199, 0) + 5 * bytes;
                case.k[at..at + bytes].copy_from_slice(nan);
                let right = attend(&case);
                // One dim of 4 heads, and 4 whole heads.
                assert_eq!(
                    right.out.iter().filter(|out| out.is_nan()).count(),
                    4 + 4 * 128
                );
                passes(&spec, engine, case);
            }
        }
    }
}

#[test]
fn both_scales_are_applied_whether_a_sequence_is_split_or_not() {
    for engine in Engine::ALL {
        for sms in [1, 64] {
            for (k_scale, v_scale) in [(0.5, 1.0), (1.0, 0.25), (0.03, 40.0)] {
                let spec = e4m3_spec(QueryDtype::F16);
                let one = CaseSpec {
                    sms,
                    ..CaseSpec::of_lengths("scales", vec![400])
                };
                let mut case = Case::generate(&spec, &one, Seed::fresh());
                case.scale *= case.k_scale / k_scale;
                case.k_scale = k_scale;
                case.v_scale = v_scale;
                passes(&spec, engine, case);
            }
        }
    }
}
