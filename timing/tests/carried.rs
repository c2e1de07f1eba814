//! PTX counts carried to machine code, against what the machine code was seen to execute.
//!
//! `forms` has the instructions of a decode kernel; `loops` has control flow that ptxas unrolls by
//! four, two and one over three blocks, rotates, peels and predicates. The fixtures say how often
//! each PTX line ran and, for `loops`, how often each SASS instruction was issued.

use pagesmith_timing::sass::{Class, Kernel};
use pagesmith_timing::{LineCounts, SassCounts, count_sass};
use std::collections::BTreeMap;

const FORMS: &[u8] = include_bytes!("fixtures/forms.cubin");
const FORM_COUNTS: &str = include_str!("fixtures/forms.counts");
const LOOPS: &[u8] = include_bytes!("fixtures/loops.cubin");
const LOOP_COUNTS: &str = include_str!("fixtures/loops.counts");
const LOOP_ISSUED: &str = include_str!("fixtures/loops.issued");

/// Runs of `loops`: trips of the first loop, of the others, and the mode.
const RUNS: [&str; 5] = ["5-37-1", "0-3-6", "2-8-0", "9-0-3", "1-102-5"];

/// Rows of a fixture: run, key, count.
fn rows<'a>(text: &'a str, run: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    text.lines().filter_map(move |row| {
        let mut fields = row.split('\t');
        let matches = fields.next() == Some(run);
        let (key, count) = (fields.next()?, fields.next()?);
        matches.then(|| (key, count.parse().expect("a count")))
    })
}

fn line_counts(text: &str, run: &str) -> LineCounts {
    rows(text, run)
        .map(|(line, count)| (line.parse().expect("a line"), count))
        .collect()
}

fn carried(run: &str) -> SassCounts {
    count_sass(LOOPS, "loops", &line_counts(LOOP_COUNTS, run)).expect("the fixture decodes")
}

/// Issued executions of each instruction of `loops`, by index.
fn issued(run: &str) -> BTreeMap<usize, u64> {
    rows(LOOP_ISSUED, run)
        .map(|(address, count)| {
            (
                usize::from_str_radix(address, 16).expect("an address") / 16,
                count,
            )
        })
        .collect()
}

#[test]
fn one_to_one_instructions_come_out_exact() {
    let forms = [
        ("forms_decode", "forms_decode"),
        ("forms_merge/7", "forms_merge"),
        ("forms_merge/3", "forms_merge"),
    ];
    for (run, entry) in forms {
        let counts = count_sass(FORMS, entry, &line_counts(FORM_COUNTS, run)).unwrap();
        assert!(counts.balance.len() >= 6, "{run}: {:?}", counts.balance);
        assert_eq!(counts.imbalance(), 0, "{run}: {:?}", counts.balance);
        assert_eq!(counts.unknown_opcodes, 0, "{run}");
    }
    for run in RUNS {
        let counts = carried(run);
        assert_eq!(counts.imbalance(), 0, "{run}: {:?}", counts.balance);
    }
}

#[test]
fn the_products_of_a_decode_kernel_are_its_mma_lines() {
    let counts = line_counts(FORM_COUNTS, "forms_decode");
    let kernel = Kernel::decode(FORMS, "forms_decode").unwrap();
    let carried = count_sass(FORMS, "forms_decode", &counts).unwrap();
    let lines: std::collections::BTreeSet<u32> = kernel
        .instructions
        .iter()
        .zip(&kernel.lines)
        .filter(|(instruction, _)| instruction.class() == Class::Tensor)
        .filter_map(|(_, &line)| line)
        .collect();
    let expected: u64 = lines
        .iter()
        .filter_map(|&line| counts.executions(line))
        .sum();
    // 3 CTAs, 37 tiles, 12 products each: ptxas keeps every one of them.
    assert_eq!(expected, 3 * 37 * 12);
    assert_eq!(carried.by_class.get(Class::Tensor), expected);
    assert_eq!(carried.by_class.get(Class::LoadMatrix), 3 * 37 * 12);
    assert_eq!(carried.by_class.get(Class::CopyAsync), 3 * 37 * 8);
    assert_eq!(carried.by_class.get(Class::MoveMatrix), 3 * 37 * 4);
    assert_eq!(carried.by_class.get(Class::Barrier), 3 * 4 * 2);
}

#[test]
fn blocks_run_as_often_as_they_were_seen_to_run() {
    // The loops of the other two runs leave remainders, of which lines tell the sum only.
    for run in ["5-37-1", "2-8-0", "9-0-3"] {
        let issued = issued(run);
        for block in carried(run).blocks {
            let at = format!("{run}: block at {:04x}", block.first * 16);
            assert_eq!(block.executions, issued[&block.first], "{at}");
        }
    }
}

#[test]
fn totals_are_within_two_percent_where_a_remainder_is_ambiguous() {
    for run in RUNS {
        let expected: u64 = issued(run).values().sum();
        let error = carried(run).total() as f64 / expected as f64 - 1.0;
        assert!(error.abs() < 0.02, "{run}: {error}");
    }
}

#[test]
fn a_guarded_instruction_takes_an_issue_slot_but_no_pipe_while_its_guard_is_false() {
    let run = "5-37-1";
    let kernel = Kernel::decode(LOOPS, "loops").unwrap();
    let issued: u64 = issued(run)
        .into_iter()
        .filter(|&(index, _)| kernel.instructions[index].class() == Class::Tensor)
        .map(|(_, count)| count)
        .sum();
    let counts = carried(run);
    assert!(counts.by_class.get(Class::Tensor) < issued);
    assert!(counts.by_class.get(Class::Nop) >= issued - counts.by_class.get(Class::Tensor));
}

#[test]
fn slow_paths_of_diverged_warps_count_nothing() {
    let kernel = Kernel::decode(FORMS, "forms_decode").unwrap();
    let counts = line_counts(FORM_COUNTS, "forms_decode");
    let carried = count_sass(FORMS, "forms_decode", &counts).unwrap();
    let cold = kernel.blocks.iter().zip(&carried.blocks);
    for (block, count) in cold.filter(|(block, _)| block.only_diverged) {
        assert_eq!(count.executions, 0, "{:?}", block.instructions);
    }
    assert_eq!(carried.unmapped, 0);
}

#[test]
fn counts_of_zero_carry_to_zero() {
    let counts = line_counts(LOOP_COUNTS, RUNS[0]);
    let zero: LineCounts = counts.iter().map(|(line, _)| (line, 0)).collect();
    assert_eq!(count_sass(LOOPS, "loops", &zero).unwrap().total(), 0);
}

#[test]
fn absurd_counts_do_not_overflow() {
    let counts = line_counts(LOOP_COUNTS, RUNS[0]);
    let absurd: LineCounts = counts
        .iter()
        .map(|(line, count)| (line, u64::MAX - count))
        .collect();
    count_sass(LOOPS, "loops", &absurd).unwrap();
}
