//! The CUDA device where there is one: `cargo test -p pagesmith-runtime --features cuda -- --ignored`.

mod common;

use common::{image, spec, tuning};
use pagesmith_runtime::device::cuda::{External, Samples};
use pagesmith_runtime::device::{Buffer, Cuda, Device, DeviceError, LoadError, Region};
use pagesmith_spec::{Arch, Image, Variant};
use std::convert::Infallible;

fn cuda() -> Cuda {
    Cuda::new(0).expect("a GPU that pagesmith knows")
}

#[test]
#[ignore = "needs a GPU"]
fn copies_come_back_as_they_went_and_must_fit() {
    let cuda = cuda();
    let stream = cuda.stream();
    let buffer = cuda.alloc("bytes", 4096).expect("room");
    let bytes: Vec<u8> = (0..4096_u32).map(|index| index as u8).collect();
    cuda.upload(buffer.region(), &bytes, &stream).expect("fits");
    let mut back = vec![0; 4096];
    cuda.download(buffer.region(), &mut back, &stream)
        .expect("reads");
    assert_eq!(back, bytes);
    let half = buffer.region().part(2048, 2048).expect("inside");
    cuda.fill(half, 7, &stream).expect("fills");
    cuda.download(buffer.region(), &mut back, &stream)
        .expect("reads");
    assert_eq!(
        (&back[..2048], &back[2048..]),
        (&bytes[..2048], &[7; 2048][..])
    );
    let error = cuda
        .upload(buffer.region(), &[0; 4097], &stream)
        .unwrap_err();
    assert!(matches!(error, DeviceError::Region(_)), "{error}");
    let error = cuda
        .alloc("huge", 1 << 50)
        .expect_err("no GPU has a petabyte");
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_callers_slice_is_the_memory_it_says() {
    let cuda = cuda();
    let stream = cuda.stream();
    let mut slice = stream.clone_htod(&[1_u8, 2, 3, 4]).expect("room");
    let read = |region: Region<'_>| {
        let mut back = [0; 4];
        cuda.download(region, &mut back, &stream).expect("reads");
        back
    };
    assert_eq!(read(External::read(&slice, &stream).region()), [1, 2, 3, 4]);
    let written = External::write(&mut slice, &stream);
    cuda.fill(written.region(), 9, &stream).expect("fills");
    assert_eq!(read(written.region()), [9; 4]);
}

#[test]
#[ignore = "needs a GPU"]
fn images_that_the_driver_or_the_arch_refuses_are_typed_errors() {
    let cuda = cuda();
    let variant = Variant::new(spec(), tuning()).expect("legal");
    let mut garbage = image(&variant);
    garbage.header.arch = cuda.gpu().arch;
    let error = cuda.load(&garbage).expect_err("text is no CUBIN");
    assert!(matches!(error, LoadError::Cubin(_)), "{error}");
    let other = Arch::ALL.into_iter().find(|&arch| arch != cuda.gpu().arch);
    let mut foreign: Image = garbage;
    foreign.header.arch = other.expect("two archs are known");
    let error = cuda.load(&foreign).expect_err("for another GPU");
    assert!(matches!(error, LoadError::Arch { .. }), "{error}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_larger_fill_takes_longer_and_no_time_is_zero() {
    let cuda = cuda();
    let buffer = cuda.alloc("filled", 1 << 30).expect("room");
    let samples = Samples {
        warm_up: 2,
        timed: 11,
    };
    let median = |bytes| {
        let part = buffer.region().part(0, bytes).expect("inside");
        let timing = cuda.time::<DeviceError>(samples, |stream| cuda.fill(part, 1, stream));
        timing.expect("fills").median_us
    };
    let (small, large) = (median(1 << 24), median(1 << 30));
    assert!(small > 0.0 && large > 4.0 * small, "{small} us, {large} us");
    let nothing = cuda.time::<Infallible>(samples, |_| Ok(()));
    assert_eq!(nothing.expect("nothing fails").runs_us.len(), 11);
}
