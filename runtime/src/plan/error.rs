//! What a plan refuses.

use super::batch::MAX_LENGTH;
use pagesmith_spec::TableForm;

/// A batch that does not hold together. Nothing was launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A block size without kernels.
    #[error("batch: block_size = {value} has no kernel; use 8, 16, 32, 64 or 128")]
    BlockSize {
        /// What it is.
        value: u32,
    },
    /// The dense table has fewer entries than its rows need.
    #[error(
        "batch: the table has {entries} entries, {sequences} rows of {row} need more; pass the whole table"
    )]
    TableShape {
        /// Rows.
        sequences: usize,
        /// Entries of a row.
        row: usize,
        /// Entries there are.
        entries: usize,
    },
    /// A sequence needs more blocks than its row holds.
    #[error(
        "batch: sequence {sequence}: length {length} needs {needed} blocks of {block_size}, its table row has {available}; widen the table or shorten the sequence"
    )]
    LengthBeyondTable {
        /// The sequence.
        sequence: usize,
        /// Its tokens.
        length: u32,
        /// Blocks they need.
        needed: usize,
        /// Tokens of a block.
        block_size: u32,
        /// Entries of its row.
        available: usize,
    },
    /// A sequence longer than positions can express.
    #[error("batch: sequence {sequence}: length {length} exceeds {MAX_LENGTH}; split the sequence")]
    TooLong {
        /// The sequence.
        sequence: usize,
        /// Its tokens.
        length: u64,
    },
    /// A live entry that names no block.
    #[error(
        "batch: sequence {sequence}: block id {value} of entry {entry} is not one of the cache's {count} blocks; the entry is within the sequence's length, so it must name its block"
    )]
    BlockId {
        /// The sequence.
        sequence: usize,
        /// The entry, counted inside the sequence.
        entry: usize,
        /// What it holds.
        value: i32,
        /// Blocks of the cache.
        count: u32,
    },
    /// A last block that holds no token, or more than a block.
    #[error(
        "batch: sequence {sequence}: last_block_len = {value} is not within 1..={block_size}; drop the block if it is empty"
    )]
    LastBlockLen {
        /// The sequence.
        sequence: usize,
        /// What it is.
        value: i32,
        /// Tokens of a block.
        block_size: u32,
    },
    /// `indptr` has not one entry more than there are sequences.
    #[error(
        "batch: indptr has {found} entries, last_block_len needs {needed}; pass one more than there are sequences"
    )]
    IndptrLength {
        /// Entries there are.
        found: usize,
        /// Entries needed.
        needed: usize,
    },
    /// `indptr` does not ascend from 0 to at most the length of `indices`.
    #[error(
        "batch: indptr[{index}] = {value} {reason}; it must ascend from 0 to at most the length of indices"
    )]
    Indptr {
        /// The entry.
        index: usize,
        /// What it holds.
        value: i32,
        /// What is wrong with that.
        reason: &'static str,
    },
}

/// A launch that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The batch's blocks are not the kernel's.
    #[error(
        "plan: block_size = {batch} in the batch, the kernel's is {kernel}; use the kernel of that block size"
    )]
    BlockSize {
        /// The batch's.
        batch: u32,
        /// The kernel's.
        kernel: u32,
    },
    /// The batch's table has not the kernel's form.
    #[error(
        "plan: a {batch} table in the batch, the kernel reads {kernel} ones; use the kernel of that form"
    )]
    TableForm {
        /// The batch's.
        batch: TableForm,
        /// The kernel's.
        kernel: TableForm,
    },
    /// A number that must not be 0, or is out of range.
    #[error("plan: {field} = {value} {reason}; {fix}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it is.
        value: u64,
        /// What is wrong with it.
        reason: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// More CTAs than a grid has.
    #[error("plan: {items} work items exceed the {limit} CTAs of a grid; split the batch")]
    TooLarge {
        /// Work items.
        items: u64,
        /// CTAs of a grid along x.
        limit: u64,
    },
}
