//! How fast the emulator runs: warp instructions a second on a loop of cp.async, ldmatrix and mma, functional and with
//! every check.
//!
//! `cargo run --release -p pagesmith-emulator --example throughput`

#![allow(clippy::print_stdout)]

use pagesmith_emulator::{Checks, Launch, Memory, Options, Program, launch};
use std::error::Error;
use std::time::Instant;

const BLOCKS: u32 = 64;
const TILES: u32 = 256;

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
    for threads in [1, 2] {
        for (name, checks) in [
            ("functional", Checks::none()),
            ("all checks", Checks::all()),
        ] {
            let options = Options {
                checks,
                threads: Some(threads),
                ..Options::default()
            };
            let mut best = f64::INFINITY;
            let mut instructions = 0;
            for _ in 0..5 {
                let start = Instant::now();
                let report = launch(&program, &memory, &work, &options)?;
                best = best.min(start.elapsed().as_secs_f64());
                instructions = report.counts.warp_instructions;
                for finding in &report.findings {
                    println!("{finding}");
                }
            }
            let rate = instructions as f64 / best / 1e6;
            println!(
                "{threads} thread(s), {name}: {instructions} warp instructions, {rate:.1} M/s"
            );
        }
    }
    Ok(())
}
