//! Launches on the emulated device, with kernels small enough to be read.

mod common;

use common::{a100, image, spec, tuning};
use pagesmith_runtime::device::emulated::{EmulatedOptions, Findings};
use pagesmith_runtime::device::{Buffer, Device, DeviceError, Emulated, LaunchConfig, LoadError};
use pagesmith_spec::abi::DevicePtr;
use pagesmith_spec::{Arch, Gpu, Image, Variant};

/// `copy`: each thread copies one word from `from` to `to`.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64

.visible .entry copy(.param .align 8 .b8 params[16])
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [params];
    ld.param.u64 %rd2, [params+8];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4];
    st.global.u32 [%rd5], %r5;
    ret;
}
";

fn copying() -> Image {
    let variant = Variant::new(spec(), tuning()).expect("legal");
    Image {
        ptx: PTX.to_owned(),
        ..image(&variant)
    }
}

fn collecting() -> Emulated {
    let options = EmulatedOptions {
        findings: Findings::Collect,
        ..EmulatedOptions::default()
    };
    Emulated::with_options(a100(), options)
}

/// Launches `copy` over 64 words.
fn launch(device: &Emulated, from: DevicePtr, to: DevicePtr) -> Result<(), DeviceError> {
    let module = device.load(&copying()).expect("it parses");
    let mut params = [0; 16];
    params[..8].copy_from_slice(&from.0.to_le_bytes());
    params[8..].copy_from_slice(&to.0.to_le_bytes());
    let config = LaunchConfig {
        ctas: 2,
        threads: 32,
        shared_bytes: 0,
    };
    // SAFETY: two addresses are what the kernel takes; the emulator finds those that are not memory.
    unsafe { device.launch(&module, "copy", config, &params, &device.stream()) }
}

#[test]
fn a_kernel_reads_and_writes_the_devices_memory() {
    let device = Emulated::new(a100());
    let words: Vec<u8> = (0..=255).collect();
    let (from, to) = (device.alloc("from", 256), device.alloc("to", 256));
    let (from, to) = (from.expect("room"), to.expect("room"));
    let stream = device.stream();
    device.upload(from.region(), &words, &stream).expect("fits");
    launch(&device, from.region().start(), to.region().start()).expect("no findings");
    let mut back = vec![0; 256];
    device
        .download(to.region(), &mut back, &stream)
        .expect("reads");
    assert_eq!(back, words);
    assert!(device.take_reports().is_empty(), "reports must not pile up");
}

#[test]
fn a_finding_is_an_error_by_default_and_a_report_when_collected() {
    for device in [Emulated::new(a100()), collecting()] {
        let from = device.alloc("the source", 256).expect("room");
        let short = device.alloc("the target", 128).expect("room");
        let stream = device.stream();
        device.fill(from.region(), 1, &stream).expect("fills");
        let result = launch(&device, from.region().start(), short.region().start());
        let reports = device.take_reports();
        match result {
            Err(DeviceError::Findings {
                entry,
                count,
                first,
            }) => {
                assert_eq!((entry.as_str(), count), ("copy", 1));
                assert!(first.contains("out of bounds"), "{first}");
                assert!(reports.is_empty());
            }
            Ok(()) => {
                assert_eq!(reports.len(), 1);
                assert_eq!(reports[0].entry, "copy");
                assert!(!reports[0].report.is_clean());
                assert!(device.take_reports().is_empty(), "taken once");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn poisoned_and_fresh_memory_is_found_when_a_kernel_reads_it() {
    let device = Emulated::new(a100());
    let from = device.alloc("from", 256).expect("room");
    let to = device.alloc("to", 256).expect("room");
    let run = || launch(&device, from.region().start(), to.region().start());
    assert!(matches!(run(), Err(DeviceError::Findings { .. })), "fresh");
    device
        .fill(from.region(), 0, &device.stream())
        .expect("fills");
    assert_eq!(run(), Ok(()));
    device.poison(from.region(), 0x7F).expect("its memory");
    assert!(
        matches!(run(), Err(DeviceError::Findings { .. })),
        "poisoned"
    );
}

#[test]
fn memory_is_freed_with_its_buffer_and_what_still_points_there_is_found() {
    let device = Emulated::new(a100());
    let to = device.alloc("to", 256).expect("room");
    let from = device.alloc("from", 256).expect("room");
    device
        .fill(from.region(), 0, &device.stream())
        .expect("fills");
    let stale = from.region().start();
    drop(from);
    let error = launch(&device, stale, to.region().start()).unwrap_err();
    assert!(error.to_string().contains("use after free"), "{error}");
}

#[test]
fn copies_that_do_not_fit_are_refused() {
    let device = Emulated::new(a100());
    let stream = device.stream();
    let buffer = device.alloc("small", 8).expect("room");
    let error = device
        .upload(buffer.region(), &[0; 9], &stream)
        .unwrap_err();
    assert!(matches!(error, DeviceError::Region(_)), "{error}");
    let mut nine = [0; 9];
    assert!(
        device
            .download(buffer.region(), &mut nine, &stream)
            .is_err()
    );
    let empty = device.alloc("empty", 0).expect("no bytes are a buffer too");
    assert_eq!(empty.bytes(), 0);
    assert_eq!(device.upload(empty.region(), &[], &stream), Ok(()));
    let error = device.alloc("huge", u64::MAX).unwrap_err().to_string();
    assert!(error.contains("`huge`"), "{error}");
}

#[test]
fn images_for_other_gpus_and_broken_ptx_are_refused_by_name() {
    let h200 = Emulated::new(Gpu::by_name("h200").expect("built in"));
    assert_eq!(
        h200.load(&copying()).unwrap_err(),
        LoadError::Arch {
            image: Arch::SM_80,
            device: Arch::SM_90
        }
    );
    let broken = Image {
        ptx: PTX.replace("mad.lo.s32", "frobnicate.s32"),
        ..copying()
    };
    let error = Emulated::new(a100()).load(&broken).unwrap_err().to_string();
    assert!(error.contains("PTX line 15"), "{error}");
}

#[test]
fn a_launch_without_kernel_or_with_too_few_parameters_is_refused() {
    let device = Emulated::new(a100());
    let module = device.load(&copying()).expect("it parses");
    let config = LaunchConfig {
        ctas: 1,
        threads: 32,
        shared_bytes: 0,
    };
    for (entry, params) in [("paste", &[0; 16][..]), ("copy", &[0; 8])] {
        // SAFETY: refused before anything runs.
        let result = unsafe { device.launch(&module, entry, config, params, &device.stream()) };
        let error = result.unwrap_err();
        assert!(matches!(error, DeviceError::Launch { .. }), "{error}");
    }
}
