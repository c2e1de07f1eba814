//! How fast the emulator runs: warp instructions a second on a loop of cp.async, ldmatrix and mma, functional and with
//! every check.
//!
//! `cargo run --release -p pagesmith-emulator --example throughput`

#![allow(clippy::print_stdout)]

use pagesmith_emulator::{Checks, Launch, Memory, Options, Program, Report, launch};
use std::error::Error;
use std::time::{Duration, Instant};

const BLOCKS: u32 = 64;
const TILES: u32 = 256;
const ROUNDS: u32 = 5;

/// Time this thread spent on a CPU, which other load of the machine inflates less; wall time where the system does not
/// tell.
fn clock(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanoseconds = told
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn Error>> {
    let program = Program::parse(include_str!("../tests/ptx/pipeline.ptx"))?;
    let memory = Memory::new();
    let stride = 4 * 4096u64;
    let bytes = u64::from(BLOCKS) * u64::from(TILES) * stride;
    let k = memory.alloc("k", bytes)?;
    memory.fill(k, bytes, 0x3C)?;
    let out = memory.alloc("out", u64::from(BLOCKS) * 128 * 16)?;

    let mut params = Vec::new();
    params.extend(k.0.to_le_bytes());
    params.extend(out.0.to_le_bytes());
    params.extend(stride.to_le_bytes());
    params.extend(0.125f32.to_le_bytes());
    params.extend(TILES.to_le_bytes());
    let work = Launch {
        entry: "pipeline",
        grid: [BLOCKS, 1, 1],
        block: [128, 1, 1],
        shared_bytes: 4 * 8192,
        params: &params,
    };
    let run = |checks, threads, portable| -> Result<Report, Box<dyn Error>> {
        let options = Options {
            checks,
            threads: Some(threads),
            portable,
            ..Options::default()
        };
        Ok(launch(&program, &memory, &work, &options)?)
    };
    let start = Instant::now();
    let modes = [
        ("functional", Checks::none(), false),
        ("all checks", Checks::all(), false),
        ("functional, portable", Checks::none(), true),
    ];
    // A mode's name as argument runs that mode alone, for a profiler.
    let only = std::env::args().nth(1);
    for (name, checks, portable) in modes {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut best = Duration::MAX;
        let mut report = Report::default();
        for _ in 0..ROUNDS {
            let before = clock(start);
            report = run(checks, 1, portable)?;
            best = best.min(clock(start).saturating_sub(before));
        }
        assert!(report.is_clean(), "{:#?}", report.findings);
        let instructions = report.counts.warp_instructions;
        let rate = instructions as f64 / best.as_secs_f64() / 1e6;
        println!("1 thread, {name}: {instructions} warp instructions, {rate:.1} M/s");
    }
    if only.is_some() {
        return Ok(());
    }
    let wall = |threads| -> Result<Duration, Box<dyn Error>> {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let before = Instant::now();
            run(Checks::none(), threads, false)?;
            best = best.min(before.elapsed());
        }
        Ok(best)
    };
    let (one, two) = (wall(1)?, wall(2)?);
    println!(
        "2 threads: {:.2}x of 1 thread by wall time",
        one.as_secs_f64() / two.as_secs_f64()
    );
    Ok(())
}
