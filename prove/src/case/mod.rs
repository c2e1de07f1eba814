//! Inputs of a decode launch as plain data: random, ragged, and hostile wherever a kernel must not look.
//!
//! ```text
//!   standard(variant) ──> CaseSpec ──Case::generate(kernel, spec, seed)──> Case
//!                         lengths, strides,                                q, K, V as bytes, block table,
//!                         values, SMs                                      strides, scales
//! ```
//!
//! NaN fills the unwritten tail of every last block, every block that no sequence owns, and the gaps of
//! padded strides. Table entries past a sequence's end are negative, huge, or name a block of NaN.

pub mod element;
mod generate;
mod spec;
mod standard;

pub use spec::{CaseSpec, Strides, TailEntries, Values};
pub use standard::{Effort, standard};

use crate::Seed;
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KernelSpec, KvDtype};

/// Strides of queries or outputs in elements; the head dim is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStrides {
    /// From one token to the next.
    pub token: usize,
    /// From one head to the next.
    pub head: usize,
}

/// How the sequences of a case find their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockTable {
    /// `[sequences, stride]`.
    Dense {
        /// Block ids, then entries that mean nothing.
        entries: Vec<i32>,
        /// Entries a row.
        stride: usize,
    },
    /// FlashInfer's form.
    Csr {
        /// `[sequences + 1]`.
        indptr: Vec<i32>,
        /// Block ids, then entries that mean nothing.
        indices: Vec<i32>,
        /// Tokens in each sequence's last block; 0 for a sequence without blocks.
        last_block_len: Vec<i32>,
    },
}

/// One decode launch. The fields are open so that a test can break one thing; the accessors panic for a
/// token that the case does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What to compute.
    pub kernel: KernelSpec,
    /// The spec's name.
    pub name: String,
    /// What it was made from.
    pub seed: Seed,
    /// KV tokens of each sequence; each has one query token.
    pub lengths: Vec<u32>,
    /// KV heads.
    pub kv_heads: u32,
    /// Multiprocessors the plan is to fill.
    pub sms: u32,
    /// Softmax scale.
    pub scale: f32,
    /// True key = stored × this; 1 for a 16-bit cache.
    pub k_scale: f32,
    /// True value = stored × this; 1 for a 16-bit cache.
    pub v_scale: f32,
    /// Queries, NaN in the gaps.
    pub q: Vec<u8>,
    /// Strides of `q`.
    pub q_strides: RowStrides,
    /// Strides of the output.
    pub out_strides: RowStrides,
    /// Keys of blocks `first_block ..`.
    pub k: Vec<u8>,
    /// Strides of `k`.
    pub k_strides: KvStrides,
    /// Values of blocks `first_block ..`.
    pub v: Vec<u8>,
    /// Strides of `v`.
    pub v_strides: KvStrides,
    /// The lowest block id in use; the memory below is never written.
    pub first_block: u32,
    /// Blocks that `k` and `v` hold.
    pub stored_blocks: u32,
    /// Where the sequences' blocks are.
    pub table: BlockTable,
    /// What lies past the end of a sequence's entries.
    pub tail: TailEntries,
}

impl Case {
    /// Elements of a head.
    pub fn head_dim(&self) -> usize {
        self.kernel.head_dim as usize
    }

    /// Query heads.
    pub fn q_heads(&self) -> u32 {
        self.kv_heads * self.kernel.group
    }

    /// Blocks of the whole cache, the unwritten ones below `first_block` included.
    pub fn num_blocks(&self) -> u32 {
        self.first_block + self.stored_blocks
    }

    /// Elements from the first to one past the last of `[sequences, query heads, D]` with these strides.
    pub fn row_extent(&self, strides: RowStrides) -> usize {
        match self.lengths.len() {
            0 => 0,
            tokens => {
                (tokens - 1) * strides.token
                    + (self.q_heads() as usize).saturating_sub(1) * strides.head
                    + self.head_dim()
            }
        }
    }

    /// The block id that holds a token.
    pub fn block(&self, sequence: usize, token: u32) -> u32 {
        let column = (token / self.kernel.block_size) as usize;
        let id = match &self.table {
            BlockTable::Dense { entries, stride } => entries[sequence * stride + column],
            BlockTable::Csr {
                indptr, indices, ..
            } => indices[indptr[sequence] as usize + column],
        };
        u32::try_from(id).expect("a live entry is a block id")
    }

    /// Byte offset in `k` of a live key.
    pub fn key_offset(&self, sequence: usize, token: u32, kv_head: u32) -> usize {
        self.kv_offset(self.k_strides, sequence, token, kv_head)
    }

    /// Byte offset in `v` of a live value.
    pub fn value_offset(&self, sequence: usize, token: u32, kv_head: u32) -> usize {
        self.kv_offset(self.v_strides, sequence, token, kv_head)
    }

    fn kv_offset(&self, strides: KvStrides, sequence: usize, token: u32, kv_head: u32) -> usize {
        let block = self.block(sequence, token) - self.first_block;
        let element = i64::from(block) * strides.block
            + i64::from(token % self.kernel.block_size) * strides.token
            + i64::from(kv_head) * strides.head;
        element as usize * self.kernel.kv.bytes() as usize
    }

    /// A key as stored, unscaled.
    pub fn key(&self, sequence: usize, token: u32, kv_head: u32) -> Vec<f64> {
        let at = self.key_offset(sequence, token, kv_head);
        self.row(self.kernel.kv, &self.k[at..])
    }

    /// A value as stored, unscaled.
    pub fn value(&self, sequence: usize, token: u32, kv_head: u32) -> Vec<f64> {
        let at = self.value_offset(sequence, token, kv_head);
        self.row(self.kernel.kv, &self.v[at..])
    }

    /// The query of a head.
    pub fn query(&self, sequence: usize, head: u32) -> Vec<f64> {
        let at = sequence * self.q_strides.token + head as usize * self.q_strides.head;
        self.row(self.kernel.query.as_kv(), &self.q[2 * at..])
    }

    fn row(&self, dtype: KvDtype, bytes: &[u8]) -> Vec<f64> {
        element::decode_all(dtype, &bytes[..self.head_dim() * dtype.bytes() as usize])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pagesmith_spec::{KvLayout, Lse, Operation, QueryDtype, TableForm};

    pub(crate) fn kernel(kv: KvDtype) -> KernelSpec {
        KernelSpec {
            operation: Operation::Decode,
            head_dim: 64,
            group: 3,
            block_size: 16,
            query: if kv == KvDtype::Bf16 {
                QueryDtype::Bf16
            } else {
                QueryDtype::F16
            },
            kv,
            layout: KvLayout::DimContiguous,
            table: TableForm::Dense,
            lse: Lse::Written,
        }
    }

    /// One sequence of one token; every live element is 1.
    pub(crate) fn one_token_of_ones(kv: KvDtype) -> Case {
        let mut case = Case::generate(&kernel(kv), &CaseSpec::of_lengths("ones", vec![1]), Seed(1));
        let one = |dtype| element::encode_all(dtype, &[1.0; 64]);
        let (key, value) = (case.key_offset(0, 0, 0), case.value_offset(0, 0, 0));
        let ones = one(kv);
        case.k[key..][..ones.len()].copy_from_slice(&ones);
        case.v[value..][..ones.len()].copy_from_slice(&ones);
        for head in 0..3 {
            let at = 2 * head * case.q_strides.head;
            case.q[at..][..128].copy_from_slice(&one(case.kernel.query.as_kv()));
        }
        case
    }

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for table in TableForm::ALL {
            for kv in KvDtype::ALL {
                for strides in Strides::ALL {
                    let kernel = KernelSpec {
                        table,
                        ..kernel(kv)
                    };
                    let spec = CaseSpec {
                        strides,
                        kv_heads: 2,
                        ..CaseSpec::of_lengths("t", vec![0, 1, 15, 16, 17, 100, 0])
                    };
                    cases.push(Case::generate(&kernel, &spec, Seed(cases.len() as u64)));
                }
            }
        }
        cases
    }

    #[test]
    fn everything_outside_live_tokens_is_nan() {
        for case in cases() {
            let bytes = case.kernel.kv.bytes() as usize;
            let mut live = vec![false; case.k.len() / bytes];
            for (sequence, &length) in case.lengths.iter().enumerate() {
                for token in 0..length {
                    for head in 0..case.kv_heads {
                        let at = case.key_offset(sequence, token, head) / bytes;
                        assert!(!live[at], "two live rows share memory");
                        live[at..at + case.head_dim()].fill(true);
                    }
                }
            }
            let keys = element::decode_all(case.kernel.kv, &case.k);
            for (at, (key, live)) in keys.iter().zip(&live).enumerate() {
                assert_eq!(key.is_nan(), !live, "element {at} of {:?}", case.k_strides);
            }
            assert!(live.contains(&false));
        }
    }

    #[test]
    fn rows_start_at_multiples_of_16_bytes() {
        for case in cases() {
            let bytes = i64::from(case.kernel.kv.bytes());
            for strides in [case.k_strides, case.v_strides] {
                for stride in [strides.block, strides.token, strides.head] {
                    assert_eq!(stride * bytes % 16, 0, "{strides:?}");
                }
            }
            for strides in [case.q_strides, case.out_strides] {
                assert_eq!((strides.token % 8, strides.head % 8), (0, 0));
            }
        }
    }

    #[test]
    fn entries_past_the_end_of_a_sequence_are_never_its_own() {
        for case in cases() {
            if let BlockTable::Dense { entries, stride } = &case.table {
                let mut stale = 0;
                for (row, &length) in entries.chunks(*stride).zip(&case.lengths) {
                    let live = length.div_ceil(case.kernel.block_size) as usize;
                    assert!(
                        row[..live]
                            .iter()
                            .all(|&id| (0..case.num_blocks() as i32).contains(&id))
                    );
                    stale += row[live..]
                        .iter()
                        .filter(|id| !(0..1000).contains(*id))
                        .count();
                }
                assert!(stale > 0, "a case without hostile entries tests nothing");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_case_and_another_seed_another() {
        let spec = CaseSpec::of_lengths("t", vec![40]);
        let kernel = kernel(KvDtype::Fp8E4M3);
        let case = Case::generate(&kernel, &spec, Seed(5));
        assert_eq!(case, Case::generate(&kernel, &spec, Seed(5)));
        assert_ne!(case.k, Case::generate(&kernel, &spec, Seed(6)).k);
        assert_ne!(case.k_scale, case.v_scale);
    }

    #[test]
    fn rising_values_raise_the_scores_along_the_sequence() {
        for (values, low, high) in [
            (Values::Rising, -40.0..-20.0, 20.0..40.0),
            (Values::Falling, 20.0..40.0, -40.0..-20.0),
            (Values::Low, -140.0..-100.0, -140.0..-100.0),
            (Values::High, 100.0..140.0, 100.0..140.0),
        ] {
            let spec = CaseSpec {
                values,
                ..CaseSpec::of_lengths("t", vec![200])
            };
            let case = Case::generate(&kernel(KvDtype::F16), &spec, Seed(9));
            let query = case.query(0, 1);
            let score = |token| {
                let dot: f64 = case
                    .key(0, token, 0)
                    .iter()
                    .zip(&query)
                    .map(|(k, q)| k * q)
                    .sum();
                dot / 8.0
            };
            let mean = |from: u32| (from..from + 5).map(score).sum::<f64>() / 5.0;
            assert!(low.contains(&mean(0)), "{values:?} starts at {}", mean(0));
            assert!(
                high.contains(&mean(195)),
                "{values:?} ends at {}",
                mean(195)
            );
        }
    }
}
