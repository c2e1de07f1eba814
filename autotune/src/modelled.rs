//! Times without a GPU: the workload emulated, its machine instructions counted, its time predicted.

use crate::workload::{Tensors, WorkloadError};
use pagesmith_emulator::{Options, Program, Report};
use pagesmith_runtime::device::emulated::{EmulatedBuffer, EmulatedOptions, Findings};
use pagesmith_runtime::{Device, Emulated, Kernels, LoadError};
use pagesmith_spec::gpu::{Bytes, Footprint};
use pagesmith_spec::{Engine, Gpu, Image, KernelSpec, Variant, Workload};
use pagesmith_timing::{
    LaunchProfile, LineCounts, Prediction, SassCounts, TimingError, count_sass, predict,
};

/// Symbol of the decode kernel.
pub const DECODE: &str = "pagesmith_decode";
/// Symbol of the kernel that merges split partials.
pub const MERGE: &str = "pagesmith_merge";
/// Threads of a merge CTA.
const MERGE_THREADS: u32 = 128;
/// Bytes of a memory sector.
const SECTOR: u64 = 32;

/// A time that could not be predicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelledError {
    /// The workload could not be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The image does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its launches could not be counted or predicted.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The PTX cannot be read.
    #[error(transparent)]
    Ptx(#[from] pagesmith_emulator::ParseError),
}

/// Predicts variants of one spec over one workload, whose tensors they share.
#[derive(Debug)]
pub struct Modeller {
    kernels: Kernels<Emulated>,
    tensors: Tensors<EmulatedBuffer>,
    workload: Workload,
}

/// A predicted time with everything it was predicted from.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// The time, and what bounds it.
    pub prediction: Prediction,
    /// Decode, and the merge where the plan splits.
    pub launches: Vec<Launched>,
}

/// One emulated launch.
#[derive(Clone, Debug)]
pub struct Launched {
    /// What the emulator counted.
    pub report: Report,
    /// What a GPU would issue.
    pub sass: SassCounts,
    /// What the model was told.
    pub profile: LaunchProfile,
}

impl Modelled {
    /// Machine instructions that all launches issue, each once a warp.
    pub fn warp_instructions(&self) -> u64 {
        self.launches.iter().map(|launch| launch.sass.total()).sum()
    }

    /// Shared-memory wavefronts lost to bank conflicts.
    pub fn bank_conflicts(&self) -> u64 {
        self.launches
            .iter()
            .map(|launch| launch.report.counts.shared_conflicts())
            .sum()
    }

    /// Sectors read from and written to the allocations that `of` accepts, all launches together.
    pub fn sectors(&self, of: impl Fn(&str) -> bool) -> u64 {
        self.launches
            .iter()
            .flat_map(|launch| &launch.report.counts.global)
            .filter(|(name, _)| of(name))
            .map(|(_, traffic)| {
                traffic.read_sectors() + traffic.stores.sectors + traffic.atomics.sectors
            })
            .sum()
    }
}

impl Modeller {
    /// Makes the workload's tensors on an emulated `gpu`.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn new(gpu: &Gpu, spec: &KernelSpec, workload: Workload) -> Result<Self, ModelledError> {
        // Correctness is proved elsewhere, under every check: here only counts are wanted.
        let device = Emulated::with_options(
            gpu.clone(),
            EmulatedOptions {
                launch: Options::functional(),
                findings: Findings::Collect,
            },
        );
        Ok(Modeller {
            tensors: Tensors::new(&device, spec, workload)?,
            kernels: Kernels::new(device),
            workload,
        })
    }

    /// Emulates one decode by `variant` and predicts its time.
    ///
    /// # Errors
    /// When the image does not load, or a launch cannot be run, counted or predicted.
    pub fn model(&mut self, variant: &Variant, image: &Image) -> Result<Modelled, ModelledError> {
        let program = Program::parse(&image.ptx)?;
        self.kernels.load(variant, image)?;
        let stream = self.kernels.device().stream();
        let mut plan = self.tensors.plan(&mut self.kernels, &stream)?;
        self.tensors.decode(&mut self.kernels, &mut plan, &stream)?;

        let reports = self.kernels.device().take_reports();
        let mut launches = Vec::with_capacity(reports.len());
        for launched in reports {
            let (sass, resources) = counted(image, &program, &launched.entry, &launched.report)?;
            let totals = Totals::of(&launched.report);
            let profile = if launched.entry == DECODE {
                let work = plan.plan().work();
                LaunchProfile {
                    name: String::from("decode"),
                    footprint: Footprint {
                        registers: resources.registers,
                        shared_bytes: resources.shared_bytes + variant.shared_bytes(),
                        threads: variant.tuning().threads(),
                    },
                    cta_weights: work
                        .iter()
                        .map(|item| f64::from(item.kv_end - item.kv_begin))
                        .collect(),
                    dram_bytes: Bytes(compulsory_bytes(variant.spec(), self.workload)),
                    cta_bytes_in_flight: Bytes(bytes_in_flight(variant)),
                    // Work item, block ids, first rows.
                    dependent_loads: 3,
                    instructions: sass.by_class.clone(),
                    l2_bytes: totals.l2_bytes,
                    shared_wavefronts: totals.shared_wavefronts,
                }
            } else {
                LaunchProfile {
                    name: String::from("merge"),
                    footprint: Footprint {
                        registers: resources.registers,
                        shared_bytes: resources.shared_bytes,
                        threads: MERGE_THREADS,
                    },
                    cta_weights: plan
                        .plan()
                        .merge()
                        .iter()
                        .map(|item| f64::from(item.slot_count))
                        .collect(),
                    // Partials were written just before, and are still in L2.
                    dram_bytes: Bytes(0),
                    cta_bytes_in_flight: Bytes(16 * u64::from(MERGE_THREADS)),
                    // Item, partial sums, partial rows.
                    dependent_loads: 3,
                    instructions: sass.by_class.clone(),
                    l2_bytes: totals.l2_bytes,
                    shared_wavefronts: totals.shared_wavefronts,
                }
            };
            launches.push(Launched {
                report: launched.report,
                sass,
                profile,
            });
        }
        let profiles: Vec<LaunchProfile> = launches
            .iter()
            .map(|launch| launch.profile.clone())
            .collect();
        Ok(Modelled {
            prediction: predict(self.kernels.device().gpu(), &profiles)?,
            launches,
        })
    }
}

/// Machine instructions of a launch, and what its kernel takes of a multiprocessor.
fn counted(
    image: &Image,
    program: &Program,
    entry: &str,
    report: &Report,
) -> Result<(SassCounts, pagesmith_spec::Resources), TimingError> {
    let lines: LineCounts = program
        .instruction_lines(entry)
        .map(|line| line.ptx_line)
        .zip(report.instruction_executions.iter().copied())
        .collect();
    let sass = count_sass(&image.cubin, entry, &lines)?;
    let resources = image
        .entry(entry)
        .map(|entry| entry.resources)
        .unwrap_or_default();
    Ok((sass, resources))
}

struct Totals {
    l2_bytes: Bytes,
    shared_wavefronts: u64,
}

impl Totals {
    fn of(report: &Report) -> Self {
        let sectors: u64 = report
            .counts
            .global
            .values()
            .map(|traffic| {
                traffic.read_sectors() + traffic.stores.sectors + traffic.atomics.sectors
            })
            .sum();
        Totals {
            l2_bytes: Bytes(SECTOR * sectors),
            shared_wavefronts: report.counts.shared().wavefronts,
        }
    }
}

/// K and V of every token of a workload.
pub fn kv_bytes(spec: &KernelSpec, workload: Workload) -> u64 {
    let tokens = u64::from(workload.batch) * u64::from(workload.tokens);
    tokens * u64::from(workload.kv_heads) * spec.kv_bytes_per_token()
}

/// What must cross the DRAM interface: K, V, queries, outputs and the block table, each once.
pub fn compulsory_bytes(spec: &KernelSpec, workload: Workload) -> u64 {
    let row = u64::from(spec.head_dim) * u64::from(spec.query.bytes());
    let batch = u64::from(workload.batch);
    let heads = batch * u64::from(workload.kv_heads) * u64::from(spec.group);
    let table = batch * 4 * u64::from(workload.tokens.div_ceil(spec.block_size));
    kv_bytes(spec, workload) + 2 * heads * row + table
}

/// Bytes of loads that a CTA keeps outstanding: all stages of its warps' rings but the one in use, or the
/// one tile that a `simt` warp holds in registers.
fn bytes_in_flight(variant: &Variant) -> u64 {
    let (spec, tuning) = (variant.spec(), variant.tuning());
    let tile = u64::from(tuning.tile_tokens) * spec.kv_bytes_per_token();
    let waiting = match tuning.engine {
        Engine::Simt => 1,
        Engine::Mma => u64::from(tuning.stages) - 1,
    };
    u64::from(tuning.warps) * waiting * tile
}
