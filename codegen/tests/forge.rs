//! The embedded templates, rendered and compiled.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::compiler;
use pagesmith_codegen::{Templates, forge, render};
use pagesmith_spec::{
    Arch, Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm, Tuning,
    Variant,
};
use std::collections::BTreeSet;

const SPEC: KernelSpec = KernelSpec {
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
const MMA: Tuning = Tuning {
    engine: Engine::Mma,
    warps: 4,
    tile_tokens: 16,
    stages: 2,
    head_tile: 8,
    ctas_per_sm: 1,
};
const SIMT: Tuning = Tuning {
    engine: Engine::Simt,
    stages: 1,
    head_tile: 4,
    ..MMA
};

fn variant(spec: KernelSpec, tuning: Tuning) -> Variant {
    Variant::new(spec, tuning).unwrap()
}

/// A variant for each field of spec and tuning that differs from the first one in that field alone.
fn neighbours() -> Vec<Variant> {
    let mut variants = vec![variant(SPEC, MMA), variant(SPEC, SIMT)];
    for spec in [
        KernelSpec {
            head_dim: 64,
            ..SPEC
        },
        KernelSpec { group: 8, ..SPEC },
        KernelSpec {
            block_size: 32,
            ..SPEC
        },
        KernelSpec {
            query: QueryDtype::F16,
            kv: KvDtype::F16,
            ..SPEC
        },
        KernelSpec {
            kv: KvDtype::Fp8E4M3,
            ..SPEC
        },
        KernelSpec {
            table: TableForm::Csr,
            ..SPEC
        },
        KernelSpec {
            lse: Lse::Written,
            ..SPEC
        },
    ] {
        variants.push(variant(spec, MMA));
    }
    for tuning in [
        Tuning { warps: 8, ..MMA },
        Tuning {
            tile_tokens: 32,
            ..MMA
        },
        Tuning { stages: 3, ..MMA },
        Tuning {
            head_tile: 16,
            ..MMA
        },
        Tuning {
            ctas_per_sm: 2,
            ..MMA
        },
    ] {
        variants.push(variant(SPEC, tuning));
    }
    variants
}

#[test]
fn every_field_of_spec_and_tuning_changes_the_source() {
    let variants = neighbours();
    let texts: BTreeSet<String> = variants
        .iter()
        .map(|variant| render(variant).unwrap().text)
        .collect();
    assert_eq!(texts.len(), variants.len());
}

#[test]
fn a_variant_renders_to_the_same_source_in_every_template_set() {
    let again = Templates::new(pagesmith_kernels::TEMPLATES, pagesmith_kernels::HEADERS).unwrap();
    for variant in neighbours() {
        assert_eq!(render(&variant).unwrap(), again.render(&variant).unwrap());
    }
}

#[test]
fn both_engines_compile_to_both_entries_without_a_warning() {
    let compiler = compiler();
    for tuning in [MMA, SIMT] {
        for kv in [KvDtype::Bf16, KvDtype::Fp8E4M3] {
            let source = render(&variant(KernelSpec { kv, ..SPEC }, tuning)).unwrap();
            let compiled = compiler
                .compile(&source, Arch::SM_80)
                .unwrap_or_else(|error| panic!("{error}"));
            let names: Vec<&str> = compiled
                .image
                .header
                .entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect();
            assert_eq!(names, ["pagesmith_decode", "pagesmith_merge"]);
            assert!(!compiled.log.contains("warning"), "{}", compiled.log);
        }
    }
}

#[test]
fn to_forge_is_to_render_and_compile() {
    let compiler = compiler();
    let variant = variant(SPEC, SIMT);
    let image = forge(&variant, Arch::SM_80, &compiler).unwrap();
    let source = render(&variant).unwrap();
    assert_eq!(image, compiler.compile(&source, Arch::SM_80).unwrap().image);
    assert_eq!(image.header.source, source.hash(Arch::SM_80));
}

#[test]
fn an_error_in_a_header_is_shown_at_its_line_of_that_file() {
    let (name, text) = pagesmith_kernels::HEADERS
        .iter()
        .find(|(name, _)| name.ends_with("merge.cuh"))
        .unwrap();
    let lines = text.lines().count();
    let broken = format!("{text}int broken = undeclared;\n");
    let headers: Vec<(&str, &str)> = pagesmith_kernels::HEADERS
        .iter()
        .map(|header| {
            if header.0 == *name {
                (*name, broken.as_str())
            } else {
                *header
            }
        })
        .collect();
    let templates = Templates::new(pagesmith_kernels::TEMPLATES, &headers).unwrap();
    let source = templates.render(&variant(SPEC, SIMT)).unwrap();
    let error = compiler()
        .compile(&source, Arch::SM_80)
        .unwrap_err()
        .to_string();
    let expected = format!("/pagesmith/device/merge.cuh:{}: ", lines + 1);
    assert!(
        error.contains(&expected) && error.contains("int broken = undeclared;"),
        "{error}"
    );
}

#[test]
fn an_error_in_a_template_is_shown_at_its_line_of_that_file() {
    let (name, text) = pagesmith_kernels::TEMPLATES
        .iter()
        .find(|(name, _)| *name == "decode.cu.tera")
        .unwrap();
    // Below a block that drops a line: the rendered line is not where the template's line is.
    let broken = format!(
        "{text}@[ if not lse ]@\n@[ else ]@\nint dropped;\n@[ endif ]@\nint x = @{{ warps }}@ + undeclared;\n"
    );
    let templates = Templates::new(&[(*name, &broken)], pagesmith_kernels::HEADERS).unwrap();
    let source = templates.render(&variant(SPEC, SIMT)).unwrap();
    let error = compiler()
        .compile(&source, Arch::SM_80)
        .unwrap_err()
        .to_string();
    let expected = format!(
        "/pagesmith/templates/decode.cu.tera:{}: ",
        text.lines().count() + 5
    );
    assert!(
        error.contains(&expected) && error.contains("int x = 4 + undeclared;"),
        "{error}"
    );
}
