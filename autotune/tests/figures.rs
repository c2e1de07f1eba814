//! What the winning kernels of Llama-3-8B must reach: counts, which no machine changes.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::Autotune;
use pagesmith_autotune::Modeller;
use pagesmith_runtime::KernelCache;
use pagesmith_spec::{Engine, Gpu, KvDtype, ModelShape, Settings};

#[test]
fn the_winners_of_llama_3_8b_reach_their_counts() {
    let autotune = Autotune::new();
    let run = autotune.json(
        &[
            "run",
            "--model",
            "llama-3-8b",
            "--gpu",
            "a100-sxm4-80gb",
            "--json",
        ],
        0,
    );
    assert_eq!(run["kernels"].as_array().unwrap().len(), 2);

    let gpu = Gpu::by_name("a100-sxm4-80gb").unwrap();
    let cache = KernelCache::open(autotune.cache(), &gpu).unwrap();
    let shape = ModelShape::by_name("llama-3-8b").unwrap();
    for spec in Settings::default().kernels(&shape).unwrap() {
        // Instructions of a launch with its merge, and the part of sectors that splitting may add.
        let (instructions, split) = match spec.kv {
            KvDtype::Bf16 => (3_100_000, 0.02),
            KvDtype::Fp8E4M3 => (4_500_000, 0.03),
            KvDtype::F16 => unreachable!("not among the default dtypes"),
        };
        let winner = cache.lookup(&spec).unwrap();
        assert_eq!(winner.variant.tuning().engine, Engine::Mma, "{spec}");
        assert!(
            winner.proof.max_relative_l2 <= 3e-3,
            "{spec}: {:?}",
            winner.proof
        );
        assert_eq!(winner.proof.findings, 0, "{spec}");

        let image = cache.load_image(&winner).unwrap();
        for entry in &image.header.entries {
            assert_eq!(entry.resources.spill_bytes, 0, "{spec}: {}", entry.name);
        }
        let work = Modeller::new(&gpu, &spec, winner.workload)
            .unwrap()
            .model(&winner.variant, &image)
            .unwrap()
            .work(&spec, winner.workload);
        let minimum = work.tensor_sectors_minimum as f64;
        let sectors = work.tensor_sectors as f64 / minimum;
        assert!((1.0..=1.02).contains(&sectors), "{spec}: {sectors}");
        let splitting = work.split_sectors as f64 / minimum;
        assert!(splitting <= split, "{spec}: {splitting}");
        assert_eq!(work.bank_conflicts, 0, "{spec}");
        assert!(
            work.warp_instructions <= instructions,
            "{spec}: {}",
            work.warp_instructions
        );
        // A count that was lost would be praised above.
        assert!(
            work.warp_instructions > 500_000,
            "{spec}: {}",
            work.warp_instructions
        );
    }
}
