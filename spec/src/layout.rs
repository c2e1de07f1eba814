//! Where an element of the KV cache lies, and how a sequence's blocks are listed.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Order inside a block. The strides of block, token and head are free launch parameters, so one
/// layout serves every outer arrangement of the same inner order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvLayout {
    /// The head dim is contiguous: `[blocks, tokens, heads, D]` (NHD), `[blocks, heads, tokens, D]`
    /// (HND), or any other strides of block, token and head.
    DimContiguous,
}

/// How a sequence finds its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableForm {
    /// `i32 [sequences, max_blocks]`, as vLLM keeps it.
    Dense,
    /// `kv_indptr [sequences + 1]`, `kv_indices [blocks in use]`, as FlashInfer keeps it.
    Csr,
}

impl KvLayout {
    /// The name used in kernel ids: the outer order most servers give it.
    pub const fn token(self) -> &'static str {
        match self {
            KvLayout::DimContiguous => "nhd",
        }
    }
}

impl TableForm {
    /// Both table forms.
    pub const ALL: [TableForm; 2] = [TableForm::Dense, TableForm::Csr];

    /// The name used in kernel ids and templates.
    pub const fn token(self) -> &'static str {
        match self {
            TableForm::Dense => "dense",
            TableForm::Csr => "csr",
        }
    }
}

impl fmt::Display for KvLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

impl fmt::Display for TableForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// Strides of a cache tensor in elements; the head dim is contiguous.
///
/// ```
/// use pagesmith_spec::layout::KvStrides;
///
/// // [blocks, tokens, heads, D] with 16-token blocks, 8 heads, D = 128
/// let nhd = KvStrides::nhd(16, 8, 128);
/// assert_eq!((nhd.block, nhd.token, nhd.head), (16 * 8 * 128, 8 * 128, 128));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KvStrides {
    /// From one block to the next.
    pub block: i64,
    /// From one token of a block to the next.
    pub token: i64,
    /// From one KV head to the next.
    pub head: i64,
}

impl KvStrides {
    /// `[blocks, tokens, heads, D]`, contiguous.
    pub const fn nhd(block_size: u32, heads: u32, head_dim: u32) -> Self {
        let token = heads as i64 * head_dim as i64;
        KvStrides {
            block: block_size as i64 * token,
            token,
            head: head_dim as i64,
        }
    }

    /// `[blocks, heads, tokens, D]`, contiguous.
    pub const fn hnd(block_size: u32, heads: u32, head_dim: u32) -> Self {
        let head = block_size as i64 * head_dim as i64;
        KvStrides {
            block: heads as i64 * head,
            token: head_dim as i64,
            head,
        }
    }
}
