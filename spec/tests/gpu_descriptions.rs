//! What the built-in GPU descriptions say, and what a foreign one may not.

use pagesmith_spec::gpu::{Bytes, GpuError};
use pagesmith_spec::{Arch, Gpu};

const A100: &str = include_str!("../gpus/a100-sxm4-80gb.toml");

#[test]
fn every_built_in_name_is_the_name_in_its_file() {
    for name in Gpu::names() {
        let gpu = Gpu::by_name(name).unwrap();
        assert_eq!(gpu.name, name);
        assert_eq!(
            Gpu::by_device_name(&format!("NVIDIA {}", gpu.product)),
            Ok(gpu)
        );
    }
    assert_eq!(Gpu::all().len(), Gpu::names().count());
}

#[test]
fn the_a100_forms_differ_only_in_memory() {
    let base = Gpu::by_name("a100-sxm4-80gb").unwrap();
    for (name, gib, peak) in [
        ("a100-sxm4-40gb", 40, 1.555e12),
        ("a100-sxm4-80gb", 80, 2.039e12),
        ("a100-pcie-40gb", 40, 1.555e12),
        ("a100-pcie-80gb", 80, 1.935e12),
    ] {
        let gpu = Gpu::by_name(name).unwrap();
        assert_eq!(gpu.memory.bytes, Bytes::mib(gib * 1024), "{name}");
        assert_eq!(gpu.memory.peak_bytes_per_s.0, peak, "{name}");
        let reached = gpu.memory.achievable_bytes_per_s.0 / peak;
        assert!((0.87..0.89).contains(&reached), "{name}: {reached}");
        let mut same = base.clone();
        same.name.clone_from(&gpu.name);
        same.product.clone_from(&gpu.product);
        same.memory = gpu.memory;
        assert_eq!(gpu, same, "{name}");
    }
}

#[test]
fn the_data_sheets_peak_rates_follow_from_the_descriptions() {
    // (name, f32 Tflop/s, dense 16-bit tensor Tflop/s of mma.sync)
    for (name, fma, tensor) in [("a100-sxm4-80gb", 19.5, 312.0), ("h200", 66.9, 669.0)] {
        let gpu = Gpu::by_name(name).unwrap();
        let per_clock = f64::from(gpu.sms) * gpu.boost_mhz.hertz() * 2.0 / 1e12;
        let close = |value: f64, sheet: f64| (value / sheet - 1.0).abs() < 0.005;
        assert!(close(gpu.throughput.fma_lanes.0 * per_clock, fma), "{name}");
        assert!(
            close(gpu.throughput.mma_products.0 * per_clock, tensor),
            "{name}"
        );
    }
    assert_eq!(Gpu::by_name("h200").unwrap().arch, Arch::SM_90);
}

#[test]
fn an_unknown_gpu_is_refused_with_the_known_names() {
    let error = Gpu::by_name("a100").unwrap_err().to_string();
    for name in Gpu::names() {
        assert!(error.contains(name), "{error}");
    }
    let error = Gpu::by_device_name("NVIDIA GeForce RTX 4090").unwrap_err();
    assert!(error.to_string().contains("RTX 4090"), "{error}");
}

/// The A100's description with the line of `key` replaced.
fn with_line(key: &str, line: &str) -> String {
    assert!(A100.lines().any(|old| old.starts_with(key)), "no {key}");
    let lines: Vec<&str> = A100
        .lines()
        .map(|old| if old.starts_with(key) { line } else { old })
        .collect();
    lines.join("\n")
}

#[test]
fn a_number_that_no_gpu_has_is_refused_by_field() {
    for (key, line, field) in [
        ("sms", "sms = 0", "sms"),
        ("boost_mhz", "boost_mhz = nan", "boost_mhz"),
        ("boost_mhz", "boost_mhz = inf", "boost_mhz"),
        ("boost_mhz", "boost_mhz = -1410", "boost_mhz"),
        ("name", "name = \"../a100\"", "name"),
        ("product", "product = \"\"", "product"),
        ("fma_lanes", "fma_lanes = 0", "throughput.fma_lanes"),
        ("sfu_lanes", "sfu_lanes = 1e300", "throughput.sfu_lanes"),
        (
            "achievable_bytes_per_s",
            "achievable_bytes_per_s = 2.1e12",
            "memory.achievable_bytes_per_s",
        ),
        (
            "far_bytes_per_s",
            "far_bytes_per_s = 6e12",
            "l2.far_bytes_per_s",
        ),
        (
            "far_latency_cycles",
            "far_latency_cycles = 100",
            "l2.far_latency_cycles",
        ),
    ] {
        match Gpu::from_toml(&with_line(key, line)) {
            Err(GpuError::Field { field: found, .. }) => assert_eq!(found, field, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn a_missing_unknown_or_wrongly_typed_field_is_refused_by_name() {
    for (text, named) in [
        (with_line("alu_cycles", ""), "alu_cycles"),
        (with_line("sms", "sms = 108\nwarps = 4"), "warps"),
        (with_line("sms", "sms = \"108\""), "108"),
        (with_line("arch", "arch = \"sm_75\""), "sm_75"),
        (with_line("bytes = ", "bytes = -1"), "-1"),
        (with_line("[latency]", "[latency"), "latency"),
    ] {
        match Gpu::from_toml(&text) {
            Err(GpuError::Syntax { message }) => assert!(message.contains(named), "{message}"),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn a_description_longer_than_any_gpu_needs_is_refused_unread() {
    let text = format!("{A100}\n#{}", "x".repeat(1 << 20));
    assert!(matches!(
        Gpu::from_toml(&text),
        Err(GpuError::Syntax { .. })
    ));
}

#[test]
fn every_range_is_checked() {
    // Zero is out of range for every number of a description.
    let mut checked = 0;
    for line in A100.lines() {
        let Some((key, _)) = line.split_once(" = ") else {
            continue;
        };
        if ["name", "product", "arch"].contains(&key) {
            continue;
        }

        let text = A100.replace(line, &format!("{key} = 0"));
        assert!(
            matches!(Gpu::from_toml(&text), Err(GpuError::Field { .. })),
            "{key} = 0 was accepted"
        );
        checked += 1;
    }
    assert_eq!(checked, 25, "numbers in a description");
}
