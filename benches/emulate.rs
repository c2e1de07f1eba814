//! How fast the emulator runs a tuned decode: Llama-3-8B, batch 4 x 4,096 tokens, merge included. The rate criterion
//! prints is warp instructions (of PTX) a second. Targets on one core: 25 M/s functional with counters, 15 M/s under
//! every check; two cores 1.7 times one.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pagesmith_autotune::Tensors;
use pagesmith_codegen::{Compiler, Provisioning, Search, forge, provision};
use pagesmith_emulator::Options;
use pagesmith_runtime::device::emulated::{EmulatedOptions, Findings};
use pagesmith_runtime::{Device, Emulated, Kernels};
use pagesmith_spec::{Arch, Engine, Gpu, KvDtype, ModelShape, Settings, Tuning, Variant, Workload};
use std::error::Error;

const WORKLOAD: Workload = Workload {
    batch: 4,
    tokens: 4096,
    kv_heads: 8,
};

fn variant(kv: KvDtype) -> Result<Variant, Box<dyn Error>> {
    let settings = Settings {
        kv_dtypes: vec![kv],
        ..Settings::default()
    };
    let spec = settings
        .kernels(&ModelShape::by_name("llama-3-8b")?)?
        .remove(0);
    let tuning = Tuning {
        engine: Engine::Mma,
        warps: 8,
        tile_tokens: 16,
        stages: 2,
        head_tile: 8,
        ctas_per_sm: 1,
    };
    Ok(Variant::new(spec, tuning)?)
}

fn bench(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {})?;
    let compiler = Compiler::new(toolchain)?;
    for kv in [KvDtype::Bf16, KvDtype::Fp8E4M3] {
        let variant = variant(kv)?;
        let image = forge(&variant, Arch::SM_80, &compiler)?;
        let mut group = criterion.benchmark_group(format!("decode {kv}"));
        group.sample_size(10);
        for (name, options, threads) in [
            ("functional, 1 thread", Options::functional(), 1),
            ("functional, 2 threads", Options::functional(), 2),
            ("all checks, 1 thread", Options::default(), 1),
            ("all checks, 2 threads", Options::default(), 2),
        ] {
            let device = Emulated::with_options(
                Gpu::by_name("a100-sxm4-80gb")?,
                EmulatedOptions {
                    launch: Options {
                        threads: Some(threads),
                        ..options
                    },
                    findings: Findings::Collect,
                },
            );
            let stream = device.stream();
            let tensors = Tensors::new(&device, variant.spec(), WORKLOAD)?;
            let mut kernels = Kernels::new(device);
            kernels.load(&variant, &image)?;
            let mut plan = tensors.plan(&mut kernels, &stream)?;
            tensors.decode(&mut kernels, &mut plan, &stream)?;
            let reports = kernels.device().take_reports();
            let executed = reports
                .iter()
                .map(|launch| launch.report.instruction_executions.iter().sum::<u64>())
                .sum();
            group.throughput(Throughput::Elements(executed));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    let result = tensors.decode(&mut kernels, &mut plan, &stream);
                    kernels.device().take_reports();
                    result
                });
            });
        }
        group.finish();
    }
    Ok(())
}

fn benches(criterion: &mut Criterion) {
    bench(criterion).unwrap_or_else(|error| panic!("{error}"));
}

criterion_group!(emulate_benches, benches);
criterion_main!(emulate_benches);
