//! The arguments of a decode.

use super::{KvCache, LseRows, Rows};
use crate::plan::Batch;
use pagesmith_spec::KernelSpec;

/// What a decode is planned from.
#[derive(Clone, Copy, Debug)]
pub struct DecodeBatch<'a> {
    /// The kernel.
    pub spec: &'a KernelSpec,
    /// KV heads of the model.
    pub kv_heads: u32,
    /// The sequences.
    pub batch: &'a Batch<'a>,
    /// Where the kernel reads the block table.
    pub table: TablePlace,
}

/// Where the kernel reads the block table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TablePlace {
    /// In the plan's own memory, where planning copies the batch's table.
    #[default]
    Planned,
    /// In memory that [`DecodeArgs::table`] names.
    Resident,
}

/// A block table that is on the device already.
#[derive(Clone, Copy, Debug)]
pub struct ResidentTable<M> {
    entries: M,
    indptr: Option<M>,
}

impl<M> ResidentTable<M> {
    /// A dense table (`entries` alone, i32 `[sequences, row]`), or a CSR one (`entries` being
    /// `kv_indices`, with its `indptr`).
    ///
    /// # Safety
    /// When the decode runs, the memory must hold what the [`Batch`] that was planned held: the
    /// kernel follows these ids without checking them again.
    pub const unsafe fn new(entries: M, indptr: Option<M>) -> Self {
        ResidentTable { entries, indptr }
    }

    /// Block ids.
    pub const fn entries(&self) -> &M {
        &self.entries
    }

    /// Row starts of a CSR table.
    pub const fn indptr(&self) -> Option<&M> {
        self.indptr.as_ref()
    }
}

/// What scores and cached values are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// Scores, before the softmax; usually 1/√D.
    pub softmax: f32,
    /// True key = stored × `key`. 1 for 16-bit caches.
    pub key: f32,
    /// True value = stored × `value`. 1 for 16-bit caches.
    pub value: f32,
}

impl Scales {
    /// 1/√D, and an unscaled cache.
    pub fn for_head_dim(head_dim: u32) -> Self {
        Scales {
            softmax: 1.0 / (head_dim as f32).sqrt(),
            key: 1.0,
            value: 1.0,
        }
    }
}

/// The tensors of one decode: one layer of a planned batch.
#[derive(Clone, Copy, Debug)]
pub struct DecodeArgs<M> {
    /// `[sequences, query heads, D]`.
    pub query: Rows<M>,
    /// Keys.
    pub key: KvCache<M>,
    /// Values.
    pub value: KvCache<M>,
    /// `[sequences, query heads, D]`, written.
    pub out: Rows<M>,
    /// `[sequences, query heads]`, written; present exactly when the spec asks for it.
    pub lse: Option<LseRows<M>>,
    /// The block table on the device, when the plan has not its own copy.
    pub table: Option<ResidentTable<M>>,
    /// Scales.
    pub scales: Scales,
}
