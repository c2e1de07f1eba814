//! Variants, images and records to test with. The images hold no real kernel, but the variant they
//! stand for, which [`host::Host`] computes.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod host;

use pagesmith_runtime::cache::KernelCache;
use pagesmith_spec::image::ImageHeader;
use pagesmith_spec::record::Proof;
use pagesmith_spec::{
    Arch, ContentHash, Engine, Exclusion, Gpu, Image, ImageEntry, KernelSpec, KvDtype, KvLayout,
    Lse, Operation, Provenance, QueryDtype, Resources, TableForm, Tuning, TuningRecord, Variant,
    Workload, abi,
};

pub(crate) fn a100() -> Gpu {
    Gpu::by_name("a100-sxm4-80gb").expect("built in")
}

pub(crate) fn spec() -> KernelSpec {
    KernelSpec {
        operation: Operation::Decode,
        head_dim: 128,
        group: 4,
        block_size: 16,
        query: QueryDtype::Bf16,
        kv: KvDtype::Bf16,
        layout: KvLayout::DimContiguous,
        table: TableForm::Dense,
        lse: Lse::Omitted,
    }
}

pub(crate) fn tuning() -> Tuning {
    Tuning {
        engine: Engine::Mma,
        warps: 4,
        tile_tokens: 16,
        stages: 2,
        head_tile: 8,
        ctas_per_sm: 2,
    }
}

/// Three variants of [`spec`].
pub(crate) fn variants() -> [Variant; 3] {
    [2, 3, 4].map(|stages| {
        let tuning = Tuning {
            stages,
            ctas_per_sm: 1,
            ..tuning()
        };
        Variant::new(spec(), tuning).expect("legal")
    })
}

pub(crate) fn image(variant: &Variant) -> Image {
    let entry = |name: &str| ImageEntry {
        name: name.to_owned(),
        resources: Resources {
            registers: 96,
            ..Resources::default()
        },
    };
    Image {
        header: ImageHeader {
            arch: Arch::SM_80,
            entries: vec![entry("pagesmith_decode"), entry("pagesmith_merge")],
            abi: abi::hash(),
            source: ContentHash::of("test", &[variant.id().as_bytes()]),
            variant: Some(variant.hash()),
            compiler: String::from("none"),
        },
        ptx: serde_json::to_string(variant).expect("serialises"),
        cubin: variant.id().into_bytes(),
    }
}

pub(crate) fn modelled(gpu: &str) -> Provenance {
    Provenance::Modelled {
        gpu: gpu.to_owned(),
        model_version: String::from("test"),
    }
}

pub(crate) fn measured() -> Provenance {
    Provenance::Measured {
        gpu: a100().name,
        driver: String::from("580.65.06"),
        sm_clock_mhz: None,
    }
}

pub(crate) fn record(variant: &Variant, image: &Image, time_us: f64) -> TuningRecord {
    TuningRecord {
        id: variant.id(),
        variant: variant.clone(),
        image: image.hash(),
        workload: Workload {
            batch: 4,
            tokens: 4096,
            kv_heads: 8,
        },
        provenance: modelled(&a100().name),
        time_us,
        roofline_fraction: 0.1 + 0.2,
        proof: Proof {
            device: String::from("emulated"),
            cases: 12,
            findings: 0,
            max_relative_l2: 1.7e-3,
        },
    }
}

pub(crate) fn put(cache: &KernelCache, variant: &Variant, time_us: f64) -> TuningRecord {
    let image = image(variant);
    let record = record(variant, &image, time_us);
    cache.put(&image, &record).expect("kept");
    record
}

pub(crate) fn exclusion() -> Exclusion {
    Exclusion::Spills { bytes: 16 }
}
