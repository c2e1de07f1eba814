//! The kernels that mutants are made of.

use pagesmith_spec::{
    Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, SpecError, TableForm,
    Tuning, Variant,
};

/// A kernel that is mutated: Llama-3-8B's shape, with a log-sum-exp so that its store can be lost too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MutantKernel {
    /// Tensor cores, bf16 cache.
    MmaBf16,
    /// Tensor cores, e4m3 cache.
    MmaE4m3,
    /// CUDA cores, bf16 cache.
    SimtBf16,
}

impl MutantKernel {
    /// Every kernel that is mutated.
    pub const ALL: [MutantKernel; 3] = [
        MutantKernel::MmaBf16,
        MutantKernel::MmaE4m3,
        MutantKernel::SimtBf16,
    ];

    /// The variant that is compiled.
    ///
    /// # Errors
    /// When the spec has no kernel.
    pub fn variant(self) -> Result<Variant, SpecError> {
        let (engine, kv) = match self {
            MutantKernel::MmaBf16 => (Engine::Mma, KvDtype::Bf16),
            MutantKernel::MmaE4m3 => (Engine::Mma, KvDtype::Fp8E4M3),
            MutantKernel::SimtBf16 => (Engine::Simt, KvDtype::Bf16),
        };
        let spec = KernelSpec {
            operation: Operation::Decode,
            head_dim: 128,
            group: 4,
            block_size: 16,
            query: QueryDtype::Bf16,
            kv,
            layout: KvLayout::DimContiguous,
            table: TableForm::Dense,
            lse: Lse::Written,
        };
        let (stages, head_tile) = match engine {
            Engine::Simt => (1, 4),
            Engine::Mma => (3, 8),
        };
        let tuning = Tuning {
            engine,
            warps: 4,
            tile_tokens: 16,
            stages,
            head_tile,
            ctas_per_sm: 1,
        };
        Variant::new(spec, tuning)
    }
}
