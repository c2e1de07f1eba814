//! The host's description of a batch, validated before anything is planned or launched.

use super::BatchError;
use pagesmith_spec::{KernelSpec, TableForm};

/// The longest sequence: token positions are 32-bit in a work item, and signed in most servers.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// The sequences of one decode launch and where their blocks are, borrowed from the caller.
///
/// A `Batch` exists only if every live entry of its table is a block of the cache. Entries beyond a
/// sequence's length are never looked at: servers leave stale ids there.
///
/// ```
/// use pagesmith_runtime::plan::{Batch, CacheBlocks};
///
/// let cache = CacheBlocks { block_size: 16, count: 100 };
/// // Three sequences, rows of four entries; -1 and 999 lie beyond the live ones.
/// let table = [
///     7, 3, 9, -1,
///     4, -1, -1, -1,
///     999, 999, 999, 999,
/// ];
/// let batch = Batch::dense(cache, &[40, 16, 0], &table, 4)?;
/// assert_eq!(batch.sequences(), 3);
///
/// let error = Batch::dense(cache, &[65, 16, 0], &table, 4).unwrap_err();
/// assert!(error.to_string().contains("sequence 0: length 65 needs 5 blocks"));
/// # Ok::<(), pagesmith_runtime::plan::BatchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    cache: CacheBlocks,
    table: Table<'a>,
}

/// The blocks of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheBlocks {
    /// Tokens of one block.
    pub block_size: u32,
    /// Blocks of the cache: ids are below.
    pub count: u32,
}

/// Where the blocks of each sequence are, in one of the two forms that servers keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table<'a> {
    /// One row of block ids per sequence, as vLLM keeps it.
    Dense {
        /// Tokens of each sequence.
        seq_lens: &'a [u32],
        /// `[sequences, row]`.
        entries: &'a [i32],
        /// Entries from one row to the next.
        row: usize,
    },
    /// Compressed rows, as FlashInfer keeps it.
    Csr {
        /// Where each sequence's ids begin in `indices`: `[sequences + 1]`.
        indptr: &'a [i32],
        /// Block ids.
        indices: &'a [i32],
        /// Tokens in each sequence's last block: `[sequences]`; not looked at without blocks.
        last_block_len: &'a [i32],
    },
}

impl Table<'_> {
    /// Which form it is.
    pub const fn form(&self) -> TableForm {
        match self {
            Table::Dense { .. } => TableForm::Dense,
            Table::Csr { .. } => TableForm::Csr,
        }
    }
}

impl<'a> Batch<'a> {
    /// A batch with a dense table: `entries` is `[sequences, row]`.
    ///
    /// # Errors
    /// When the table is too small, a length does not fit its row, or a live entry is no block.
    pub fn dense(
        cache: CacheBlocks,
        seq_lens: &'a [u32],
        entries: &'a [i32],
        row: usize,
    ) -> Result<Self, BatchError> {
        check_cache(cache)?;
        let needed = seq_lens.len().checked_mul(row);
        if needed.is_none_or(|needed| needed > entries.len()) {
            return Err(BatchError::TableShape {
                sequences: seq_lens.len(),
                row,
                entries: entries.len(),
            });
        }
        for (sequence, &length) in seq_lens.iter().enumerate() {
            let needed = check_length(cache, sequence, length)?;
            if needed > row {
                return Err(BatchError::LengthBeyondTable {
                    sequence,
                    length,
                    needed,
                    block_size: cache.block_size,
                    available: row,
                });
            }
            let start = sequence * row;
            check_ids(cache, sequence, &entries[start..start + needed])?;
        }
        Ok(Batch {
            cache,
            table: Table::Dense {
                seq_lens,
                entries,
                row,
            },
        })
    }

    /// A batch with FlashInfer's table. The length of a sequence with n blocks is
    /// `(n - 1) * block_size + last_block_len`, and 0 without blocks.
    ///
    /// # Errors
    /// When the arrays do not fit together, a last block is empty or overfull, or an entry is no
    /// block.
    pub fn csr(
        cache: CacheBlocks,
        indptr: &'a [i32],
        indices: &'a [i32],
        last_block_len: &'a [i32],
    ) -> Result<Self, BatchError> {
        check_cache(cache)?;
        let sequences = last_block_len.len();
        if indptr.len() != sequences + 1 {
            return Err(BatchError::IndptrLength {
                found: indptr.len(),
                needed: sequences + 1,
            });
        }
        if indptr[0] != 0 {
            return Err(BatchError::Indptr {
                index: 0,
                value: indptr[0],
                reason: "is not 0",
            });
        }
        for (sequence, &last) in last_block_len.iter().enumerate() {
            let (begin, end) = (indptr[sequence], indptr[sequence + 1]);
            let wrong = |reason| BatchError::Indptr {
                index: sequence + 1,
                value: end,
                reason,
            };
            if end < begin {
                return Err(wrong("is below the entry before it"));
            }
            // Both are at least indptr[0] = 0 now.
            let (begin, end) = (begin as usize, end as usize);
            if end > indices.len() {
                return Err(wrong("is beyond the end of indices"));
            }
            let blocks = end - begin;
            if blocks == 0 {
                continue;
            }
            if last < 1 || last as u32 > cache.block_size {
                return Err(BatchError::LastBlockLen {
                    sequence,
                    value: last,
                    block_size: cache.block_size,
                });
            }
            let length = (blocks as u64 - 1) * u64::from(cache.block_size) + last as u64;
            if length > u64::from(MAX_LENGTH) {
                return Err(BatchError::TooLong { sequence, length });
            }
            check_ids(cache, sequence, &indices[begin..end])?;
        }
        Ok(Batch {
            cache,
            table: Table::Csr {
                indptr,
                indices,
                last_block_len,
            },
        })
    }

    /// Number of sequences.
    pub const fn sequences(&self) -> usize {
        match self.table {
            Table::Dense { seq_lens, .. } => seq_lens.len(),
            Table::Csr { last_block_len, .. } => last_block_len.len(),
        }
    }

    /// KV tokens of a sequence; 0 beyond the last one.
    pub fn length(&self, sequence: usize) -> u32 {
        match self.table {
            Table::Dense { seq_lens, .. } => seq_lens.get(sequence).copied().unwrap_or(0),
            Table::Csr {
                indptr,
                last_block_len,
                ..
            } => {
                let Some(&last) = last_block_len.get(sequence) else {
                    return 0;
                };
                // The constructor made sure of 0 <= begin <= end and of the product's range.
                let blocks = (indptr[sequence + 1] - indptr[sequence]) as u32;
                match blocks.checked_sub(1) {
                    Some(full) => full * self.cache.block_size + last as u32,
                    None => 0,
                }
            }
        }
    }

    /// KV tokens of each sequence.
    pub fn lengths(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        (0..self.sequences()).map(|sequence| self.length(sequence))
    }

    /// The cache whose blocks the table names.
    pub const fn cache(&self) -> CacheBlocks {
        self.cache
    }

    /// The table as it was given.
    pub const fn table(&self) -> Table<'a> {
        self.table
    }
}

/// Blocks that a sequence of `length` tokens occupies.
fn check_length(cache: CacheBlocks, sequence: usize, length: u32) -> Result<usize, BatchError> {
    if length > MAX_LENGTH {
        return Err(BatchError::TooLong {
            sequence,
            length: u64::from(length),
        });
    }
    Ok(length.div_ceil(cache.block_size) as usize)
}

fn check_cache(cache: CacheBlocks) -> Result<(), BatchError> {
    if !KernelSpec::BLOCK_SIZES.contains(&cache.block_size) {
        return Err(BatchError::BlockSize {
            value: cache.block_size,
        });
    }
    Ok(())
}

fn check_ids(cache: CacheBlocks, sequence: usize, ids: &[i32]) -> Result<(), BatchError> {
    let wrong = |&id: &i32| id < 0 || id as u32 >= cache.count;
    match ids.iter().position(wrong) {
        None => Ok(()),
        Some(entry) => Err(BatchError::BlockId {
            sequence,
            entry,
            value: ids[entry],
            count: cache.count,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: CacheBlocks = CacheBlocks {
        block_size: 16,
        count: 10,
    };

    #[test]
    fn a_length_beyond_its_table_row_names_the_sequence() {
        let error = Batch::dense(CACHE, &[16, 33], &[0, 1, 2, 3], 2).unwrap_err();
        assert_eq!(
            error,
            BatchError::LengthBeyondTable {
                sequence: 1,
                length: 33,
                needed: 3,
                block_size: 16,
                available: 2
            }
        );
    }

    #[test]
    fn negative_and_out_of_range_ids_are_refused_among_the_live_entries_only() {
        for id in [-1, 10, i32::MIN, i32::MAX] {
            let error = Batch::dense(CACHE, &[17], &[0, id], 2).unwrap_err();
            assert_eq!(
                error,
                BatchError::BlockId {
                    sequence: 0,
                    entry: 1,
                    value: id,
                    count: 10
                }
            );
            assert!(Batch::dense(CACHE, &[16], &[0, id], 2).is_ok());
            assert!(Batch::csr(CACHE, &[0, 2], &[0, id], &[1]).is_err());
            // Slack behind the last row of a CSR table is as dead as a stale dense entry.
            assert!(Batch::csr(CACHE, &[0, 1], &[0, id], &[16]).is_ok());
        }
    }

    #[test]
    fn a_last_block_that_is_empty_or_overfull_is_refused() {
        for last in [0, -1, 17, i32::MIN] {
            let error = Batch::csr(CACHE, &[0, 1], &[0], &[last]).unwrap_err();
            assert!(
                matches!(error, BatchError::LastBlockLen { sequence: 0, .. }),
                "{error}"
            );
        }
        // Without blocks there is no last one.
        let batch = Batch::csr(CACHE, &[0, 0, 2], &[5, 6], &[-7, 3]).expect("valid");
        assert_eq!(batch.lengths().collect::<Vec<_>>(), [0, 19]);
    }

    #[test]
    fn an_indptr_that_does_not_fit_is_refused() {
        let ids = [0, 1, 2];
        for indptr in [
            &[0, 2][..],
            &[0, 2, 4],
            &[1, 2, 3],
            &[0, 2, 1],
            &[0, -1, 2],
            &[],
        ] {
            assert!(
                Batch::csr(CACHE, indptr, &ids, &[1, 1]).is_err(),
                "{indptr:?}"
            );
        }
    }

    #[test]
    fn a_table_smaller_than_its_rows_is_refused() {
        assert!(Batch::dense(CACHE, &[1, 1], &[0, 1, 2], 2).is_err());
        assert!(Batch::dense(CACHE, &[0, 0], &[0], usize::MAX).is_err());
    }

    #[test]
    fn an_unknown_block_size_is_refused() {
        for block_size in [0, 1, 24, u32::MAX] {
            let cache = CacheBlocks {
                block_size,
                count: 1,
            };
            assert!(Batch::dense(cache, &[], &[], 0).is_err(), "{block_size}");
        }
    }

    #[test]
    fn a_length_that_positions_cannot_express_is_refused() {
        let error = Batch::dense(CACHE, &[1 << 31], &[], 0).unwrap_err();
        assert!(matches!(
            error,
            BatchError::TableShape { .. } | BatchError::TooLong { .. }
        ));
    }
}
