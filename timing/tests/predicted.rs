//! Properties that any honest prediction has, and the bands that published figures give.

use pagesmith_spec::Gpu;
use pagesmith_spec::gpu::{Bytes, Footprint};
use pagesmith_timing::model::Pipe;
use pagesmith_timing::sass::Class;
use pagesmith_timing::{Bound, LaunchProfile, TimingError, predict};
use proptest::prelude::*;

/// KV bytes of one layer of Llama-3-8B, 4 sequences of 4,096 tokens in 16 bits.
const KV_BYTES: u64 = 4 * 4096 * 8 * 128 * 2 * 2;

fn a100() -> Gpu {
    Gpu::by_name("a100-sxm4-80gb").expect("a built-in GPU")
}

/// Llama-3-8B decode as a good split-KV kernel runs it: one wave, four stages of copies.
fn decode() -> LaunchProfile {
    LaunchProfile {
        name: "decode".to_owned(),
        footprint: Footprint {
            registers: 128,
            shared_bytes: 66 * 1024,
            threads: 128,
        },
        cta_weights: vec![1.0; 216],
        instructions: [
            (Class::Integer, 700_000),
            (Class::Fma, 500_000),
            (Class::Special, 70_000),
            (Class::Tensor, 131_072),
            (Class::LoadMatrix, 131_072),
            (Class::CopyAsync, 131_072),
            (Class::Control, 100_000),
        ]
        .into_iter()
        .collect(),
        dram_bytes: Bytes(KV_BYTES),
        l2_bytes: Bytes(KV_BYTES * 102 / 100),
        shared_wavefronts: 2 * KV_BYTES / 128,
        cta_bytes_in_flight: Bytes(48 * 1024),
        dependent_loads: 3,
    }
}

fn seconds(gpu: &Gpu, launch: &LaunchProfile) -> f64 {
    predict(gpu, std::slice::from_ref(launch))
        .expect("a possible launch")
        .seconds
}

#[test]
fn llama_decode_lands_between_the_roofline_and_twice_the_roofline() {
    let gpu = a100();
    let roofline = gpu.memory.peak_bytes_per_s.seconds(Bytes(KV_BYTES));
    let prediction = predict(&gpu, &[decode()]).unwrap();
    assert!(prediction.seconds > roofline, "{prediction:?}");
    assert!(prediction.seconds < 2.0 * roofline, "{prediction:?}");
    assert_eq!(prediction.bound_by, Bound::Dram, "{prediction:?}");
    assert_eq!(prediction.provenance().kind(), "modelled");
    assert_eq!(prediction.provenance().gpu(), "a100-sxm4-80gb");
}

#[test]
fn the_parts_of_a_launch_add_up_to_its_time() {
    let mut launch = decode();
    launch.cta_weights = (0..500).map(|i| f64::from(1 + i % 7)).collect();
    let prediction = predict(&a100(), &[launch]).unwrap();
    let parts = &prediction.launches[0].breakdown;
    let sum = parts.balanced + parts.startup + parts.tail + parts.launch;
    assert!(
        (sum / prediction.seconds - 1.0).abs() < 1e-9,
        "{prediction:?}"
    );
}

#[test]
fn launches_in_sequence_take_the_sum_of_their_times() {
    let gpu = a100();
    let merge = LaunchProfile {
        name: "merge".to_owned(),
        dram_bytes: Bytes(0),
        cta_weights: vec![1.0; 128],
        ..decode()
    };
    let both = predict(&gpu, &[decode(), merge.clone()]).unwrap();
    let sum = seconds(&gpu, &decode()) + seconds(&gpu, &merge);
    assert!((both.seconds / sum - 1.0).abs() < 1e-12);
    assert_eq!(both.launches.len(), 2);
}

#[test]
fn half_the_multiprocessors_take_longer_than_all() {
    let gpu = a100();
    let at = |ctas| LaunchProfile {
        cta_weights: vec![1.0; ctas],
        cta_bytes_in_flight: Bytes(8 * 1024),
        ..decode()
    };
    assert!(seconds(&gpu, &at(54)) > 1.5 * seconds(&gpu, &at(216)));
    // 54 CTAs of 8 KiB in 570 cycles: 1.1 TB/s.
    let prediction = predict(&gpu, &[at(54)]).unwrap();
    assert_eq!(prediction.bound_by, Bound::InFlight);
}

#[test]
fn a_second_wave_of_few_ctas_costs_nearly_a_whole_wave() {
    let gpu = a100();
    let compute = |ctas: usize| {
        let mut launch = decode();
        launch.dram_bytes = Bytes(0);
        launch.l2_bytes = Bytes(0);
        launch.footprint.shared_bytes = 120 * 1024;
        launch.cta_weights = vec![1.0; ctas];
        // The same work for each CTA, so that the totals grow with the grid.
        launch.instructions = [(Class::Fma, 40_000 * ctas as u64)].into_iter().collect();
        launch.shared_wavefronts = 0;
        launch.dependent_loads = 0;
        seconds(&gpu, &launch) - 1.5e-6
    };
    let (one, more, two) = (compute(108), compute(109), compute(216));
    assert!((more / one - 2.0).abs() < 1e-6, "{one} {more}");
    assert!((two / one - 2.0).abs() < 1e-6, "{one} {two}");
}

#[test]
fn one_long_cta_sets_the_time_of_a_ragged_launch() {
    let gpu = a100();
    let mut ragged = decode();
    ragged.cta_weights = vec![1.0; 215];
    ragged.cta_weights.push(60.0);
    let prediction = predict(&gpu, &[ragged]).unwrap();
    assert!(
        prediction.seconds > 2.0 * seconds(&gpu, &decode()),
        "{prediction:?}"
    );
    assert!(prediction.launches[0].breakdown.tail > 0.5 * prediction.seconds);
    assert_eq!(prediction.bound_by, Bound::Overhead);
}

#[test]
fn fewer_bytes_in_flight_lower_the_bandwidth_as_littles_law_says() {
    let gpu = a100();
    let at = |bytes: u64| {
        let mut launch = decode();
        launch.cta_weights = vec![1.0; 216];
        launch.cta_bytes_in_flight = Bytes(bytes);
        seconds(&gpu, &launch)
    };
    // 1 KiB a CTA, 216 CTAs, 570 cycles: 0.547 TB/s.
    let starved = at(1024);
    let little = KV_BYTES as f64 / (216.0 * 1024.0 / (570.0 / 1.41e9));
    assert!(
        starved > little && starved < 1.15 * little,
        "{starved} {little}"
    );
    assert!(at(64 * 1024) < at(8 * 1024));
    assert!(at(8 * 1024) < at(2 * 1024));
}

#[test]
fn conflicts_and_instructions_bound_a_kernel_that_has_too_many_of_them() {
    let gpu = a100();
    let mut conflicts = decode();
    conflicts.shared_wavefronts *= 16;
    let bound = predict(&gpu, &[conflicts]).unwrap().bound_by;
    assert_eq!(bound, Bound::Pipe(Pipe::Shared));

    let mut wasteful = decode();
    wasteful.instructions.add(Class::Integer, 142_000_000);
    let bound = predict(&gpu, &[wasteful]).unwrap().bound_by;
    assert_eq!(bound, Bound::Pipe(Pipe::Integer));
}

#[test]
fn impossible_launches_are_named_by_field() {
    let gpu = a100();
    let field = |change: fn(&mut LaunchProfile)| {
        let mut launch = decode();
        change(&mut launch);
        match predict(&gpu, &[launch]) {
            Err(TimingError::Profile { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(field(|l| l.cta_weights.clear()), "cta_weights.len");
    assert_eq!(field(|l| l.cta_weights[3] = f64::NAN), "cta_weights");
    assert_eq!(field(|l| l.cta_weights[3] = -1.0), "cta_weights");
    assert_eq!(field(|l| l.cta_weights.fill(f64::MAX)), "cta_weights.sum");
    assert_eq!(field(|l| l.footprint.shared_bytes = 1 << 20), "footprint");
    assert_eq!(
        field(|l| l.cta_bytes_in_flight = Bytes(0)),
        "cta_bytes_in_flight"
    );
}

#[test]
fn a_prediction_serialises_with_its_model_and_its_limits() {
    let prediction = predict(&a100(), &[decode()]).unwrap();
    let json = serde_json::to_value(&prediction).unwrap();
    assert_eq!(json["model_version"], "roofline-1");
    assert_eq!(json["bound_by"]["limit"], "dram");
    assert_eq!(json["launches"][0]["name"], "decode");
}

/// Launches of any balance and mix.
fn any_launch() -> impl Strategy<Value = LaunchProfile> {
    let weights = prop::collection::vec(1.0..100.0f64, 1..600);
    let shape = (weights, 16u32..=255, 0u32..100 * 1024, 1u32..=8, 0u32..5);
    let work = (
        0u64..1 << 28,
        1u64..1 << 17,
        0u64..20_000_000,
        0u64..20_000_000,
        0u64..2_000_000,
    );
    (shape, work).prop_map(|(shape, work)| {
        let (cta_weights, registers, shared_bytes, warps, dependent_loads) = shape;
        let (dram, in_flight, integer, fma, tensor) = work;
        LaunchProfile {
            name: "any".to_owned(),
            footprint: Footprint {
                registers,
                shared_bytes,
                threads: warps * 32,
            },
            cta_weights,
            instructions: [
                (Class::Integer, integer),
                (Class::Fma, fma),
                (Class::Tensor, tensor),
            ]
            .into_iter()
            .collect(),
            dram_bytes: Bytes(dram),
            l2_bytes: Bytes(dram),
            shared_wavefronts: dram / 128,
            cta_bytes_in_flight: Bytes(in_flight),
            dependent_loads,
        }
    })
}

/// For the rounding of sums that differ in order.
const ROUNDING: f64 = 1.0 - 1e-9;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn more_work_is_never_faster(launch in any_launch(), extra in 1u64..1 << 27) {
        let gpu = a100();
        let before = seconds(&gpu, &launch);
        let mut bytes = launch.clone();
        bytes.dram_bytes.0 += extra;
        prop_assert!(seconds(&gpu, &bytes) >= ROUNDING * before);
        let mut sectors = launch.clone();
        sectors.l2_bytes.0 += extra;
        prop_assert!(seconds(&gpu, &sectors) >= ROUNDING * before);
        let mut instructions = launch.clone();
        instructions.instructions.add(Class::Integer, extra);
        prop_assert!(seconds(&gpu, &instructions) >= ROUNDING * before);
        let mut wavefronts = launch.clone();
        wavefronts.shared_wavefronts += extra;
        prop_assert!(seconds(&gpu, &wavefronts) >= ROUNDING * before);
    }

    #[test]
    fn a_faster_memory_is_never_slower(launch in any_launch(), factor in 1.0..4.0f64) {
        let gpu = a100();
        let mut faster = gpu.clone();
        faster.memory.achievable_bytes_per_s.0 *= factor;
        faster.memory.latency_cycles.0 /= factor;
        prop_assert!(ROUNDING * seconds(&faster, &launch) <= seconds(&gpu, &launch));
    }

    #[test]
    fn no_launch_beats_its_largest_limit(launch in any_launch()) {
        let prediction = predict(&a100(), &[launch]).unwrap();
        let parts = &prediction.launches[0].breakdown;
        let pipes = parts.pipes.iter().map(|&(_, seconds)| seconds);
        let limit = pipes.chain([parts.dram, parts.l2, parts.in_flight]).fold(0.0, f64::max);
        prop_assert!(prediction.seconds.is_finite());
        prop_assert!(prediction.seconds >= limit * (1.0 - 1e-9));
        prop_assert!(parts.balanced >= limit * (1.0 - 1e-9));
    }

    #[test]
    fn the_unit_of_the_weights_does_not_matter(launch in any_launch(), unit in 1e-3..1e3f64) {
        let gpu = a100();
        let mut scaled = launch.clone();
        scaled.cta_weights.iter_mut().for_each(|weight| *weight *= unit);
        let (a, b) = (seconds(&gpu, &launch), seconds(&gpu, &scaled));
        prop_assert!((a / b - 1.0).abs() < 1e-2, "{} {}", a, b);
    }
}
