//! Forging: how long a variant takes to render, to be recognised, and to compile. Targets: render below 1 ms, compile a
//! d128 decode variant below 0.3 s.

use criterion::{Criterion, criterion_group, criterion_main};
use pagesmith_codegen::{Compiler, Provisioning, Search, Source, Templates, provision, render};
use pagesmith_spec::{
    Arch, Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm, Tuning,
    Variant,
};
use std::hint::black_box;

/// Llama-3-8B's decode.
fn variant(engine: Engine) -> Variant {
    let spec = KernelSpec {
        operation: Operation::Decode,
        head_dim: 128,
        group: 4,
        block_size: 16,
        query: QueryDtype::Bf16,
        kv: KvDtype::Bf16,
        layout: KvLayout::DimContiguous,
        table: TableForm::Dense,
        lse: Lse::Omitted,
    };
    let (stages, head_tile) = match engine {
        Engine::Simt => (1, 4),
        Engine::Mma => (2, 8),
    };
    let tuning = Tuning {
        engine,
        warps: 4,
        tile_tokens: 16,
        stages,
        head_tile,
        ctas_per_sm: 1,
    };
    Variant::new(spec, tuning).expect("d128 with blocks of 16 has a kernel")
}

fn rendered(engine: Engine) -> Source {
    render(&variant(engine)).unwrap_or_else(|error| panic!("{error}"))
}

fn benches(criterion: &mut Criterion) {
    criterion.bench_function("parse the embedded templates", |bencher| {
        bencher.iter(|| Templates::new(pagesmith_kernels::TEMPLATES, pagesmith_kernels::HEADERS));
    });
    let mma = variant(Engine::Mma);
    criterion.bench_function("render a decode variant", |bencher| {
        bencher.iter(|| render(black_box(&mma)));
    });
    let source = rendered(Engine::Mma);
    criterion.bench_function("hash its source", |bencher| {
        bencher.iter(|| black_box(&source).hash(Arch::SM_80));
    });

    let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {});
    let compiler = toolchain.map(Compiler::new);
    let Ok(Ok(compiler)) = compiler else {
        panic!("no NVRTC: {compiler:?}");
    };
    let mut group = criterion.benchmark_group("compile a d128 decode variant");
    group.sample_size(10);
    for engine in Engine::ALL {
        let source = rendered(engine);
        group.bench_function(engine.name(), |bencher| {
            bencher.iter(|| compiler.compile(&source, Arch::SM_80));
        });
    }
}

criterion_group!(render_benches, benches);
criterion_main!(render_benches);
