//! From a case's spec and a seed to its bytes.

use super::element::{self, encode};
use super::{BlockTable, Case, CaseSpec, RowStrides, Strides, TailEntries, Values};
use crate::random::{Random, Seed};
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KernelSpec, KvDtype, TableForm};

/// Blocks that no sequence owns.
const UNUSED_BLOCKS: u32 = 3;

impl Case {
    /// Makes the case; the same arguments give the same bytes.
    pub fn generate(kernel: &KernelSpec, spec: &CaseSpec, seed: Seed) -> Case {
        let mut random = Random::new(seed);
        let blocks = |length: &u32| length.div_ceil(kernel.block_size);
        let stored_blocks = spec.lengths.iter().map(blocks).sum::<u32>() + UNUSED_BLOCKS;
        let mut ids: Vec<i32> = (0..stored_blocks)
            .map(|block| (spec.first_block + block) as i32)
            .collect();
        random.shuffle(&mut ids);
        let unused = ids.split_off(ids.len() - UNUSED_BLOCKS as usize);
        let table = table(kernel, spec, &ids, unused[0]);

        let scaled = kernel.kv.is_scaled();
        let mut cache_scale = |low: f32, high: f32| {
            let power = low.log2() + random.unit() * (high / low).log2();
            if scaled { power.exp2() } else { 1.0 }
        };
        // Keys reach ±20 with drifting values, and 20 / 0.06 is still below 448. At 64 most codes are
        // subnormal.
        let (k_scale, v_scale) = (cache_scale(0.06, 64.0), cache_scale(0.02, 64.0));
        let (k_strides, v_strides) = cache_strides(kernel, spec);
        let (q_strides, out_strides) = row_strides(kernel, spec);
        let cache = |strides: KvStrides| {
            element::nan(
                kernel.kv,
                stored_blocks as usize * strides.block.unsigned_abs() as usize,
            )
        };
        let mut case = Case {
            kernel: kernel.clone(),
            name: spec.name.clone(),
            seed,
            lengths: spec.lengths.clone(),
            kv_heads: spec.kv_heads,
            sms: spec.sms,
            // Not 1/√D: a kernel that ignores the parameter shows.
            scale: (0.8 + 0.4 * random.unit()) / (kernel.head_dim as f32).sqrt(),
            k_scale,
            v_scale,
            q: Vec::new(),
            q_strides,
            out_strides,
            k: cache(k_strides),
            k_strides,
            v: cache(v_strides),
            v_strides,
            first_block: spec.first_block,
            stored_blocks,
            table,
            tail: spec.tail,
        };
        case.q = element::nan(kernel.query.as_kv(), case.row_extent(q_strides));
        fill(&mut case, spec.values, &mut random);
        case
    }
}

/// Writes queries, keys and values.
///
/// Queries lean towards a random direction of their KV head by √D, and keys along it by the drift, so
/// that a drift of r moves a score by about r.
fn fill(case: &mut Case, values: Values, random: &mut Random) {
    let dim = case.head_dim();
    let magnitude = if values == Values::Peaked { 4.0 } else { 1.0 };
    for kv_head in 0..case.kv_heads {
        let direction: Vec<f32> = (0..dim)
            .map(|_| if random.bits() & 1 == 0 { 1.0 } else { -1.0 } / (dim as f32).sqrt())
            .collect();
        let lean = (dim as f32).sqrt();
        for sequence in 0..case.lengths.len() {
            for head in kv_head * case.kernel.group..(kv_head + 1) * case.kernel.group {
                let at = sequence * case.q_strides.token + head as usize * case.q_strides.head;
                let size = size_of_query(values, head);
                let query = direction
                    .iter()
                    .map(|u| size * (magnitude * random.normal() + lean * u));
                put(case.kernel.query.as_kv(), &mut case.q[2 * at..], query);
            }
            for token in 0..case.lengths[sequence] {
                let drift = drift(values, token, case.lengths[sequence]);
                let at = case.key_offset(sequence, token, kv_head);
                let k_scale = case.k_scale;
                let key = direction
                    .iter()
                    .map(|u| (random.normal() + drift * u) / k_scale);
                put(case.kernel.kv, &mut case.k[at..], key);
                let at = case.value_offset(sequence, token, kv_head);
                let v_scale = case.v_scale;
                let value = direction.iter().map(|_| random.normal() / v_scale);
                put(case.kernel.kv, &mut case.v[at..], value);
            }
        }
    }
}

/// What a head's query is multiplied by. Among plain values one head is all zeros, as padded rows of a
/// batch are, and one so small that its scores underflow: both weigh all tokens alike, and a factor that
/// is taken out of them must not become 0 or infinite.
fn size_of_query(values: Values, head: u32) -> f32 {
    match (values, head) {
        (Values::Plain, 0) => 0.0,
        (Values::Plain, 1) => 1e-33,
        _ => 1.0,
    }
}

fn put(dtype: KvDtype, bytes: &mut [u8], values: impl Iterator<Item = f32>) {
    let size = dtype.bytes() as usize;
    for (element, value) in bytes.chunks_exact_mut(size).zip(values) {
        element.copy_from_slice(&encode(dtype, value).to_le_bytes()[..size]);
    }
}

fn drift(values: Values, token: u32, length: u32) -> f32 {
    let along = token as f32 / length.max(2).saturating_sub(1) as f32;
    match values {
        Values::Plain | Values::Peaked => 0.0,
        Values::Rising => -30.0 + 60.0 * along,
        Values::Falling => 30.0 - 60.0 * along,
        Values::Low => -120.0,
        Values::High => 120.0,
    }
}

fn cache_strides(kernel: &KernelSpec, spec: &CaseSpec) -> (KvStrides, KvStrides) {
    let (block_size, heads, dim) = (kernel.block_size, spec.kv_heads, kernel.head_dim);
    let nhd = KvStrides::nhd(block_size, heads, dim);
    let hnd = KvStrides::hnd(block_size, heads, dim);
    let gap = i64::from(16 / kernel.kv.bytes());
    let head = i64::from(dim) + gap;
    let token = i64::from(heads) * head + 3 * gap;
    let padded = KvStrides {
        head,
        token,
        block: i64::from(block_size) * token + 5 * gap,
    };
    match spec.strides {
        Strides::Nhd => (nhd, nhd),
        Strides::Hnd => (hnd, hnd),
        Strides::Padded => (
            padded,
            KvStrides {
                block: padded.block + gap,
                ..padded
            },
        ),
        Strides::Mixed => (padded, hnd),
    }
}

fn row_strides(kernel: &KernelSpec, spec: &CaseSpec) -> (RowStrides, RowStrides) {
    let (heads, dim) = (
        (spec.kv_heads * kernel.group) as usize,
        kernel.head_dim as usize,
    );
    let with_gaps = |gap: usize| RowStrides {
        head: dim + gap,
        token: heads * (dim + gap) + 2 * gap,
    };
    match spec.strides {
        Strides::Nhd | Strides::Hnd => (with_gaps(0), with_gaps(0)),
        Strides::Padded | Strides::Mixed => (with_gaps(8), with_gaps(16)),
    }
}

fn table(kernel: &KernelSpec, spec: &CaseSpec, ids: &[i32], unused: i32) -> BlockTable {
    let blocks: Vec<usize> = spec
        .lengths
        .iter()
        .map(|length| length.div_ceil(kernel.block_size) as usize)
        .collect();
    // Negative, far beyond the cache, and a block of NaN: using or following any of them shows.
    let mut hostile = [-1, i32::MAX, unused, i32::MIN].into_iter().cycle();
    let spare = match spec.tail {
        TailEntries::Exact => 0,
        TailEntries::Spare(entries) => entries as usize,
    };
    let mut ids = ids.iter().copied();
    match kernel.table {
        TableForm::Dense => {
            let stride = blocks.iter().max().unwrap_or(&0) + spare;
            let mut entries = Vec::with_capacity(stride * blocks.len());
            for &live in &blocks {
                entries.extend(ids.by_ref().take(live));
                entries.extend(hostile.by_ref().take(stride - live));
            }
            BlockTable::Dense { entries, stride }
        }
        TableForm::Csr => {
            let mut indptr = vec![0];
            for &live in &blocks {
                indptr.push(indptr[indptr.len() - 1] + live as i32);
            }
            let last = |&length: &u32| match length % kernel.block_size {
                0 if length > 0 => kernel.block_size as i32,
                rest => rest as i32,
            };
            BlockTable::Csr {
                indptr,
                indices: ids.chain(hostile.take(spare)).collect(),
                last_block_len: spec.lengths.iter().map(last).collect(),
            }
        }
    }
}
