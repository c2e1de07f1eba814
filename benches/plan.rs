//! What planning a step costs the host: validation of the batch and the work list, in buffers that are reused.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pagesmith_runtime::plan::{Batch, CacheBlocks, Plan, PlanTarget};
use pagesmith_spec::{Engine, Gpu, ModelShape, Settings, Tuning, Variant};
use std::error::Error;
use std::hint::black_box;

fn bench(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let model = ModelShape::by_name("llama-3-8b")?;
    let spec = Settings::default().kernels(&model)?.remove(0);
    let tuning = Tuning {
        engine: Engine::Mma,
        warps: 4,
        tile_tokens: 16,
        stages: 2,
        head_tile: 8,
        ctas_per_sm: 2,
    };
    let target = PlanTarget::of(&Gpu::by_name("a100-sxm4-80gb")?, &tuning);
    let variant = Variant::new(spec, tuning)?;
    let mut group = criterion.benchmark_group("plan a step");
    for sequences in [1u32, 16, 64, 256, 1024] {
        // Ragged: 64 to 4,096 tokens.
        let lengths: Vec<u32> = (0..sequences)
            .map(|sequence| 64 + sequence * 2_654_435 % 4033)
            .collect();
        let row = 256;
        let table: Vec<i32> = (0..sequences as i32 * row).collect();
        let blocks = CacheBlocks {
            block_size: 16,
            count: table.len() as u32,
        };
        let mut plan = Plan::default();
        group.throughput(Throughput::Elements(sequences.into()));
        group.bench_function(BenchmarkId::from_parameter(sequences), |bencher| {
            bencher.iter(|| {
                let batch = Batch::dense(blocks, black_box(&lengths), &table, row as usize);
                let batch = batch.expect("every id is below the cache's count");
                plan.rebuild(&variant, target, model.kv_heads(), &batch)
            });
        });
    }
    group.finish();
    Ok(())
}

fn benches(criterion: &mut Criterion) {
    bench(criterion).unwrap_or_else(|error| panic!("{error}"));
}

criterion_group!(plan_benches, benches);
criterion_main!(plan_benches);
