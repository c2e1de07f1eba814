//! Memory that a kernel must not look at has no effect, and memory that it must look at is reached wherever
//! it is.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{forged, gpu, spec};
use pagesmith_prove::case::{BlockTable, Case, CaseSpec, TailEntries, Values};
use pagesmith_prove::proof::{Written, run};
use pagesmith_prove::{Seed, prove_cases};
use pagesmith_runtime::{Emulated, Kernels};
use pagesmith_spec::{Engine, KernelSpec, KvDtype, QueryDtype, TableForm};

const DTYPES: [(QueryDtype, KvDtype); 3] = [
    (QueryDtype::Bf16, KvDtype::Bf16),
    (QueryDtype::F16, KvDtype::F16),
    (QueryDtype::Bf16, KvDtype::Fp8E4M3),
];

fn ragged() -> CaseSpec {
    CaseSpec {
        kv_heads: 2,
        values: Values::Low,
        ..CaseSpec::of_lengths("ragged", vec![1, 15, 17, 100, 0, 33])
    }
}

/// What a kernel writes for each of several cases; a finding of a check is an error of the launch.
fn outputs(spec: &KernelSpec, engine: Engine, cases: &[Case]) -> Vec<Written> {
    let (variant, image) = forged(spec, engine);
    let mut kernels = Kernels::new(Emulated::new(gpu()));
    kernels.load(&variant, &image).unwrap();
    let written = cases.iter().map(|case| run(&mut kernels, case).unwrap());
    written.collect()
}

#[test]
fn what_lies_in_the_unwritten_tail_of_a_block_changes_no_bit() {
    for (query, kv) in DTYPES {
        for engine in Engine::ALL {
            let spec = spec(query, kv);
            let nan = Case::generate(&spec, &ragged(), Seed::fresh());
            // The same case with zeros where no token is.
            let mut zeros = nan.clone();
            zeros.k.fill(0);
            zeros.v.fill(0);
            let row = spec.head_dim as usize * kv.bytes() as usize;
            for (sequence, &length) in nan.lengths.iter().enumerate() {
                for token in 0..length {
                    for head in 0..nan.kv_heads {
                        let at = nan.key_offset(sequence, token, head);
                        zeros.k[at..at + row].copy_from_slice(&nan.k[at..at + row]);
                        let at = nan.value_offset(sequence, token, head);
                        zeros.v[at..at + row].copy_from_slice(&nan.v[at..at + row]);
                    }
                }
            }
            assert_ne!(nan.k, zeros.k);
            let seed = nan.seed;
            let written = outputs(&spec, engine, &[nan, zeros]);
            assert_eq!(written[0], written[1], "{spec} {engine}, seed {seed}");
        }
    }
}

#[test]
fn entries_past_the_end_of_a_block_table_change_no_bit() {
    for form in TableForm::ALL {
        for engine in Engine::ALL {
            let spec = KernelSpec {
                table: form,
                ..spec(QueryDtype::Bf16, KvDtype::Bf16)
            };
            let hostile = Case::generate(&spec, &ragged(), Seed::fresh());
            let mut tidy = hostile.clone();
            let mut changed = 0;
            let entries = match &mut tidy.table {
                BlockTable::Dense { entries, .. } => entries,
                BlockTable::Csr { indices, .. } => indices,
            };
            for entry in entries.iter_mut() {
                if !(0..hostile.num_blocks() as i32).contains(entry) {
                    *entry = 0;
                    changed += 1;
                }
            }
            assert!(changed > 1);
            let seed = hostile.seed;
            let written = outputs(&spec, engine, &[hostile, tidy]);
            assert_eq!(written[0], written[1], "{spec} {engine}, seed {seed}");
        }
    }
}

#[test]
fn blocks_beyond_32_bits_of_elements_and_of_bytes_are_reached() {
    // (first element of the lowest block in use, dtypes): beyond 2^31 and 2^32 elements.
    for (elements, (query, kv)) in [(1u64 << 31, DTYPES[0]), (1 << 32, DTYPES[2])] {
        for engine in Engine::ALL {
            let spec = spec(query, kv);
            let block = u64::from(spec.block_size * spec.head_dim);
            let far = CaseSpec {
                first_block: (elements / block) as u32,
                tail: TailEntries::Exact,
                ..CaseSpec::of_lengths("far", vec![70, 5, 200])
            };
            let case = Case::generate(&spec, &far, Seed::fresh());
            assert!(
                case.lengths.iter().zip(0..).all(|(_, sequence)| {
                    u64::from(case.block(sequence, 0)) * block >= elements
                })
            );
            let (variant, image) = forged(&spec, engine);
            let seed = case.seed;
            let verdict = prove_cases(&variant, &image, &gpu(), seed, &[case]).unwrap();
            assert!(verdict.passed(), "{verdict:#?}");
        }
    }
}
