//! What a kernel computes, and which combinations exist.

use crate::{ContentHash, KvDtype, KvLayout, QueryDtype, TableForm};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an attention kernel does with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// One query token per sequence attends to all of its KV tokens.
    Decode,
}

impl Operation {
    /// The name used in kernel ids.
    pub const fn token(self) -> &'static str {
        match self {
            Operation::Decode => "decode",
        }
    }
}

/// Whether a kernel also writes the log-sum-exp of its scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lse {
    /// Not written; costs nothing.
    Omitted,
    /// f32 `[tokens, query heads]`, natural logarithm, -inf for an empty sequence.
    Written,
}

impl Lse {
    /// Both choices.
    pub const ALL: [Lse; 2] = [Lse::Omitted, Lse::Written];
}

/// What a kernel computes: fixed by the model and the server's settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// The operation.
    pub operation: Operation,
    /// Elements of one head of Q, K and V.
    pub head_dim: u32,
    /// Query heads per KV head.
    pub group: u32,
    /// Tokens per KV block.
    pub block_size: u32,
    /// Element type of queries and outputs.
    pub query: QueryDtype,
    /// Element type of the KV cache.
    pub kv: KvDtype,
    /// Order inside a block.
    pub layout: KvLayout,
    /// How a sequence finds its blocks.
    pub table: TableForm,
    /// Whether the log-sum-exp is written.
    pub lse: Lse,
}

/// A spec that has no kernel: the field, what it held, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value} {reason}; {fix}")]
pub struct SpecError {
    /// The field of the spec or model.
    pub field: &'static str,
    /// What it held.
    pub value: String,
    /// Why that has no kernel.
    pub reason: &'static str,
    /// What to use instead.
    pub fix: String,
}

impl KernelSpec {
    /// Head dims that have kernels.
    pub const HEAD_DIMS: [u32; 7] = [64, 80, 96, 112, 128, 192, 256];
    /// Block sizes that have kernels.
    pub const BLOCK_SIZES: [u32; 5] = [8, 16, 32, 64, 128];
    /// Largest query heads per KV head: far above any model, low enough that index arithmetic in
    /// 32 bits is safe.
    pub const MAX_GROUP: u32 = 1024;

    /// Whether this combination has a kernel. The one place that decides.
    ///
    /// # Errors
    /// The first field without a kernel, with the supported values.
    pub fn check(&self) -> Result<(), SpecError> {
        if !Self::HEAD_DIMS.contains(&self.head_dim) {
            return Err(SpecError {
                field: "head_dim",
                value: self.head_dim.to_string(),
                reason: "has no kernel",
                fix: nearest(self.head_dim, &Self::HEAD_DIMS),
            });
        }
        if !Self::BLOCK_SIZES.contains(&self.block_size) {
            return Err(SpecError {
                field: "block_size",
                value: self.block_size.to_string(),
                reason: "has no kernel",
                fix: nearest(self.block_size, &Self::BLOCK_SIZES),
            });
        }
        if self.group == 0 || self.group > Self::MAX_GROUP {
            return Err(SpecError {
                field: "group",
                value: self.group.to_string(),
                reason: "query heads per KV head is out of range",
                fix: format!("use 1 to {}", Self::MAX_GROUP),
            });
        }
        if self.kv != KvDtype::Fp8E4M3 && self.kv != self.query.as_kv() {
            return Err(SpecError {
                field: "kv_dtype",
                value: self.kv.to_string(),
                reason: "differs from the query dtype",
                fix: format!("use {} or fp8_e4m3 with {} queries", self.query, self.query),
            });
        }
        Ok(())
    }

    /// The readable part of a kernel id, such as `decode-d128-g4-b16-bf16-e4m3-nhd-dense`.
    pub fn slug(&self) -> String {
        let lse = match self.lse {
            Lse::Omitted => "",
            Lse::Written => "-lse",
        };
        format!(
            "{}-d{}-g{}-b{}-{}-{}-{}-{}{lse}",
            self.operation.token(),
            self.head_dim,
            self.group,
            self.block_size,
            self.query,
            self.kv.token(),
            self.layout,
            self.table,
        )
    }

    /// Identifies the spec: every field, length-prefixed.
    pub fn hash(&self) -> ContentHash {
        // Exhaustive on purpose: a new field that is not hashed would let two specs share an image.
        let KernelSpec {
            operation,
            head_dim,
            group,
            block_size,
            query,
            kv,
            layout,
            table,
            lse,
        } = self;
        ContentHash::of(
            "pagesmith-spec-1",
            &[
                operation.token().as_bytes(),
                &head_dim.to_le_bytes(),
                &group.to_le_bytes(),
                &block_size.to_le_bytes(),
                query.name().as_bytes(),
                kv.name().as_bytes(),
                layout.token().as_bytes(),
                table.token().as_bytes(),
                &[u8::from(*lse == Lse::Written)],
            ],
        )
    }

    /// Bytes of K and V that one token takes for one KV head.
    pub fn kv_bytes_per_token(&self) -> u64 {
        2 * u64::from(self.head_dim) * u64::from(self.kv.bytes())
    }
}

impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.slug())
    }
}

/// "use 64 or 80", the supported values around `value`, and the whole list.
fn nearest(value: u32, supported: &[u32]) -> String {
    let below = supported.iter().rev().find(|&&candidate| candidate < value);
    let above = supported.iter().find(|&&candidate| candidate > value);
    let near = match (below, above) {
        (Some(below), Some(above)) => format!("the nearest are {below} and {above}"),
        (Some(only), None) | (None, Some(only)) => format!("the nearest is {only}"),
        (None, None) => String::from("none is near"),
    };
    let list: Vec<String> = supported.iter().map(u32::to_string).collect();
    format!("{near} (supported: {})", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn llama() -> KernelSpec {
        KernelSpec {
            operation: Operation::Decode,
            head_dim: 128,
            group: 4,
            block_size: 16,
            query: QueryDtype::Bf16,
            kv: KvDtype::Fp8E4M3,
            layout: KvLayout::DimContiguous,
            table: TableForm::Dense,
            lse: Lse::Omitted,
        }
    }

    #[test]
    fn head_dims_that_peers_get_silently_wrong_are_refused_by_name() {
        for head_dim in [0, 1, 63, 72, 136, 512, u32::MAX] {
            let error = KernelSpec {
                head_dim,
                ..llama()
            }
            .check()
            .unwrap_err();
            assert_eq!(error.field, "head_dim");
            assert!(error.to_string().contains(&head_dim.to_string()), "{error}");
        }
    }

    #[test]
    fn every_supported_combination_passes() {
        for head_dim in KernelSpec::HEAD_DIMS {
            for block_size in KernelSpec::BLOCK_SIZES {
                for group in [1, 2, 3, 5, 7, 12, 16, 32] {
                    let spec = KernelSpec {
                        head_dim,
                        block_size,
                        group,
                        ..llama()
                    };
                    assert_eq!(spec.check(), Ok(()));
                }
            }
        }
    }

    #[test]
    fn a_cache_of_the_other_16_bit_dtype_is_refused() {
        let error = KernelSpec {
            kv: KvDtype::F16,
            ..llama()
        }
        .check()
        .unwrap_err();
        assert_eq!(error.field, "kv_dtype");
    }

    #[test]
    fn specs_that_differ_in_any_one_field_never_share_a_hash() {
        let base = llama();
        let others = [
            KernelSpec {
                head_dim: 64,
                ..base.clone()
            },
            KernelSpec {
                group: 8,
                ..base.clone()
            },
            KernelSpec {
                block_size: 32,
                ..base.clone()
            },
            KernelSpec {
                query: QueryDtype::F16,
                ..base.clone()
            },
            KernelSpec {
                kv: KvDtype::Bf16,
                ..base.clone()
            },
            KernelSpec {
                table: TableForm::Csr,
                ..base.clone()
            },
            KernelSpec {
                lse: Lse::Written,
                ..base.clone()
            },
        ];
        for other in &others {
            assert_ne!(base.hash(), other.hash(), "{other}");
            assert_ne!(base.slug(), other.slug(), "{other}");
        }
    }
}
