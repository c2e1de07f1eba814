//! From an emulated launch to machine-code counts, without anything in between but the CUBIN.

use pagesmith_emulator::{Launch, Memory, Options, Program, launch};
use pagesmith_timing::sass::Cubin;
use pagesmith_timing::{LineCounts, count_sass};

const LOOPS: &[u8] = include_bytes!("fixtures/loops.cubin");
const COUNTS: &str = include_str!("fixtures/loops.counts");

/// Runs `loops` as the fixtures' interpreter did: 3 CTAs, every word of `in` an 8.
fn emulated(trips: u32, others: u32, mode: u32) -> LineCounts {
    let ptx = Cubin::parse(LOOPS).map(|cubin| cubin.ptx().unwrap_or_default());
    let program = Program::parse(&ptx.expect("the fixture is a CUBIN")).expect("its PTX parses");
    let memory = Memory::new();
    let alloc = |name, bytes: &[u8]| {
        let address = memory.alloc(name, bytes.len() as u64).expect("memory");
        memory.write(address, bytes).expect("within the allocation");
        address
    };
    let mut params = Vec::new();
    for address in [
        alloc("in", &[8u32.to_le_bytes(); 4096].concat()),
        alloc("out", &[0; 16384]),
        alloc("sums", &[0; 16]),
    ] {
        params.extend_from_slice(&address.0.to_le_bytes());
    }
    for value in [trips, others, mode] {
        params.extend_from_slice(&value.to_le_bytes());
    }
    let loops = Launch {
        entry: "loops",
        grid: [3, 1, 1],
        block: [128, 1, 1],
        shared_bytes: 0,
        params: &params,
    };
    let report = launch(&program, &memory, &loops, &Options::functional()).expect("it runs");
    LineCounts::from_report(&program, "loops", &report)
}

#[test]
fn the_emulator_counts_the_lines_that_the_independent_interpreter_counted() {
    for (trips, others, mode) in [(5, 37, 1), (0, 3, 6), (2, 8, 0), (9, 0, 3), (1, 102, 5)] {
        let run = format!("{trips}-{others}-{mode}");
        let counts = emulated(trips, others, mode);
        let mut lines = 0;
        for row in COUNTS.lines() {
            let fields: Vec<&str> = row.split('\t').collect();
            if fields[0] == run {
                let line = fields[1].parse().unwrap();
                let expected = fields[2].parse().unwrap();
                assert_eq!(
                    counts.executions(line),
                    Some(expected),
                    "{run}: line {line}"
                );
                lines += 1;
            }
        }
        assert!(lines > 200, "{run}: {lines}");
        assert_eq!(count_sass(LOOPS, "loops", &counts).unwrap().imbalance(), 0);
    }
}
