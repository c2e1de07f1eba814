//! What tensors refuse before a kernel could be hurt by it.

use pagesmith_runtime::attention::{KvCache, LseRows, Rows, TensorMemory};
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KvDtype, QueryDtype};

/// Memory that is nowhere: only its numbers are looked at.
#[derive(Clone, Copy, Debug)]
struct At {
    address: u64,
    bytes: u64,
}

impl TensorMemory for At {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn at(bytes: u64) -> At {
    At {
        address: 0x7000_0000_0000,
        bytes,
    }
}

#[test]
fn rows_must_fit_to_the_last_byte() {
    let bytes = 3 * 8 * 128 * 2;
    let rows = |bytes| Rows::contiguous(at(bytes), QueryDtype::Bf16, [3, 8, 128]);
    assert!(rows(bytes).is_ok());
    let error = rows(bytes - 1).unwrap_err();
    assert_eq!((error.tensor, error.field), ("rows", "bytes"));
    // The last row of a padded tensor needs no padding behind it.
    let padded = |bytes| Rows::strided(at(bytes), QueryDtype::F16, [3, 8, 128], 2048, 128);
    assert!(padded(2 * 2048 * 2 + 8 * 128 * 2).is_ok());
    assert!(padded(2 * 2048 * 2 + 8 * 128 * 2 - 1).is_err());
}

#[test]
fn addresses_and_strides_off_16_bytes_are_refused() {
    let mut memory = at(1 << 20);
    memory.address += 8;
    let error = Rows::contiguous(memory, QueryDtype::Bf16, [1, 1, 64]).unwrap_err();
    assert_eq!(error.field, "address");
    let odd = Rows::strided(at(1 << 20), QueryDtype::Bf16, [2, 2, 64], 130, 64).unwrap_err();
    assert_eq!((odd.field, odd.value), ("token_stride", 130));
    // 24 elements are 48 bytes of bf16, and 24 bytes of e4m3.
    let strides = KvStrides {
        block: 1600,
        token: 80,
        head: 24,
    };
    let cache = |dtype| KvCache::new(at(1 << 20), dtype, [4, 16, 1, 16], strides);
    assert!(cache(KvDtype::Bf16).is_ok());
    assert_eq!(cache(KvDtype::Fp8E4M3).unwrap_err().field, "strides.head");
}

#[test]
fn rows_that_overlap_or_run_backwards_are_refused() {
    let rows = |token, head| Rows::strided(at(1 << 20), QueryDtype::Bf16, [4, 8, 64], token, head);
    assert!(rows(512, 64).is_ok());
    // [heads, tokens, D] is as good as [tokens, heads, D].
    assert!(rows(64, 256).is_ok());
    for (token, head) in [(0, 64), (512, 0), (504, 64), (512, 56), (64, 64)] {
        assert!(rows(token, head).is_err(), "{token} {head}");
    }
    assert_eq!(rows(-512, 64).unwrap_err().field, "token_stride");
}

#[test]
fn a_cache_beyond_2_to_the_31_elements_is_accepted_and_its_end_is_checked_in_full_width() {
    let strides = KvStrides::nhd(16, 8, 128);
    let shape = [300_000, 16, 8, 128];
    let bytes = 300_000 * 16 * 8 * 128 * 2;
    assert!(bytes / 2 > 1 << 31);
    assert!(KvCache::new(at(bytes), KvDtype::Bf16, shape, strides).is_ok());
    // In 32 bits this end would wrap round to inside the memory.
    let error = KvCache::new(at(1 << 31), KvDtype::Bf16, shape, strides).unwrap_err();
    assert_eq!(error.field, "bytes");
}

#[test]
fn extreme_shapes_and_strides_are_errors_and_do_not_overflow() {
    let strides = KvStrides {
        block: i64::MAX / 16 * 16,
        token: i64::MAX / 16 * 16,
        head: i64::MAX / 16 * 16,
    };
    let shape = [u32::MAX; 4];
    assert!(KvCache::new(at(u64::MAX), KvDtype::Bf16, shape, strides).is_err());
    let most = i64::MAX / 16 * 16;
    assert!(Rows::strided(at(u64::MAX), QueryDtype::Bf16, [u32::MAX; 3], most, most).is_err());
    assert!(LseRows::new(at(u64::MAX), [u32::MAX; 2]).is_err());
    assert!(LseRows::new(at(4), [1, 1]).is_ok());
    assert!(LseRows::new(at(3), [1, 1]).is_err());
}

#[test]
fn cache_strides_that_run_backwards_are_refused() {
    let forward = KvStrides::nhd(16, 8, 128);
    let backward = [
        (
            "strides.block",
            KvStrides {
                block: -forward.block,
                ..forward
            },
        ),
        (
            "strides.token",
            KvStrides {
                token: -forward.token,
                ..forward
            },
        ),
        (
            "strides.head",
            KvStrides {
                head: -forward.head,
                ..forward
            },
        ),
    ];
    for (field, strides) in backward {
        let cache = KvCache::new(at(1 << 30), KvDtype::Bf16, [4, 16, 8, 128], strides);
        assert_eq!(cache.unwrap_err().field, field);
    }
}

#[test]
fn one_block_may_not_span_4_gib() {
    let strides = |token| KvStrides {
        block: 1 << 40,
        token,
        head: 128,
    };
    let cache = |token| KvCache::new(at(u64::MAX), KvDtype::Bf16, [2, 16, 1, 128], strides(token));
    assert!(cache((1 << 27) - 8).is_ok());
    assert_eq!(cache(1 << 27).unwrap_err().field, "strides.token");
}

#[test]
fn an_empty_tensor_needs_no_memory() {
    assert!(Rows::contiguous(at(0), QueryDtype::Bf16, [0, 32, 128]).is_ok());
    let strides = KvStrides::nhd(16, 8, 128);
    assert!(KvCache::new(at(0), KvDtype::Bf16, [0, 16, 8, 128], strides).is_ok());
}
