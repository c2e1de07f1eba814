//! What is decoded in process, against what NVIDIA's disassembler prints for the same bytes.

use pagesmith_timing::TimingError;
use pagesmith_timing::sass::{Class, Guard, Kernel};
use proptest::prelude::*;
use std::collections::HashMap;

const CUBIN: &[u8] = include_bytes!("fixtures/forms.cubin");
const LISTING: &str = include_str!("fixtures/forms.nvdisasm");

/// One instruction as `nvdisasm` prints it.
struct Printed<'a> {
    line: u32,
    /// The predicate without `@`, and the rest.
    guard: Option<&'a str>,
    text: &'a str,
}

fn listing(entry: &str) -> (Vec<Printed<'static>>, HashMap<&'static str, usize>) {
    let (mut printed, mut labels) = (Vec::new(), HashMap::new());
    for row in LISTING.lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        if fields[0] != entry {
            continue;
        }
        if fields[1] == "label" {
            labels.insert(fields[3], printed.len());
            continue;
        }
        let (guard, text) = match fields[3].strip_prefix('@') {
            Some(rest) => {
                let (guard, text) = rest
                    .split_once(' ')
                    .expect("a guard precedes its instruction");
                (Some(guard), text.trim_start())
            }
            None => (None, fields[3]),
        };
        printed.push(Printed {
            line: fields[2].parse().expect("a line number"),
            guard,
            text,
        });
    }
    (printed, labels)
}

fn operation(text: &str) -> &str {
    let word = text.split([' ', ';']).next().unwrap_or(text);
    if word.starts_with("HFMA2.MMA") {
        "HFMA2.MMA"
    } else {
        word.split('.').next().unwrap_or(word)
    }
}

const ENTRIES: [&str; 2] = ["forms_decode", "forms_merge"];

#[test]
fn every_operation_guard_and_line_is_the_disassemblers() {
    for entry in ENTRIES {
        let kernel = Kernel::decode(CUBIN, entry).unwrap();
        let (printed, _) = listing(entry);
        assert_eq!(kernel.arch, 80);
        assert_eq!(kernel.instructions.len(), printed.len(), "{entry}");
        for (index, (instruction, printed)) in kernel.instructions.iter().zip(&printed).enumerate()
        {
            let at = format!("{entry} instruction {index}: {}", printed.text);
            assert_eq!(instruction.name(), Some(operation(printed.text)), "{at}");
            let guard = match instruction.guard() {
                Guard::Always => None,
                Guard::Never => Some("!PT".to_owned()),
                Guard::Predicate { register, negated } => {
                    Some(format!("{}P{register}", if negated { "!" } else { "" }))
                }
            };
            // Uniform instructions have predicates of their own, printed UP0.
            let expected = printed.guard.map(|text| text.replace('U', ""));
            assert_eq!(guard, expected, "{at}");
            assert_eq!(kernel.lines[index], Some(printed.line), "{at}");
        }
    }
}

#[test]
fn every_branch_leads_to_the_label_that_the_disassembler_prints() {
    let mut branches = 0;
    for entry in ENTRIES {
        let kernel = Kernel::decode(CUBIN, entry).unwrap();
        let (printed, labels) = listing(entry);
        let block_at = |index: usize| {
            kernel
                .blocks
                .iter()
                .position(|block| block.instructions.contains(&index))
                .unwrap()
        };
        for (index, printed) in printed.iter().enumerate() {
            let Some((_, label)) = printed.text.split_once("`(") else {
                continue;
            };
            let target = block_at(
                labels
                    .get(label.trim_end_matches(')'))
                    .copied()
                    .unwrap_or(0),
            );
            let block = &kernel.blocks[block_at(index)];
            match operation(printed.text) {
                "BRA" => assert!(block.successors.contains(&target), "{}", printed.text),
                "CALL" => assert_eq!(block.callee, Some(target), "{}", printed.text),
                _ => continue,
            }
            assert_eq!(block.instructions.end, index + 1, "a branch ends its block");
            branches += 1;
        }
    }
    assert!(branches > 30, "the fixture has branches");
}

#[test]
fn blocks_cover_the_code_and_their_edges_agree_both_ways() {
    for entry in ENTRIES {
        let kernel = Kernel::decode(CUBIN, entry).unwrap();
        let mut next = 0;
        for (index, block) in kernel.blocks.iter().enumerate() {
            assert_eq!(block.instructions.start, next);
            next = block.instructions.end;
            for &successor in &block.successors {
                assert!(kernel.blocks[successor].predecessors.contains(&index));
            }
        }
        assert_eq!(next, kernel.instructions.len());
    }
}

#[test]
fn the_slow_paths_for_warps_that_lost_lanes_are_told_apart() {
    let kernel = Kernel::decode(CUBIN, "forms_decode").unwrap();
    let (printed, labels) = listing("forms_decode");
    let cold = |index: usize| {
        let block = kernel
            .blocks
            .iter()
            .find(|b| b.instructions.contains(&index));
        block.unwrap().only_diverged
    };
    let helper = labels
        .iter()
        .find(|(name, _)| name.contains("shflsync"))
        .unwrap();
    assert!(cold(*helper.1), "a helper that only slow paths call");
    for (index, printed) in printed.iter().enumerate() {
        if printed.text.starts_with("CALL.REL") {
            assert!(cold(index), "every call of this kernel is on a slow path");
        }
        if printed.text.starts_with("HMMA") {
            assert!(!cold(index), "the products are not");
        }
    }
}

#[test]
fn scoreboards_are_set_by_what_takes_variable_time_and_waited_for_by_somebody() {
    for entry in ENTRIES {
        let kernel = Kernel::decode(CUBIN, entry).unwrap();
        let (mut set, mut waited, mut setters) = (0u8, 0u8, 0);
        for instruction in &kernel.instructions {
            let control = instruction.control();
            waited |= control.wait_mask;
            let barriers = [control.write_barrier, control.read_barrier];
            for barrier in barriers.into_iter().flatten() {
                assert!(barrier < 6, "there are six scoreboards");
                set |= 1 << barrier;
            }
            match instruction.class() {
                Class::Integer | Class::Fma | Class::Tensor | Class::Nop => {
                    let name = instruction.name().unwrap();
                    assert!(
                        control.write_barrier.is_none(),
                        "{name} has a fixed latency"
                    );
                }
                Class::LoadShared | Class::LoadMatrix | Class::LoadGlobal | Class::Special => {
                    setters += usize::from(control.write_barrier.is_some());
                }
                _ => {}
            }
        }
        assert_eq!(
            waited & !set,
            0,
            "{entry}: nothing waits for what nobody sets"
        );
        assert!(waited.count_ones() >= 5, "{entry}: {waited:06b}");
        assert!(setters > 10, "{entry}: {setters}");
    }
}

#[test]
fn a_missing_kernel_is_named_with_those_that_exist() {
    let error = Kernel::decode(CUBIN, "absent").unwrap_err();
    assert!(error.to_string().contains("forms_merge"), "{error}");
}

#[test]
fn another_machines_elf_is_refused() {
    let mut bytes = CUBIN.to_vec();
    bytes[18] = 62;
    let error = Kernel::decode(&bytes, "forms_merge").unwrap_err();
    assert_eq!(error, TimingError::NotCuda { machine: 62 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_damaged_cubin_panics(
        damage in prop::collection::vec((0..CUBIN.len(), any::<u8>()), 1..24),
        length in 0..=CUBIN.len(),
        shorten in any::<bool>(),
    ) {
        let mut bytes = CUBIN.to_vec();
        for (at, value) in damage {
            bytes[at] = value;
        }
        if shorten {
            bytes.truncate(length);
        }
        for entry in ENTRIES {
            // Damage to the code itself may well decode: what matters is that it returns.
            if let Ok(kernel) = Kernel::decode(&bytes, entry) {
                prop_assert_eq!(kernel.lines.len(), kernel.instructions.len());
            }
        }
    }

    /// Headers and line table are a small part of the file: damage aimed at them.
    #[test]
    fn no_damaged_header_or_line_table_panics(
        damage in prop::collection::vec((0usize..8192, any::<u8>()), 1..16),
        tail in prop::collection::vec((0usize..1700, any::<u8>()), 0..8),
    ) {
        let mut bytes = CUBIN.to_vec();
        for (at, value) in damage {
            bytes[at] = value;
        }
        for (at, value) in tail {
            let from_end = bytes.len() - 1 - at;
            bytes[from_end] = value;
        }
        for entry in ENTRIES {
            let _ = Kernel::decode(&bytes, entry);
        }
    }
}
