//! How a kernel computes: the free choices, and which of them are legal for a spec on an arch.

use crate::{Arch, ContentHash, KernelSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The arithmetic a kernel is built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// f32 arithmetic on the CUDA cores, straight from global memory.
    Simt,
    /// m16n8k16 tensor-core products over a cp.async pipeline in shared memory.
    Mma,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Engine; 2] = [Engine::Simt, Engine::Mma];

    /// The name used in templates and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Simt => "simt",
            Engine::Mma => "mma",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a kernel computes its spec: free to choose, never a change of result beyond rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// The arithmetic.
    pub engine: Engine,
    /// Warps of a CTA; they split its KV tokens.
    pub warps: u32,
    /// KV tokens a warp takes at a time.
    pub tile_tokens: u32,
    /// Depth of a warp's cp.async ring; 1 for `simt`, which has none.
    pub stages: u32,
    /// Query heads a CTA handles: it reads the KV of one head once for all of them.
    pub head_tile: u32,
    /// CTAs a multiprocessor holds: promised to the compiler, and what a plan fills.
    pub ctas_per_sm: u32,
}

/// Why a tuning is not in the space of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Exclusion {
    /// The field has no such value for this engine.
    #[error("{field} = {value} is not offered for this engine (offered: {offered})")]
    NotOffered {
        /// The field.
        field: String,
        /// Its value.
        value: u32,
        /// The values there are.
        offered: String,
    },
    /// A head tile much wider than the group would compute rows that nobody reads.
    #[error("a head tile of {head_tile} wastes rows on a group of {group}")]
    IdleHeads {
        /// The head tile.
        head_tile: u32,
        /// The group.
        group: u32,
    },
    /// A lane would hold more rows at once than its registers take.
    #[error("a tile of {tile_tokens} tokens puts {slots} rows in flight a lane, more than {limit}")]
    Unrolled {
        /// Rows a lane loads at once.
        slots: u32,
        /// The most that compile without spills.
        limit: u32,
        /// The tile.
        tile_tokens: u32,
    },
    /// The CTA does not fit in shared memory.
    #[error("{needed} bytes of shared memory a CTA exceed the {limit} of {arch}")]
    SharedMemory {
        /// What it needs.
        needed: u32,
        /// What the arch has for one CTA.
        limit: u32,
        /// The arch.
        arch: String,
    },
    /// The promised CTAs do not fit on a multiprocessor together.
    #[error("{ctas} CTAs of {needed} bytes exceed the {limit} bytes of shared memory of an SM")]
    SharedMemoryPerSm {
        /// CTAs promised.
        ctas: u32,
        /// Bytes each needs, the system's reserve included.
        needed: u32,
        /// What a multiprocessor has.
        limit: u32,
    },
    /// The live state does not fit the registers that the promised occupancy leaves.
    #[error(
        "about {needed} live registers a thread exceed the {limit} that {ctas} CTAs of {warps} warps leave"
    )]
    Registers {
        /// Estimated need.
        needed: u32,
        /// What is left for a thread.
        limit: u32,
        /// CTAs promised.
        ctas: u32,
        /// Warps of each.
        warps: u32,
    },
    /// The compiler had to spill.
    #[error("the compiler spilled {bytes} bytes a thread")]
    Spills {
        /// Bytes spilled.
        bytes: u32,
    },
}

impl Tuning {
    /// Values of [`Tuning::warps`].
    pub const WARPS: [u32; 3] = [2, 4, 8];
    /// Values of [`Tuning::tile_tokens`].
    pub const TILE_TOKENS: [u32; 3] = [16, 32, 64];
    /// Values of [`Tuning::stages`] with the `mma` engine.
    pub const STAGES: [u32; 3] = [2, 3, 4];
    /// Values of [`Tuning::head_tile`] with the `mma` engine: a multiple of the 8 columns of a product.
    pub const MMA_HEAD_TILES: [u32; 4] = [8, 16, 24, 32];
    /// Values of [`Tuning::head_tile`] with the `simt` engine.
    pub const SIMT_HEAD_TILES: [u32; 4] = [1, 2, 4, 8];
    /// Most rows of K or V that a lane of the `simt` engine may have in flight.
    const MAX_SLOTS: u32 = 16;
    /// Values of [`Tuning::ctas_per_sm`].
    pub const CTAS_PER_SM: [u32; 4] = [1, 2, 3, 4];

    /// Threads of a CTA.
    pub const fn threads(&self) -> u32 {
        self.warps * 32
    }

    /// KV tokens that a work item's start must be a multiple of.
    pub const fn quantum(&self) -> u32 {
        self.tile_tokens
    }

    /// Dynamic shared memory of a CTA in bytes. The kernels assert the same formula.
    ///
    /// A ring of K and V tiles for each warp, which the epilogue reuses to combine the warps.
    pub fn shared_bytes(&self, spec: &KernelSpec) -> u32 {
        let ring = match self.engine {
            Engine::Simt => 0,
            Engine::Mma => {
                self.warps * self.stages * 2 * self.tile_tokens * spec.head_dim * spec.kv.bytes()
            }
        };
        ring.max(self.combine_bytes(spec))
    }

    /// Shared memory in which the warps of a CTA combine: a padded f32 row a warp and head, so that
    /// the stores of a product's fragment hit distinct banks, and its maximum and sum.
    fn combine_bytes(&self, spec: &KernelSpec) -> u32 {
        let row = spec.head_dim + 4;
        self.warps * self.head_tile * (row + 2) * 4
    }

    /// Registers a thread needs through the main loop: the state that grows with the tuning, and what
    /// the rest took in a sweep over all head dims (nothing above these figures compiled without
    /// spills, with two exceptions that would have fitted). The compiler has the last word.
    fn live_registers(&self, spec: &KernelSpec) -> u32 {
        match self.engine {
            // Two 16-byte vectors an element wide (query and accumulator) and a score a slot, a head.
            Engine::Simt => {
                let vector = 16 / spec.kv.bytes();
                (2 * vector + self.slots(spec)) * self.head_tile + 88
            }
            // Accumulators (4 a 16-row tile), query fragments (2 a k step), scores.
            Engine::Mma => {
                let tiles = self.head_tile / 8;
                let steps = spec.head_dim / 16;
                tiles * steps * 6 + tiles * self.tile_tokens / 4 + 49
            }
        }
    }

    /// Rows of K (or V) that a lane of the `simt` engine has in flight: its warp's tile, each row
    /// spread over the next power of two of its 16-byte vectors.
    fn slots(&self, spec: &KernelSpec) -> u32 {
        let vectors = (spec.head_dim * spec.kv.bytes()).div_ceil(16);
        (self.tile_tokens * vectors.next_power_of_two()).div_ceil(32)
    }

    /// Whether `spec` can be computed this way on `arch`.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn check(&self, spec: &KernelSpec, arch: Arch) -> Result<(), Exclusion> {
        self.check_offered()?;
        let smallest = match self.engine {
            Engine::Simt => Self::SIMT_HEAD_TILES
                .into_iter()
                .find(|&tile| tile >= spec.group)
                .unwrap_or(8),
            Engine::Mma => spec.group.next_multiple_of(8),
        };
        if self.head_tile > smallest {
            return Err(Exclusion::IdleHeads {
                head_tile: self.head_tile,
                group: spec.group,
            });
        }
        let slots = self.slots(spec);
        if self.engine == Engine::Simt && slots > Self::MAX_SLOTS {
            return Err(Exclusion::Unrolled {
                slots,
                limit: Self::MAX_SLOTS,
                tile_tokens: self.tile_tokens,
            });
        }
        let needed = self.shared_bytes(spec);
        let limit = arch.max_shared_bytes_per_block();
        if needed > limit {
            return Err(Exclusion::SharedMemory {
                needed,
                limit,
                arch: arch.to_string(),
            });
        }
        let reserved = needed + arch.reserved_shared_bytes_per_block();
        let limit = arch.max_shared_bytes_per_sm();
        if u64::from(self.ctas_per_sm) * u64::from(reserved) > u64::from(limit) {
            return Err(Exclusion::SharedMemoryPerSm {
                ctas: self.ctas_per_sm,
                needed: reserved,
                limit,
            });
        }
        let threads = self.threads() * self.ctas_per_sm;
        let limit = (arch.registers_per_sm() / threads).min(255) / 8 * 8;
        let needed = self.live_registers(spec);
        if needed > limit || threads > arch.max_threads_per_sm() {
            return Err(Exclusion::Registers {
                needed,
                limit,
                ctas: self.ctas_per_sm,
                warps: self.warps,
            });
        }
        Ok(())
    }

    fn check_offered(&self) -> Result<(), Exclusion> {
        let (stages, head_tiles): (&[u32], &[u32]) = match self.engine {
            Engine::Simt => (&[1], &Self::SIMT_HEAD_TILES),
            Engine::Mma => (&Self::STAGES, &Self::MMA_HEAD_TILES),
        };
        let fields: [(&str, u32, &[u32]); 5] = [
            ("warps", self.warps, &Self::WARPS),
            ("tile_tokens", self.tile_tokens, &Self::TILE_TOKENS),
            ("stages", self.stages, stages),
            ("head_tile", self.head_tile, head_tiles),
            ("ctas_per_sm", self.ctas_per_sm, &Self::CTAS_PER_SM),
        ];
        for (field, value, offered) in fields {
            if !offered.contains(&value) {
                let offered: Vec<String> = offered.iter().map(u32::to_string).collect();
                return Err(Exclusion::NotOffered {
                    field: field.to_owned(),
                    value,
                    offered: offered.join(", "),
                });
            }
        }
        Ok(())
    }

    /// Identifies the tuning: every field.
    pub fn hash(&self) -> ContentHash {
        // Exhaustive on purpose, as for the spec.
        let Tuning {
            engine,
            warps,
            tile_tokens,
            stages,
            head_tile,
            ctas_per_sm,
        } = self;
        ContentHash::of(
            "pagesmith-tuning-1",
            &[
                engine.name().as_bytes(),
                &warps.to_le_bytes(),
                &tile_tokens.to_le_bytes(),
                &stages.to_le_bytes(),
                &head_tile.to_le_bytes(),
                &ctas_per_sm.to_le_bytes(),
            ],
        )
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} w{} t{} s{} h{} c{}",
            self.engine,
            self.warps,
            self.tile_tokens,
            self.stages,
            self.head_tile,
            self.ctas_per_sm
        )
    }
}

/// Every tuning of a spec on an arch: the legal ones, and the others with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TuningSpace {
    legal: Vec<Tuning>,
    excluded: Vec<(Tuning, Exclusion)>,
}

impl TuningSpace {
    /// Enumerates the product of all axes in a fixed order.
    pub fn enumerate(spec: &KernelSpec, arch: Arch) -> Self {
        let mut space = TuningSpace {
            legal: Vec::new(),
            excluded: Vec::new(),
        };
        for engine in Engine::ALL {
            let (stages, head_tiles): (&[u32], &[u32]) = match engine {
                Engine::Simt => (&[1], &Tuning::SIMT_HEAD_TILES),
                Engine::Mma => (&Tuning::STAGES, &Tuning::MMA_HEAD_TILES),
            };
            for &head_tile in head_tiles {
                for warps in Tuning::WARPS {
                    for tile_tokens in Tuning::TILE_TOKENS {
                        for &stages in stages {
                            for ctas_per_sm in Tuning::CTAS_PER_SM {
                                let tuning = Tuning {
                                    engine,
                                    warps,
                                    tile_tokens,
                                    stages,
                                    head_tile,
                                    ctas_per_sm,
                                };
                                match tuning.check(spec, arch) {
                                    Ok(()) => space.legal.push(tuning),
                                    Err(reason) => space.excluded.push((tuning, reason)),
                                }
                            }
                        }
                    }
                }
            }
        }
        space
    }

    /// The tunings that can be compiled, in the order of enumeration.
    pub fn legal(&self) -> &[Tuning] {
        &self.legal
    }

    /// The others, each with the reason against it.
    pub fn excluded(&self) -> &[(Tuning, Exclusion)] {
        &self.excluded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm};

    fn spec(head_dim: u32, group: u32, kv: KvDtype) -> KernelSpec {
        KernelSpec {
            operation: Operation::Decode,
            head_dim,
            group,
            block_size: 16,
            query: QueryDtype::Bf16,
            kv,
            layout: KvLayout::DimContiguous,
            table: TableForm::Dense,
            lse: Lse::Omitted,
        }
    }

    #[test]
    fn every_point_of_the_product_is_legal_or_excluded_with_a_reason() {
        let space = TuningSpace::enumerate(&spec(128, 4, KvDtype::Bf16), Arch::SM_80);
        let simt = 4 * 3 * 3 * 4;
        let mma = 4 * 3 * 3 * 3 * 4;
        assert_eq!(space.legal().len() + space.excluded().len(), simt + mma);
        for (tuning, reason) in space.excluded() {
            assert!(space.legal().iter().all(|legal| legal != tuning));
            assert!(!reason.to_string().is_empty());
        }
    }

    #[test]
    fn every_spec_has_legal_tunings_of_both_engines() {
        for arch in Arch::ALL {
            for head_dim in KernelSpec::HEAD_DIMS {
                for group in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32] {
                    for kv in [KvDtype::Bf16, KvDtype::Fp8E4M3] {
                        let space = TuningSpace::enumerate(&spec(head_dim, group, kv), arch);
                        for engine in Engine::ALL {
                            assert!(
                                space.legal().iter().any(|tuning| tuning.engine == engine),
                                "{engine} d{head_dim} g{group} {kv} {arch}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_legal_tuning_fits_the_shared_memory_it_promises() {
        for head_dim in KernelSpec::HEAD_DIMS {
            let spec = spec(head_dim, 32, KvDtype::Bf16);
            for tuning in TuningSpace::enumerate(&spec, Arch::SM_80).legal() {
                let bytes = tuning.shared_bytes(&spec);
                assert!(bytes <= 163 * 1024);
                assert!(tuning.ctas_per_sm * (bytes + 1024) <= 164 * 1024);
            }
        }
    }

    #[test]
    fn shared_memory_is_the_larger_of_ring_and_combine_area() {
        let tuning = Tuning {
            engine: Engine::Mma,
            warps: 4,
            tile_tokens: 16,
            stages: 3,
            head_tile: 8,
            ctas_per_sm: 1,
        };
        // 4 warps x 3 stages x (K + V) x 16 tokens x 128 x 2 bytes
        assert_eq!(tuning.shared_bytes(&spec(128, 4, KvDtype::Bf16)), 98_304);
        let simt = Tuning {
            engine: Engine::Simt,
            stages: 1,
            head_tile: 4,
            ..tuning
        };
        // 4 warps x 4 heads x (128 + 4 floats of a row + 2 of its state)
        assert_eq!(simt.shared_bytes(&spec(128, 4, KvDtype::Bf16)), 8_576);
    }

    #[test]
    fn tunings_that_differ_in_any_one_field_never_share_a_hash() {
        let base = Tuning {
            engine: Engine::Mma,
            warps: 4,
            tile_tokens: 16,
            stages: 2,
            head_tile: 8,
            ctas_per_sm: 1,
        };
        let others = [
            Tuning {
                engine: Engine::Simt,
                ..base
            },
            Tuning { warps: 8, ..base },
            Tuning {
                tile_tokens: 32,
                ..base
            },
            Tuning { stages: 3, ..base },
            Tuning {
                head_tile: 16,
                ..base
            },
            Tuning {
                ctas_per_sm: 2,
                ..base
            },
        ];
        for other in others {
            assert_ne!(base.hash(), other.hash(), "{other}");
            assert_ne!(base.to_string(), other.to_string());
        }
    }
}
