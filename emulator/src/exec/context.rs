//! What the warps of a block share, and the means to report faults.

use super::warp::Geometry;
use crate::check::{Conflict, Details, FindingKind, Party, Shadow, Sink, Site};
use crate::count::{AllocationTraffic, SharedTraffic};
use crate::lower::Entry;
use crate::memory::Region;
use crate::report::InstructionTraffic;
use crate::{Checks, Counters, Options};

/// What all blocks of a launch share.
#[derive(Debug)]
pub(super) struct Env<'a> {
    pub(super) entry: &'a Entry,
    pub(super) regions: Vec<Region>,
    pub(super) constants: &'a [u8],
    pub(super) params: &'a [u8],
    pub(super) options: &'a Options,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) shared_bytes: u32,
}

/// Counters of one worker, over all blocks it ran.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) executions: Vec<u64>,
    pub(super) instructions: Vec<InstructionTraffic>,
    pub(super) regions: Vec<AllocationTraffic>,
    pub(super) shared_loads: SharedTraffic,
    pub(super) shared_stores: SharedTraffic,
    pub(super) shared_async: SharedTraffic,
    pub(super) shared_atomics: SharedTraffic,
    pub(super) blocks: u64,
    pub(super) warps: u64,
}

/// Which shared-memory counter an access belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum SharedUse {
    Load,
    Store,
    Async,
    Atomic,
}

/// Which global counter an access belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum GlobalUse {
    Load,
    Store,
    Async,
    Atomic,
}

/// The block that a worker is running.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) env: &'a Env<'a>,
    pub(super) checks: Checks,
    pub(super) count_traffic: bool,
    /// The CPU has what the fast versions need.
    pub(super) fast: bool,
    pub(super) geometry: Geometry,
    pub(super) shared: Vec<u32>,
    pub(super) shadow: Shadow,
    /// Whether the shadow is kept.
    pub(super) shadowed: bool,
    /// Local memory of all threads, and one byte a byte: was it written.
    pub(super) local: Vec<u8>,
    pub(super) local_written: Vec<bool>,
    /// The region that each instruction touched last.
    pub(super) hints: Vec<u32>,
    pub(super) tally: Tally,
    pub(super) sink: Sink,
    /// Instructions the block may still execute.
    pub(super) budget: u64,
    /// Nothing of the block runs any more.
    pub(super) aborted: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(env: &'a Env<'a>) -> Self {
        let n = env.entry.code.len();
        let count_traffic = env.options.counters == Counters::All;
        let checks = env.options.checks;
        Self {
            env,
            checks,
            count_traffic,
            fast: super::has_avx2() && !env.options.portable,
            geometry: Geometry {
                grid: env.grid,
                block: env.block,
                index: [0; 3],
                dynamic_shared: env.dynamic_shared,
                total_shared: env.shared_bytes,
            },
            shared: Vec::new(),
            shadow: Shadow::default(),
            shadowed: checks.races || checks.uninitialised,
            local: Vec::new(),
            local_written: Vec::new(),
            hints: vec![0; n],
            tally: Tally {
                executions: vec![0; n],
                instructions: if count_traffic {
                    vec![InstructionTraffic::default(); n]
                } else {
                    Vec::new()
                },
                regions: vec![AllocationTraffic::default(); env.regions.len()],
                ..Tally::default()
            },
            sink: Sink::new(env.options.finding_limit),
            budget: 0,
            aborted: false,
        }
    }

    /// Prepares for the next block.
    pub(super) fn reset(&mut self, index: [u32; 3], warps: usize) {
        self.geometry.index = index;
        let words = (self.env.shared_bytes as usize).div_ceil(4);
        self.shared.clear();
        self.shared.resize(words, 0);
        if self.shadowed {
            self.shadow.reset(words * 4, warps);
        }
        let local = self.env.entry.local_bytes as usize * warps * 32;
        self.local.clear();
        self.local.resize(local, 0);
        self.local_written.clear();
        self.local_written.resize(local, false);
        self.budget = self.env.options.instruction_limit;
        self.aborted = false;
        self.tally.blocks += 1;
        self.tally.warps += warps as u64;
    }

    /// Records a fault.
    #[cold]
    pub(super) fn report(
        &mut self,
        kind: FindingKind,
        warp: u32,
        lane: u32,
        pc: u32,
        details: impl FnOnce() -> Details,
    ) {
        let site = Site {
            block: self.geometry.index,
            warp,
            lane,
            pc,
        };
        self.sink.record(self.env.entry, kind, site, details);
    }

    /// A fault without an address.
    #[cold]
    pub(super) fn report_plain(
        &mut self,
        kind: FindingKind,
        warp: u32,
        lane: u32,
        pc: u32,
        message: impl FnOnce() -> String,
    ) {
        self.report(kind, warp, lane, pc, || Details {
            address: None,
            allocation: None,
            message: message(),
        });
    }

    /// Reports what the shadow of shared memory says.
    #[cold]
    pub(super) fn report_conflict(
        &mut self,
        conflict: Conflict,
        who: Party,
        pc: u32,
        address: u32,
        action: &'static str,
    ) {
        let lane_name = |lane: u32| match lane {
            crate::check::ALL_LANES => "several lanes".to_owned(),
            crate::check::ATOMIC => "an atomic".to_owned(),
            lane => format!("lane {lane}"),
        };
        let (kind, wanted) = match conflict {
            Conflict::Uninitialised => {
                (FindingKind::UninitialisedMemory, self.checks.uninitialised)
            }
            Conflict::InFlight { .. } => (FindingKind::InFlightCopy, self.checks.races),
            Conflict::Write { .. } | Conflict::Read { .. } => {
                (FindingKind::SharedRace, self.checks.races)
            }
        };
        if !wanted {
            return;
        }
        let lane = if who.lane < 32 { who.lane } else { 0 };
        self.report(kind, who.warp, lane, pc, || Details {
            address: Some(u64::from(address)),
            allocation: None,
            message: match conflict {
                Conflict::Uninitialised => format!("{action} of shared bytes at {address:#x} that nothing wrote"),
                Conflict::InFlight { warp, lane } => format!(
                    "{action} of shared bytes at {address:#x} while the cp.async of warp {warp} {} is in flight",
                    lane_name(lane)
                ),
                Conflict::Write { warp, lane } => format!(
                    "{action} of shared bytes at {address:#x} is not ordered after the write by warp {warp} {}",
                    lane_name(lane)
                ),
                Conflict::Read { warp, lane } => format!(
                    "{action} of shared bytes at {address:#x} is not ordered after the read by warp {warp} {}",
                    lane_name(lane)
                ),
            },
        });
    }

    /// Counts a shared-memory access.
    #[inline]
    pub(super) fn count_shared(
        &mut self,
        pc: u32,
        purpose: SharedUse,
        wavefronts: u32,
        minimum: u32,
    ) {
        let traffic = SharedTraffic {
            requests: 1,
            wavefronts: u64::from(wavefronts),
            minimum: u64::from(minimum),
        };
        match purpose {
            SharedUse::Load => &mut self.tally.shared_loads,
            SharedUse::Store => &mut self.tally.shared_stores,
            SharedUse::Async => &mut self.tally.shared_async,
            SharedUse::Atomic => &mut self.tally.shared_atomics,
        }
        .merge(&traffic);
        if let Some(instruction) = self.tally.instructions.get_mut(pc as usize) {
            instruction.shared.merge(&traffic);
        }
    }

    /// Counts a global access of some lanes that all hit one region.
    #[inline]
    pub(super) fn count_global(
        &mut self,
        pc: u32,
        purpose: GlobalUse,
        region: u32,
        sectors: u32,
        bytes: u32,
    ) {
        let traffic = crate::count::Traffic {
            requests: 1,
            sectors: u64::from(sectors),
            bytes: u64::from(bytes),
        };
        if let Some(region) = self.tally.regions.get_mut(region as usize) {
            match purpose {
                GlobalUse::Load => &mut region.loads,
                GlobalUse::Store => &mut region.stores,
                GlobalUse::Async => &mut region.async_copies,
                GlobalUse::Atomic => &mut region.atomics,
            }
            .merge(&traffic);
        }
        if let Some(instruction) = self.tally.instructions.get_mut(pc as usize) {
            instruction.global.merge(&traffic);
        }
    }
}
