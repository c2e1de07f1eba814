//! Compiling with a real NVRTC: what an image holds, how errors are shown, and that nothing but the source
//! decides the bytes.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::compiler;
use pagesmith_codegen::{CompileError, Compiler, Header, LoadError, Search, Source, cubin};
use pagesmith_spec::{Arch, Resources};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A source of one file that calls itself `/pagesmith/test.cu`.
fn source(body: &str, entries: &[&str], headers: &[(&str, &str)]) -> Source {
    Source {
        name: "/pagesmith/test.cu".into(),
        text: format!("#line 1 \"/pagesmith/test.cu\"\n{body}"),
        headers: headers
            .iter()
            .map(|(name, text)| {
                Arc::new(Header {
                    name: (*name).into(),
                    text: (*text).into(),
                })
            })
            .collect(),
        entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
        variant: None,
    }
}

/// Kernels that between them have shared memory, barriers, spills and a stack.
const VARIED: &str = r#"
extern "C" __global__ void __launch_bounds__(128) plain(float* o, const float* i) {
  o[threadIdx.x] = i[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(256) shared(float* o, const float* i) {
  __shared__ float s[1024];
  s[threadIdx.x] = i[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* o, const float* i, int n) {
  float a[64];
#pragma unroll
  for (int k = 0; k < 64; k++) a[k] = i[k * 1024 + threadIdx.x];
  for (int j = 0; j < n; j++) {
#pragma unroll
    for (int k = 0; k < 64; k++) a[k] = a[k] * a[(k + 7) & 63] + i[j];
  }
#pragma unroll
  for (int k = 0; k < 64; k++) o[k * 1024 + threadIdx.x] = a[k];
}
extern "C" __global__ void __launch_bounds__(128) indexed(float* o, const int* i, int n) {
  float a[40];
  for (int k = 0; k < n; k++) a[i[k]] = k;
  o[threadIdx.x] = a[i[n]];
  asm volatile("bar.sync 3, 64;");
}
"#;
const VARIED_ENTRIES: [&str; 4] = ["plain", "shared", "spilling", "indexed"];

fn varied() -> Source {
    source(VARIED, &VARIED_ENTRIES, &[])
}

/// What ptxas's log says about one kernel.
fn paragraph<'log>(log: &'log str, name: &str) -> &'log str {
    let start = log.find(&format!("entry function '{name}'")).unwrap();
    let paragraph = &log[start..];
    let end = paragraph[1..]
        .find("Compiling entry")
        .map_or(paragraph.len(), |end| end + 1);
    &paragraph[..end]
}

/// The number before `unit` in a paragraph of ptxas's log.
fn said(paragraph: &str, unit: &str) -> u32 {
    paragraph
        .split_once(unit)
        .and_then(|(before, _)| before.split_whitespace().next_back()?.parse().ok())
        .unwrap_or(0)
}

#[test]
fn resources_in_the_elf_are_those_that_ptxas_reports() {
    let compiler = compiler();
    for arch in Arch::ALL {
        let compiled = compiler.compile(&varied(), arch).unwrap();
        let kernels = cubin::kernels(&compiled.image.cubin).unwrap();
        assert_eq!(compiled.image.header.entries.len(), VARIED_ENTRIES.len());
        for name in VARIED_ENTRIES {
            let paragraph = paragraph(&compiled.log, name);
            let resources = compiled.image.entry(name).unwrap().resources;
            let spilled =
                said(paragraph, " bytes spill stores") + said(paragraph, " bytes spill loads");
            let reported = Resources {
                registers: said(paragraph, " registers"),
                spill_bytes: spilled,
                stack_bytes: said(paragraph, " bytes stack frame"),
                shared_bytes: said(paragraph, " bytes smem"),
                barriers: said(paragraph, " barriers"),
            };
            assert_eq!(resources, reported, "{name} on {arch}: {paragraph}");
            let kernel = kernels.iter().find(|kernel| kernel.name == name).unwrap();
            assert_eq!(kernel.spill_instructions > 0, spilled > 0, "{kernel:?}");
        }
        // The comparison above is worth something only where the numbers differ from nothing.
        let of = |name| compiled.image.entry(name).unwrap().resources;
        assert!(of("spilling").spill_bytes > 0);
        assert_eq!(of("shared").shared_bytes, 4096);
        assert_eq!(of("indexed").barriers, 4);
        assert!(of("indexed").stack_bytes >= 160);
    }
}

#[test]
fn an_image_names_its_compiler_its_abi_and_its_source() {
    let compiler = compiler();
    let image = compiler.compile(&varied(), Arch::SM_80).unwrap().image;
    assert!(image.ptx.contains(".target sm_80"));
    assert!(image.ptx.contains(".visible .entry plain"));
    assert!(image.cubin.starts_with(b"\x7fELF"));
    let release = format!("nvrtc {}.", compiler.version());
    assert!(
        image.header.compiler.starts_with(&release),
        "{}",
        image.header.compiler
    );
    assert_eq!(image.header.abi, pagesmith_spec::abi::hash());
    assert_eq!(image.header.source, varied().hash(Arch::SM_80));
}

/// The hash of the image that another process compiles in `folder`, with `vars` in its environment.
fn hash_of_another_process(folder: &Path, vars: &[(&str, &Path)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "compile_for_another_process",
            "--ignored",
            "--nocapture",
        ])
        .current_dir(folder)
        .envs(vars.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = text.lines().find_map(|line| line.split_once("image="));
    hash.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .1
        .to_owned()
}

#[test]
fn two_working_directories_give_the_same_bytes() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let hashes = folders.map(|folder| hash_of_another_process(folder.path(), &[]));
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
#[cfg(target_os = "linux")]
fn another_library_on_the_loaders_path_does_not_win_over_the_chosen_one() {
    let chosen = compiler().toolchain().clone();
    let folder = tempfile::tempdir().unwrap();
    // A library that loads and has none of the functions: by bare name, this is what the loader finds.
    for name in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"] {
        std::os::unix::fs::symlink(&chosen.builtins, folder.path().join(name)).unwrap();
    }
    let vars = [
        ("PAGESMITH_NVRTC", chosen.library.as_path()),
        ("LD_LIBRARY_PATH", folder.path()),
    ];
    assert_eq!(
        hash_of_another_process(folder.path(), &vars),
        hash_of_another_process(folder.path(), &vars[..1])
    );
}

/// Not a test of its own: prints the hash of the PTX and CUBIN that this process gives.
#[test]
#[ignore = "a process of its own, started by other tests"]
fn compile_for_another_process() {
    let header = "#line 1 \"/pagesmith/device/twice.cuh\"\n#pragma once\nfloat twice(float x) { return 2.f * x; }\n";
    let body = "#include \"pagesmith/twice.cuh\"\nextern \"C\" __global__ void k(float* o) { o[0] = twice(o[1]); }\n";
    let source = source(body, &["k"], &[("pagesmith/twice.cuh", header)]);
    let image = compiler().compile(&source, Arch::SM_80).unwrap().image;
    println!("\nimage={}", image.hash());
}

#[test]
fn a_source_without_an_absolute_line_directive_is_refused() {
    let compiler = compiler();
    let mut relative = varied();
    relative.text = VARIED.into();
    let mut header = source("", &[], &[("h.cuh", "#line 1 \"h.cuh\"\n")]);
    for (source, culprit) in [(&relative, "/pagesmith/test.cu"), (&header, "h.cuh")] {
        match compiler.compile(source, Arch::SM_80) {
            Err(CompileError::NoLineDirective { name }) => assert_eq!(name, culprit),
            other => panic!("{other:?}"),
        }
    }
    header.headers = vec![];
    assert!(compiler.compile(&header, Arch::SM_80).is_ok());
}

#[test]
fn an_error_is_shown_with_the_line_of_the_template_or_header_it_is_in() {
    let header =
        "#line 1 \"/pagesmith/device/tile.cuh\"\n#pragma once\nint rows() { return missing; }\n";
    let body = "#include \"pagesmith/tile.cuh\"\nextern \"C\" __global__ void k(int* o) {\n  o[0] = rows() + absent;\n}\n";
    let source = source(body, &["k"], &[("pagesmith/tile.cuh", header)]);
    let error = compiler().compile(&source, Arch::SM_80).unwrap_err();
    let text = error.to_string();
    for expected in [
        "/pagesmith/device/tile.cuh:2: identifier \"missing\" is undefined\n    2 | int rows() { return missing; }",
        "/pagesmith/test.cu:3: identifier \"absent\" is undefined\n    3 |   o[0] = rows() + absent;",
        "sm_80",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_missing_header_is_an_error_at_its_include() {
    let source = source("#include \"pagesmith/none.cuh\"\n", &[], &[]);
    let error = compiler().compile(&source, Arch::SM_80).unwrap_err();
    assert!(
        error.to_string().contains("/pagesmith/test.cu:1: "),
        "{error}"
    );
}

#[test]
fn an_assembler_error_is_shown_with_what_ptxas_said() {
    let body = "extern \"C\" __global__ void k() { asm volatile(\"frobnicate;\"); }\n";
    let error = compiler()
        .compile(&source(body, &["k"], &[]), Arch::SM_80)
        .unwrap_err();
    assert!(error.to_string().contains("frobnicate"), "{error}");
}

#[test]
fn a_promised_kernel_that_is_missing_is_named() {
    let body = "extern \"C\" __global__ void other() {}\n";
    let error = compiler()
        .compile(&source(body, &["k"], &[]), Arch::SM_80)
        .unwrap_err();
    match &error {
        CompileError::NoEntry { entry, defined, .. } => {
            assert_eq!(
                (entry.as_str(), defined.as_slice()),
                ("k", &["other".to_owned()][..])
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_that_share_a_compiler_get_their_own_images() {
    let compiler = compiler();
    let compile = |value: u32| {
        let body = format!("extern \"C\" __global__ void k(int* o) {{ o[0] = {value}; }}\n");
        compiler
            .compile(&source(&body, &["k"], &[]), Arch::SM_80)
            .unwrap()
            .image
    };
    let alone: Vec<_> = (1000..1008).map(compile).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1000..1008)
            .map(|value| scope.spawn(move || compile(value)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(alone, together);
    assert!(alone[0].ptx.contains("1000") && alone[7].ptx.contains("1007"));
}

#[test]
fn a_damaged_cubin_is_refused_or_described_and_never_panics() {
    let cubin = compiler()
        .compile(&varied(), Arch::SM_80)
        .unwrap()
        .image
        .cubin;
    for end in 0..cubin.len() {
        let _ = cubin::kernels(&cubin[..end]);
    }
    assert!(cubin::kernels(&cubin[..cubin.len() / 2]).is_err());
    let mut changed = cubin.clone();
    let mut refused = 0;
    for at in 0..cubin.len() {
        changed[at] ^= 0xff;
        refused += usize::from(cubin::kernels(&changed).is_err());
        changed[at] = cubin[at];
    }
    assert!(refused > 0);
    let mut x86 = cubin.clone();
    x86[18..20].copy_from_slice(&62u16.to_le_bytes());
    assert_eq!(
        cubin::kernels(&x86),
        Err(cubin::CubinError::NotCuda { found: 62 })
    );
}

#[test]
fn a_library_that_is_no_nvrtc_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
        std::fs::write(folder.path().join(file), "not a library").unwrap();
    }
    let path = folder.path().as_os_str().to_owned();
    let search = Search::from_vars(|name| (name == "PAGESMITH_NVRTC").then(|| path.clone()));
    match Compiler::new(search.find().unwrap()) {
        Err(error @ LoadError::Refused { .. }) => {
            assert!(error.to_string().contains("libnvrtc"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
