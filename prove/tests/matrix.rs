//! Every pair of values of any two axes of the decode family is right.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where its setting fails, and says what it measured"
)]

mod common;

use common::{compiler, gpu};
use pagesmith_prove::Seed;
use pagesmith_prove::case::Effort;
use pagesmith_prove::matrix::{MatrixRequest, Strength, verify_matrix};
use std::sync::atomic::{AtomicUsize, Ordering};

fn every_tuple_is_right(strength: Strength) {
    let seen = AtomicUsize::new(0);
    let request = MatrixRequest {
        strength,
        compiler: compiler(),
        gpu: &gpu(),
        effort: Effort::Standard,
        seed: Seed::fresh(),
    };
    let report = verify_matrix(&request, &|progress| {
        seen.fetch_max(progress.done, Ordering::Relaxed);
    });
    println!(
        "{strength}: {} variants, {} cases, max relative L2 {:.2e}, {} of {} tuples",
        report.variants, report.cases, report.max_relative_l2, report.tuples_covered, report.tuples
    );
    assert!(report.passed(), "{report:#?}");
    assert_eq!(seen.into_inner(), report.variants);
    assert_eq!(report.tuples_covered, report.tuples);
    assert!(
        report.max_relative_l2 > 1e-5,
        "an error of 0 is no measurement"
    );
}

#[test]
fn every_pair_of_axis_values_is_right_and_free_of_findings() {
    every_tuple_is_right(Strength::Pairwise);
}

#[test]
#[ignore = "minutes; `autotune verify --matrix 3wise` does the same"]
fn every_triple_of_axis_values_is_right_and_free_of_findings() {
    every_tuple_is_right(Strength::ThreeWise);
}
