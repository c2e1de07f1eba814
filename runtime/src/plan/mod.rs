//! The work list of one launch, made on the host: no lengths are read on the device, so that a
//! ragged batch is balanced before it starts.
//!
//! ```text
//!   Batch (lengths, block table; validated) ─┐
//!   Variant (head tile, tile, warps) ────────┼─> Plan { work, merge, slots }
//!   PlanTarget (SMs × CTAs per SM) ──────────┘
//! ```
//!
//! ```
//! use pagesmith_runtime::plan::{Batch, CacheBlocks, Plan, PlanTarget};
//! use pagesmith_spec::{Arch, ModelShape, Settings, TuningSpace, Variant};
//!
//! let spec = Settings::default().kernels(&ModelShape::by_name("llama-3-8b")?)?.remove(0);
//! let tuning = TuningSpace::enumerate(&spec, Arch::SM_80).legal()[0];
//! let variant = Variant::new(spec, tuning)?;
//!
//! let table: Vec<i32> = (0..512).collect();
//! let cache = CacheBlocks { block_size: 16, count: 512 };
//! let batch = Batch::dense(cache, &[4096, 100], &table, 256)?;
//! let target = PlanTarget { sms: 108, ctas_per_sm: tuning.ctas_per_sm };
//! let plan = Plan::decode(&variant, target, 8, &batch)?;
//! assert!(plan.work().len() > 16 && !plan.merge().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod error;
mod split;

pub use batch::{Batch, CacheBlocks, MAX_LENGTH, Table};
pub use error::{BatchError, PlanError};

use pagesmith_spec::abi::{MergeItem, NO_SLOT, WorkItem};
use pagesmith_spec::{Gpu, Tuning, Variant};
use split::{SplitTarget, chunk_steps, pieces_of};
use std::cmp::Reverse;
use std::num::NonZeroU32;

/// The largest `gridDim.x` (CUDA C++ programming guide, technical specifications).
const MAX_CTAS: u64 = (1 << 31) - 1;
/// The most KV heads of a model; far above any, and low enough that products stay small.
const MAX_KV_HEADS: u32 = 1 << 16;

/// How many CTAs a launch should fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanTarget {
    /// Multiprocessors.
    pub sms: u32,
    /// CTAs that each holds at a time.
    pub ctas_per_sm: u32,
}

impl PlanTarget {
    /// What `tuning` fills of `gpu`.
    pub fn of(gpu: &Gpu, tuning: &Tuning) -> Self {
        PlanTarget {
            sms: gpu.sms,
            ctas_per_sm: tuning.ctas_per_sm,
        }
    }

    /// CTAs that are resident together.
    pub const fn wave(self) -> u64 {
        self.sms as u64 * self.ctas_per_sm as u64
    }
}

/// One piece of a sequence, the same for all of its heads.
#[derive(Clone, Copy, Debug)]
struct Piece {
    seq: u32,
    begin: u32,
    end: u32,
    /// Slot of the first head tile of the first KV head, or [`NO_SLOT`].
    slot: u32,
    /// From one head tile's slot to the next: the sequence's pieces.
    slot_step: u32,
}

/// The work list of one decode launch and of the merge after it.
///
/// [`Plan::rebuild`] reuses the buffers: a server that decodes step after step does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    work: Vec<WorkItem>,
    merge: Vec<MergeItem>,
    pieces: Vec<Piece>,
    slots: u32,
}

impl Plan {
    /// The plan of a decode launch.
    ///
    /// # Errors
    /// When the batch is not of the variant's block size and table form, or is too large.
    pub fn decode(
        variant: &Variant,
        target: PlanTarget,
        kv_heads: u32,
        batch: &Batch<'_>,
    ) -> Result<Self, PlanError> {
        let mut plan = Plan::default();
        plan.rebuild(variant, target, kv_heads, batch)?;
        Ok(plan)
    }

    /// Makes this the plan of another launch, in the same buffers.
    ///
    /// # Errors
    /// As [`Plan::decode`]; the plan is empty then.
    pub fn rebuild(
        &mut self,
        variant: &Variant,
        target: PlanTarget,
        kv_heads: u32,
        batch: &Batch<'_>,
    ) -> Result<(), PlanError> {
        self.work.clear();
        self.merge.clear();
        self.pieces.clear();
        self.slots = 0;
        check(variant, target, kv_heads, batch)?;

        let tuning = variant.tuning();
        let group = variant.spec().group;
        let tiles = group.div_ceil(tuning.head_tile);
        let columns = u64::from(kv_heads) * u64::from(tiles);
        // Pieces start at whole steps: all warps of the CTA then have the same number of tiles.
        let step = tuning.warps * tuning.tile_tokens;
        let steps = batch.lengths().map(|length| length.div_ceil(step));
        let chunk = chunk_steps(
            steps.clone(),
            SplitTarget {
                wave: target.wave(),
                heads: columns,
            },
        )
        .unwrap_or(NonZeroU32::MIN);

        let items: u64 = steps
            .clone()
            .map(|steps| u64::from(pieces_of(steps, chunk)))
            .sum::<u64>()
            * columns;
        if items > MAX_CTAS {
            return Err(PlanError::TooLarge {
                items,
                limit: MAX_CTAS,
            });
        }
        // In range from here: every index below is less than `items`.
        self.cut(batch, step, chunk, columns as u32);
        self.pieces.sort_unstable_by_key(|piece| {
            (Reverse(piece.end - piece.begin), piece.seq, piece.begin)
        });
        self.work.reserve(items as usize);
        for piece in &self.pieces {
            self.work
                .extend(head_tiles(kv_heads, group, tuning.head_tile).zip(0..).map(
                    |((kv_head, head_begin), column)| WorkItem {
                        q_token: piece.seq,
                        seq: piece.seq,
                        kv_head,
                        head_begin,
                        kv_begin: piece.begin,
                        kv_end: piece.end,
                        slot: match piece.slot {
                            NO_SLOT => NO_SLOT,
                            slot => slot + column * piece.slot_step,
                        },
                        reserved: 0,
                    },
                ));
        }
        self.list_merges(kv_heads, group, tuning.head_tile);
        Ok(())
    }

    /// Cuts each sequence into near-equal pieces of at most `chunk` steps and gives out slots.
    fn cut(&mut self, batch: &Batch<'_>, step: u32, chunk: NonZeroU32, columns: u32) {
        for (seq, length) in (0u32..).zip(batch.lengths()) {
            let steps = length.div_ceil(step);
            let count = pieces_of(steps, chunk);
            let first_slot = self.slots;
            if count > 1 {
                self.slots += count * columns;
            }
            let at = |index: u32| {
                let steps = u64::from(steps) * u64::from(index) / u64::from(count);
                (steps * u64::from(step)).min(u64::from(length)) as u32
            };
            self.pieces.extend((0..count).map(|index| Piece {
                seq,
                begin: at(index),
                end: at(index + 1),
                slot: if count > 1 {
                    first_slot + index
                } else {
                    NO_SLOT
                },
                slot_step: count,
            }));
        }
    }

    /// One merge for each head tile of each sequence that was cut.
    fn list_merges(&mut self, kv_heads: u32, group: u32, head_tile: u32) {
        for piece in &self.pieces {
            if piece.slot == NO_SLOT || piece.begin != 0 {
                continue;
            }
            self.merge
                .extend(head_tiles(kv_heads, group, head_tile).zip(0..).map(
                    |((kv_head, head_begin), column)| MergeItem {
                        q_token: piece.seq,
                        q_head: kv_head * group + head_begin,
                        slot_begin: piece.slot + column * piece.slot_step,
                        slot_count: piece.slot_step,
                    },
                ));
        }
    }

    /// One CTA each of the decode kernel, longest first: what starts last ends soonest.
    pub fn work(&self) -> &[WorkItem] {
        &self.work
    }

    /// One CTA each of the merge kernel; empty when no sequence was cut.
    pub fn merge(&self) -> &[MergeItem] {
        &self.merge
    }

    /// Slots for partial results.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of `partial_out`: f32 `[slots, head_tile, head_dim]`.
    pub fn partial_out_bytes(&self, variant: &Variant) -> u64 {
        self.partial_lse_bytes(variant) * u64::from(variant.spec().head_dim)
    }

    /// Bytes of `partial_lse`: f32 `[slots, head_tile]`.
    pub fn partial_lse_bytes(&self, variant: &Variant) -> u64 {
        u64::from(self.slots) * u64::from(variant.tuning().head_tile) * 4
    }
}

/// (KV head, first query head of the tile inside the group), the tiles of a KV head together: they
/// read the same KV.
fn head_tiles(kv_heads: u32, group: u32, head_tile: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..kv_heads).flat_map(move |kv_head| {
        (0..group)
            .step_by(head_tile as usize)
            .map(move |head| (kv_head, head))
    })
}

fn check(
    variant: &Variant,
    target: PlanTarget,
    kv_heads: u32,
    batch: &Batch<'_>,
) -> Result<(), PlanError> {
    let spec = variant.spec();
    let tuning = variant.tuning();
    if batch.cache().block_size != spec.block_size {
        return Err(PlanError::BlockSize {
            batch: batch.cache().block_size,
            kernel: spec.block_size,
        });
    }
    if batch.table().form() != spec.table {
        return Err(PlanError::TableForm {
            batch: batch.table().form(),
            kernel: spec.table,
        });
    }
    let positive = [
        ("kv_heads", kv_heads),
        ("sms", target.sms),
        ("ctas_per_sm", target.ctas_per_sm),
        ("tuning.head_tile", tuning.head_tile),
        ("tuning.warps", tuning.warps),
        ("tuning.tile_tokens", tuning.tile_tokens),
    ];
    for (field, value) in positive {
        if value == 0 || value > MAX_KV_HEADS {
            return Err(PlanError::Field {
                field,
                value: u64::from(value),
                reason: "is out of range",
                fix: "use a number from 1 to 65536",
            });
        }
    }
    if u64::from(tuning.warps) * u64::from(tuning.tile_tokens) > u64::from(MAX_KV_HEADS) {
        return Err(PlanError::Field {
            field: "tuning.tile_tokens",
            value: u64::from(tuning.tile_tokens),
            reason: "makes a step of more than 65536 tokens",
            fix: "use a tuning of the space",
        });
    }
    let columns = u64::from(kv_heads) * u64::from(spec.group.div_ceil(tuning.head_tile));
    let fewest = batch.sequences() as u64 * columns;
    if fewest > MAX_CTAS {
        return Err(PlanError::TooLarge {
            items: fewest,
            limit: MAX_CTAS,
        });
    }
    Ok(())
}
