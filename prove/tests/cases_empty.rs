//! Nothing to attend to is a result, 0 with a log-sum-exp of -inf; nonsense is an error before any launch.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{forged, gpu, spec};
use half::bf16;
use pagesmith_prove::case::{BlockTable, Case, CaseSpec};
use pagesmith_prove::proof::{RunError, run};
use pagesmith_prove::{Seed, prove_cases};
use pagesmith_runtime::device::emulated::{EmulatedOptions, Findings};
use pagesmith_runtime::device::{Buffer, LaunchConfig};
use pagesmith_runtime::plan::BatchError;
use pagesmith_runtime::{Device, Emulated, Kernels};
use pagesmith_spec::abi::{DevicePtr, MergeItem, MergeParams};
use pagesmith_spec::{Engine, KernelSpec, KvDtype, QueryDtype, TableForm};
use zerocopy::IntoBytes;

fn bf16_spec() -> KernelSpec {
    spec(QueryDtype::Bf16, KvDtype::Bf16)
}

/// Merges two partials of one head tile, each an output value and a base-2 log-sum-exp, by the merge kernel
/// alone; gives the first output element and log-sum-exp of the first head.
fn merged(partials: [(f32, f32); 2]) -> (f32, f32) {
    let spec = bf16_spec();
    let (variant, image) = forged(&spec, Engine::Mma);
    let device = Emulated::new(gpu());
    let module = device.load(&image).unwrap();
    let stream = device.stream();
    let head_tile = variant.tuning().head_tile as usize;
    let upload = |name, bytes: &[u8]| {
        let buffer = device.alloc(name, bytes.len() as u64).unwrap();
        device.upload(buffer.region(), bytes, &stream).unwrap();
        buffer
    };
    let row = head_tile * spec.head_dim as usize;
    let slots = |part: fn((f32, f32)) -> f32, each: usize| -> Vec<f32> {
        partials
            .iter()
            .flat_map(|&partial| vec![part(partial); each])
            .collect()
    };
    let partial_out = upload("partial_out", slots(|(out, _)| out, row).as_bytes());
    let partial_lse = upload("partial_lse", slots(|(_, lse)| lse, head_tile).as_bytes());
    let item = MergeItem {
        q_token: 0,
        q_head: 0,
        slot_begin: 0,
        slot_count: 2,
    };
    let items = upload("items", item.as_bytes());
    let heads = spec.group as usize;
    let out = upload("out", &[0x7F; 2].repeat(heads * spec.head_dim as usize));
    let lse = upload("lse", &[0x7F; 4].repeat(heads));
    let start = |buffer: &<Emulated as Device>::Buffer| -> DevicePtr { buffer.region().start() };
    let params = MergeParams {
        partial_out: start(&partial_out),
        partial_lse: start(&partial_lse),
        out: start(&out),
        lse: start(&lse),
        items: start(&items),
        out_token_stride: (heads as i64) * i64::from(spec.head_dim),
        out_head_stride: i64::from(spec.head_dim),
        q_heads: spec.group,
        reserved: 0,
    };
    let config = LaunchConfig {
        ctas: 1,
        threads: 128,
        shared_bytes: 0,
    };
    // SAFETY: the entry takes `MergeParams`, and every address is of a buffer above of the length that one
    // item of two slots needs.
    unsafe {
        device
            .launch(
                &module,
                "pagesmith_merge",
                config,
                params.as_bytes(),
                &stream,
            )
            .unwrap();
    }
    let (mut value, mut sum) = ([0; 2], [0; 4]);
    device.download(out.region(), &mut value, &stream).unwrap();
    device.download(lse.region(), &mut sum, &stream).unwrap();
    (bf16::from_le_bytes(value).to_f32(), f32::from_le_bytes(sum))
}

#[test]
fn two_empty_partials_merge_to_zero_and_minus_infinity() {
    let empty = (0.0, f32::NEG_INFINITY);
    assert_eq!(merged([empty, empty]), (0.0, f32::NEG_INFINITY));
}

#[test]
fn an_empty_partial_takes_no_weight_in_a_merge() {
    let (empty, full) = ((0.0, f32::NEG_INFINITY), (3.0, -200.0));
    for partials in [[empty, full], [full, empty]] {
        let (out, lse) = merged(partials);
        assert_eq!(out, 3.0);
        assert!(
            (lse - -200.0 * std::f32::consts::LN_2).abs() < 1e-4,
            "{lse}"
        );
    }
    // Equal weights: the mean, and one bit more.
    let (out, lse) = merged([(1.0, 5.0), (2.0, 5.0)]);
    assert!((out - 1.5).abs() < 1e-2 && (lse - 6.0 * std::f32::consts::LN_2).abs() < 1e-4);
}

#[test]
fn a_sequence_of_no_tokens_gives_zero_and_minus_infinity_alone_and_among_others() {
    for engine in Engine::ALL {
        for table in TableForm::ALL {
            let spec = KernelSpec {
                table,
                ..bf16_spec()
            };
            let (variant, image) = forged(&spec, engine);
            let cases = [vec![0], vec![0, 0, 0], vec![0, 300, 0]].map(|lengths| {
                let many = CaseSpec {
                    sms: 64,
                    ..CaseSpec::of_lengths("empty", lengths)
                };
                Case::generate(&spec, &many, Seed::fresh())
            });
            let verdict = prove_cases(&variant, &image, &gpu(), cases[0].seed, &cases).unwrap();
            assert!(verdict.passed(), "{verdict:#?}");
        }
    }
}

#[test]
fn a_batch_without_sequences_launches_nothing() {
    let spec = bf16_spec();
    let (variant, image) = forged(&spec, Engine::Mma);
    let options = EmulatedOptions {
        findings: Findings::Collect,
        ..EmulatedOptions::default()
    };
    let mut kernels = Kernels::new(Emulated::with_options(gpu(), options));
    kernels.load(&variant, &image).unwrap();
    let mut launches = |lengths| {
        let case = Case::generate(&spec, &CaseSpec::of_lengths("t", lengths), Seed(1));
        run(&mut kernels, &case).unwrap();
        kernels.device().take_reports().len()
    };
    assert_eq!(launches(vec![]), 0);
    assert_eq!(launches(vec![3]), 1);
}

/// The error of a case that is broken by `change`.
fn refusal(table: TableForm, change: fn(&mut Case)) -> BatchError {
    let spec = KernelSpec {
        table,
        ..bf16_spec()
    };
    let (variant, image) = forged(&spec, Engine::Simt);
    let mut kernels = Kernels::new(Emulated::new(gpu()));
    kernels.load(&variant, &image).unwrap();
    let mut case = Case::generate(&spec, &CaseSpec::of_lengths("t", vec![20, 40]), Seed(1));
    change(&mut case);
    match run(&mut kernels, &case) {
        Err(RunError::Batch(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_length_beyond_the_table_is_refused_before_launch() {
    let error = refusal(TableForm::Dense, |case| case.lengths[1] = 1000);
    assert!(
        matches!(error, BatchError::LengthBeyondTable { sequence: 1, .. }),
        "{error}"
    );
}

#[test]
fn a_last_block_fuller_than_a_block_or_empty_is_refused_before_launch() {
    let change: [fn(&mut Case); 3] = [
        |case| last(case, 17),
        |case| last(case, 0),
        |case| last(case, -1),
    ];
    fn last(case: &mut Case, value: i32) {
        if let BlockTable::Csr { last_block_len, .. } = &mut case.table {
            last_block_len[1] = value;
        }
    }
    for change in change {
        let error = refusal(TableForm::Csr, change);
        assert!(
            matches!(error, BatchError::LastBlockLen { sequence: 1, .. }),
            "{error}"
        );
    }
}
