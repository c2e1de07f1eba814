//! What the tests share: the compiler of this machine, and variants by a few words.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

use pagesmith_codegen::{Compiler, Provisioning, Search, forge, provision};
use pagesmith_prove::matrix::default_tuning;
use pagesmith_spec::{
    Arch, Engine, Gpu, Image, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm,
    Variant,
};
use std::sync::OnceLock;

/// The compiler of this machine, installed as `autotune` would install it. A machine without one
/// fails: nothing would be tested.
pub(crate) fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {});
        let toolchain = toolchain.unwrap_or_else(|error| {
            panic!("these tests compile kernels and need NVRTC; run `autotune doctor`: {error}")
        });
        Compiler::new(toolchain).unwrap_or_else(|error| panic!("{error}"))
    })
}

pub(crate) fn gpu() -> Gpu {
    Gpu::by_name("a100-sxm4-80gb").unwrap()
}

/// d128, group 4, blocks of 16, dense table, LSE written.
pub(crate) fn spec(query: QueryDtype, kv: KvDtype) -> KernelSpec {
    KernelSpec {
        operation: Operation::Decode,
        head_dim: 128,
        group: 4,
        block_size: 16,
        query,
        kv,
        layout: KvLayout::DimContiguous,
        table: TableForm::Dense,
        lse: Lse::Written,
    }
}

/// The default variant of a spec with an engine, compiled.
pub(crate) fn forged(spec: &KernelSpec, engine: Engine) -> (Variant, Image) {
    let tuning = default_tuning(spec, engine, Arch::SM_80)
        .unwrap_or_else(|| panic!("{spec}: no legal {engine} tuning"));
    let variant = Variant::new(spec.clone(), tuning).unwrap();
    let image = forge(&variant, Arch::SM_80, compiler()).unwrap_or_else(|error| panic!("{error}"));
    (variant, image)
}
