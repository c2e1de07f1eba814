//! Every hand-picked mutant of the real kernels is caught, and by what its breakage calls for.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where its setting fails, and says what it measured"
)]

mod common;

use common::{compiler, gpu};
use pagesmith_codegen::forge;
use pagesmith_prove::mutate::{MutantKernel, catalogue, judge};
use pagesmith_prove::{Seed, case::Effort, prove};
use pagesmith_spec::Arch;

fn every_mutant_is_caught(kernel: MutantKernel) {
    let variant = kernel.variant().unwrap();
    let image = forge(&variant, Arch::SM_80, compiler()).unwrap();
    let seed = Seed::fresh();
    let healthy = prove(&variant, &image, &gpu(), Effort::Standard, seed).unwrap();
    assert!(healthy.passed(), "the unbroken kernel fails: {healthy:#?}");
    let mut wrong = Vec::new();
    for mutation in catalogue(kernel) {
        let Some(ptx) = mutation.apply(&image.ptx) else {
            wrong.push(format!("{}: its place in the PTX is gone", mutation.name));
            continue;
        };
        let caught = judge(&variant, &image, &ptx, &gpu(), seed).unwrap();
        let names: Vec<String> = caught.iter().map(ToString::to_string).collect();
        println!("{kernel:?}: {}: {}", mutation.name, names.join(", "));
        if !caught.contains(&mutation.expected) {
            wrong.push(format!(
                "{}: expected {}, caught by: {}",
                mutation.name,
                mutation.expected,
                names.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}

#[test]
fn every_mutant_of_the_tensor_core_kernel_is_caught() {
    every_mutant_is_caught(MutantKernel::MmaBf16);
}

#[test]
fn every_mutant_of_the_e4m3_kernel_is_caught() {
    every_mutant_is_caught(MutantKernel::MmaE4m3);
}

#[test]
fn every_mutant_of_the_cuda_core_kernel_is_caught() {
    every_mutant_is_caught(MutantKernel::SimtBf16);
}
