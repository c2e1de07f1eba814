//! From a launch to its report: checks the launch, spreads blocks over threads, adds everything up.

use super::block::run_block;
use super::context::{Context, Env, Tally};
use super::warp::Warp;
use crate::check::Sink;
use crate::count::Counts;
use crate::memory::{MODULE_BASE, Region};
use crate::{BlockSelection, Launch, LaunchError, Location, Memory, Options, Program, Report};
use rayon::prelude::*;

/// What the emulator grants a block: the most that any GPU grants (227 KiB).
const MAX_SHARED: u64 = 232_448;
const MAX_THREADS: u64 = 1024;

/// Runs a launch.
pub(crate) fn launch(
    program: &Program,
    memory: &Memory,
    launch: &Launch<'_>,
    options: &Options,
) -> Result<Report, LaunchError> {
    let Some(entry) = program.entry(launch.entry) else {
        let known = program.entries().map(str::to_owned).collect();
        return Err(LaunchError::UnknownEntry {
            entry: launch.entry.to_owned(),
            known,
        });
    };
    check_dimensions(launch)?;
    let dynamic = u64::from(launch.shared_bytes);
    let fixed = u64::from(if dynamic == 0 {
        entry.static_shared
    } else {
        entry.dynamic_base
    });
    if fixed + dynamic > MAX_SHARED {
        return Err(LaunchError::SharedMemory {
            bytes: fixed + dynamic,
            fixed,
            dynamic,
            limit: MAX_SHARED,
        });
    }
    let (expected, given) = (u64::from(entry.param_bytes), launch.params.len() as u64);
    if given < expected || given > expected.next_multiple_of(8) {
        return Err(LaunchError::Parameters {
            entry: launch.entry.to_owned(),
            expected,
            given,
        });
    }
    let env = Env {
        entry,
        regions: regions(program, memory),
        constants: &program.module.constants,
        params: launch.params,
        options,
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.shared_bytes,
        shared_bytes: (fixed + dynamic) as u32,
    };
    let blocks = Blocks::new(launch.grid, &options.blocks)?;
    let workers = run_all(&env, &blocks, options)?;
    Ok(report(program, &env, workers))
}

fn check_dimensions(launch: &Launch<'_>) -> Result<(), LaunchError> {
    let limits = [
        ("grid.x", launch.grid[0], u32::MAX >> 1),
        ("grid.y", launch.grid[1], 65_535),
        ("grid.z", launch.grid[2], 65_535),
        ("block.x", launch.block[0], 1024),
        ("block.y", launch.block[1], 1024),
        ("block.z", launch.block[2], 64),
    ];
    for (field, value, most) in limits {
        if value == 0 || value > most {
            let why = "it must be at least 1 and within the limits of the hardware";
            return Err(LaunchError::Dimension {
                field,
                value: u64::from(value),
                why,
            });
        }
    }
    let threads = launch.block.iter().map(|n| u64::from(*n)).product();
    if threads > MAX_THREADS {
        return Err(LaunchError::Dimension {
            field: "block",
            value: threads,
            why: "a block has at most 1024 threads",
        });
    }
    Ok(())
}

/// The regions a launch sees: the module's variables, then the allocations.
fn regions(program: &Program, memory: &Memory) -> Vec<Region> {
    let module = program.module.globals.iter().map(|live| Region {
        name: live.name.clone(),
        base: MODULE_BASE,
        end: live.end(),
        live: Some(live.clone()),
    });
    module.chain(memory.snapshot()).collect()
}

/// The blocks to run, by number.
struct Blocks<'a> {
    grid: [u32; 3],
    listed: Option<&'a [[u32; 3]]>,
}

impl<'a> Blocks<'a> {
    fn new(grid: [u32; 3], selection: &'a BlockSelection) -> Result<Self, LaunchError> {
        let BlockSelection::Listed(blocks) = selection else {
            return Ok(Self { grid, listed: None });
        };
        match blocks
            .iter()
            .find(|block| (0..3).any(|axis| block[axis] >= grid[axis]))
        {
            Some(block) => Err(LaunchError::NoSuchBlock {
                block: *block,
                grid,
            }),
            None => Ok(Self {
                grid,
                listed: Some(blocks),
            }),
        }
    }

    fn count(&self) -> u64 {
        match self.listed {
            Some(blocks) => blocks.len() as u64,
            None => self.grid.iter().map(|n| u64::from(*n)).product(),
        }
    }

    fn index(&self, number: u64) -> [u32; 3] {
        if let Some(blocks) = self.listed {
            return blocks[number as usize];
        }
        let [x, y, _] = self.grid.map(u64::from);
        [
            (number % x) as u32,
            (number / x % y) as u32,
            (number / x / y) as u32,
        ]
    }
}

/// A worker: one block at a time, on the same buffers.
struct Worker<'a> {
    context: Context<'a>,
    warps: Vec<Warp>,
    /// Findings by block number.
    found: Vec<(u64, Sink)>,
}

impl<'a> Worker<'a> {
    fn new(env: &'a Env<'a>) -> Self {
        let threads: u32 = env.block.iter().product();
        let mut warps: Vec<Warp> = Vec::new();
        for index in 0..threads.div_ceil(32) {
            let mut warp = Warp::default();
            warp.prepare(env.entry, index);
            warps.push(warp);
        }
        Self {
            context: Context::new(env),
            warps,
            found: Vec::new(),
        }
    }

    fn run(mut self, number: u64, index: [u32; 3]) -> Self {
        self.context.reset(index, self.warps.len());
        if self.context.fast {
            run_block::<true>(&mut self.context, &mut self.warps);
        } else {
            run_block::<false>(&mut self.context, &mut self.warps);
        }
        if !self.context.sink.is_empty() {
            let limit = self.context.env.options.finding_limit;
            self.found.push((
                number,
                std::mem::replace(&mut self.context.sink, Sink::new(limit)),
            ));
        }
        self
    }
}

fn run_all<'a>(
    env: &'a Env<'a>,
    blocks: &Blocks<'_>,
    options: &Options,
) -> Result<Vec<Worker<'a>>, LaunchError> {
    let serial = || {
        let all = (0..blocks.count()).fold(Worker::new(env), |worker, number| {
            worker.run(number, blocks.index(number))
        });
        vec![all]
    };
    let parallel = || {
        (0..blocks.count())
            .into_par_iter()
            .fold(
                || Worker::new(env),
                |worker, number| worker.run(number, blocks.index(number)),
            )
            .collect::<Vec<_>>()
    };
    match options.threads {
        Some(0 | 1) => Ok(serial()),
        None if blocks.count() == 1 => Ok(serial()),
        None => Ok(parallel()),
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|error| LaunchError::Threads {
                threads,
                why: error.to_string(),
            })?;
            Ok(pool.install(parallel))
        }
    }
}

/// Adds the workers up. Counters commute, and findings are put in block order: the number of threads leaves no trace.
fn report(program: &Program, env: &Env<'_>, workers: Vec<Worker<'_>>) -> Report {
    let n = env.entry.code.len();
    let mut report = Report {
        instruction_executions: vec![0; n],
        ..Report::default()
    };
    let mut found = Vec::new();
    for worker in workers {
        add_tally(&mut report, env, &worker.context.tally);
        found.extend(worker.found);
    }
    let counts = &mut report.counts;
    for (kind, executions) in env.entry.kinds.iter().zip(&report.instruction_executions) {
        counts.warp_instructions += executions;
        if *executions > 0 {
            *counts.by_kind.entry(*kind).or_default() += executions;
        }
    }
    found.sort_by_key(|(number, _)| *number);
    let mut sink = Sink::new(env.options.finding_limit);
    for (_, later) in found {
        sink.append(later);
    }
    let (mut findings, dropped) = sink.finish();
    for finding in &mut findings {
        // The sink noted file numbers; here the program's names are at hand.
        finding.source = finding.source.take().and_then(|place| {
            let source = program.source(Some((place.file.parse().ok()?, place.line)))?;
            Some(Location {
                file: source.file.to_owned(),
                line: source.line,
            })
        });
    }
    report.findings = findings;
    report.findings_dropped = dropped;
    report
}

fn add_tally(report: &mut Report, env: &Env<'_>, tally: &Tally) {
    for (sum, one) in report
        .instruction_executions
        .iter_mut()
        .zip(&tally.executions)
    {
        *sum += one;
    }
    report
        .instruction_traffic
        .resize(tally.instructions.len(), Default::default());
    for (sum, one) in report
        .instruction_traffic
        .iter_mut()
        .zip(&tally.instructions)
    {
        sum.global.merge(&one.global);
        sum.shared.merge(&one.shared);
    }
    let Counts {
        global,
        shared_loads,
        shared_stores,
        shared_async_copies,
        shared_atomics,
        blocks,
        warps,
        ..
    } = &mut report.counts;
    for (region, traffic) in env.regions.iter().zip(&tally.regions) {
        if *traffic != Default::default() {
            global
                .entry(region.name.to_string())
                .or_default()
                .merge(traffic);
        }
    }
    shared_loads.merge(&tally.shared_loads);
    shared_stores.merge(&tally.shared_stores);
    shared_async_copies.merge(&tally.shared_async);
    shared_atomics.merge(&tally.shared_atomics);
    *blocks += tally.blocks;
    *warps += tally.warps;
}
