//! `Kernels` from batch to output, on a device whose kernels are the launch ABI's meaning in Rust:
//! every plan, stride, table form and merge is compared with attention in f64.

mod common;

use common::host::{Host, HostBuffer};
use common::{a100, image, put, spec, tuning, variants};
use half::bf16;
use pagesmith_runtime::attention::{
    AttentionBackend, AttentionError, DecodeArgs, DecodeBatch, DevicePlan, Kernels, KvCache,
    LseRows, ResidentTable, Rows, Scales, TablePlace,
};
use pagesmith_runtime::cache::KernelCache;
use pagesmith_runtime::device::{Buffer, Device, Region};
use pagesmith_runtime::plan::{Batch, CacheBlocks};
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KernelSpec, KvDtype, Lse, QueryDtype, TableForm, Tuning, Variant, e4m3};

/// A small generator (xorshift64*): tests must not depend on more than their seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A model's cache and queries on the host, and what attention over them is.
struct Model {
    spec: KernelSpec,
    kv_heads: u32,
    lengths: Vec<u32>,
    blocks: u32,
    /// Block ids of each sequence.
    tables: Vec<Vec<i32>>,
    query: Vec<u16>,
    key: Vec<u8>,
    value: Vec<u8>,
    strides: KvStrides,
    scales: Scales,
}

impl Model {
    fn random(spec: KernelSpec, kv_heads: u32, lengths: &[u32], seed: u64) -> Self {
        let mut random = Random(seed);
        let needed: u32 = lengths
            .iter()
            .map(|length| length.div_ceil(spec.block_size))
            .sum();
        let blocks = needed + 3;
        let mut ids: Vec<i32> = (0..blocks as i32).collect();
        for at in (1..ids.len()).rev() {
            ids.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut tables = Vec::new();
        for length in lengths {
            let count = length.div_ceil(spec.block_size) as usize;
            tables.push(ids.drain(..count).collect());
        }
        let elements = blocks * spec.block_size * kv_heads * spec.head_dim;
        let mut cache = |scale: f32| -> Vec<u8> {
            (0..elements)
                .flat_map(|_| match spec.kv {
                    KvDtype::Fp8E4M3 => vec![e4m3::encode(random.value() * scale)],
                    _ => bf16::from_f32(random.value())
                        .to_bits()
                        .to_le_bytes()
                        .to_vec(),
                })
                .collect()
        };
        let (key, value) = (cache(4.0), cache(9.0));
        let rows = lengths.len() as u32 * kv_heads * spec.group * spec.head_dim;
        let scaled = spec.kv.is_scaled();
        Model {
            query: (0..rows)
                .map(|_| bf16::from_f32(random.value()).to_bits())
                .collect(),
            strides: KvStrides::nhd(spec.block_size, kv_heads, spec.head_dim),
            scales: Scales {
                key: if scaled { 0.25 } else { 1.0 },
                value: if scaled { 0.125 } else { 1.0 },
                ..Scales::for_head_dim(spec.head_dim)
            },
            kv_heads,
            lengths: lengths.to_vec(),
            blocks,
            tables,
            key,
            value,
            spec,
        }
    }

    fn q_heads(&self) -> u32 {
        self.kv_heads * self.spec.group
    }

    fn element(&self, cache: &[u8], index: i64) -> f64 {
        let index = index as usize;
        match self.spec.kv {
            KvDtype::Fp8E4M3 => f64::from(e4m3::decode(cache[index])),
            _ => bf16::from_bits(u16::from_le_bytes([cache[2 * index], cache[2 * index + 1]]))
                .to_f64(),
        }
    }

    /// Output and log-sum-exp of one query head, in f64.
    fn reference(&self, sequence: usize, head: u32) -> (Vec<f64>, f64) {
        let dims = self.spec.head_dim as usize;
        let row = (sequence * self.q_heads() as usize + head as usize) * dims;
        let kv_head = i64::from(head / self.spec.group);
        let mut scores = Vec::new();
        let mut values = Vec::new();
        for token in 0..self.lengths[sequence] {
            let block = self.tables[sequence][(token / self.spec.block_size) as usize];
            let at = i64::from(block) * self.strides.block
                + i64::from(token % self.spec.block_size) * self.strides.token
                + kv_head * self.strides.head;
            let dot: f64 = (0..dims)
                .map(|dim| {
                    bf16::from_bits(self.query[row + dim]).to_f64()
                        * self.element(&self.key, at + dim as i64)
                })
                .sum();
            scores.push(dot * f64::from(self.scales.key) * f64::from(self.scales.softmax));
            values.push(at);
        }
        let maximum = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - maximum).exp()).sum();
        let out = (0..dims)
            .map(|dim| {
                if scores.is_empty() {
                    return 0.0;
                }
                let weighted: f64 = scores
                    .iter()
                    .zip(&values)
                    .map(|(score, &at)| {
                        (score - maximum).exp() * self.element(&self.value, at + dim as i64)
                    })
                    .sum();
                weighted / sum * f64::from(self.scales.value)
            })
            .collect();
        let lse = match scores.is_empty() {
            true => f64::NEG_INFINITY,
            false => maximum + sum.ln(),
        };
        (out, lse)
    }
}

/// The model's tensors on a device.
struct Tensors {
    query: HostBuffer,
    key: HostBuffer,
    value: HostBuffer,
    out: HostBuffer,
    lse: HostBuffer,
}

impl Tensors {
    fn new(device: &Host, model: &Model) -> Self {
        let query: Vec<u8> = model
            .query
            .iter()
            .flat_map(|bits| bits.to_le_bytes())
            .collect();
        let rows = model.lengths.len() as u64 * u64::from(model.q_heads());
        Tensors {
            out: device.buffer_of(&vec![0xFF; query.len()]),
            query: device.buffer_of(&query),
            key: device.buffer_of(&model.key),
            value: device.buffer_of(&model.value),
            lse: device.alloc("lse", rows * 4).expect("room"),
        }
    }

    fn args<'m>(&'m self, model: &Model) -> DecodeArgs<Region<'m>> {
        let spec = &model.spec;
        let rows = [model.lengths.len() as u32, model.q_heads(), spec.head_dim];
        let cache = [model.blocks, spec.block_size, model.kv_heads, spec.head_dim];
        let kv = |buffer: &'m HostBuffer| {
            KvCache::new(buffer.region(), spec.kv, cache, model.strides).expect("fits")
        };
        let rows_of = |buffer: &'m HostBuffer| {
            Rows::contiguous(buffer.region(), spec.query, rows).expect("fits")
        };
        DecodeArgs {
            query: rows_of(&self.query),
            key: kv(&self.key),
            value: kv(&self.value),
            out: rows_of(&self.out),
            lse: (spec.lse == Lse::Written)
                .then(|| LseRows::new(self.lse.region(), [rows[0], rows[1]]).expect("fits")),
            table: None,
            scales: model.scales,
        }
    }
}

/// Tables of the model in the form its spec asks for.
struct HostTable {
    row: usize,
    dense: Vec<i32>,
    indptr: Vec<i32>,
    indices: Vec<i32>,
    last: Vec<i32>,
}

impl HostTable {
    fn new(model: &Model) -> Self {
        let row = model.tables.iter().map(Vec::len).max().unwrap_or(0) + 2;
        let mut table = HostTable {
            row,
            dense: Vec::new(),
            indptr: vec![0],
            indices: Vec::new(),
            last: Vec::new(),
        };
        for (ids, &length) in model.tables.iter().zip(&model.lengths) {
            table.dense.extend(ids);
            // Stale entries, as servers leave them.
            table
                .dense
                .resize(table.dense.len() + row - ids.len(), i32::MAX);
            table.indices.extend(ids);
            table.indptr.push(table.indices.len() as i32);
            let block = model.spec.block_size;
            table.last.push(((length + block - 1) % block + 1) as i32);
        }
        table
    }

    fn batch<'a>(&'a self, model: &'a Model) -> Batch<'a> {
        let cache = CacheBlocks {
            block_size: model.spec.block_size,
            count: model.blocks,
        };
        match model.spec.table {
            TableForm::Dense => Batch::dense(cache, &model.lengths, &self.dense, self.row),
            TableForm::Csr => Batch::csr(cache, &self.indptr, &self.indices, &self.last),
        }
        .expect("a valid batch")
    }
}

fn kernels(spec: &KernelSpec, tuning: Tuning) -> Kernels<Host> {
    let variant = Variant::new(spec.clone(), tuning).expect("legal");
    let mut kernels = Kernels::new(Host::new(a100()));
    kernels
        .load(&variant, &image(&variant))
        .expect("an image of this arch and ABI");
    kernels
}

fn plan_request<'a>(model: &'a Model, batch: &'a Batch<'a>, table: TablePlace) -> DecodeBatch<'a> {
    DecodeBatch {
        spec: &model.spec,
        kv_heads: model.kv_heads,
        batch,
        table,
    }
}

/// Plans, decodes, and compares every output with f64.
fn check(kernels: &mut Kernels<Host>, plan: &mut DevicePlan<Host>, model: &Model) {
    let tensors = Tensors::new(kernels.device(), model);
    let table = HostTable::new(model);
    let batch = table.batch(model);
    let request = plan_request(model, &batch, TablePlace::Planned);
    kernels.plan_decode(plan, request, &0).expect("a plan");
    kernels
        .decode(plan, tensors.args(model), &0)
        .expect("a decode");
    compare(kernels.device(), &tensors, model);
}

fn compare(device: &Host, tensors: &Tensors, model: &Model) {
    let mut out = vec![0; tensors.out.bytes() as usize];
    device
        .download(tensors.out.region(), &mut out, &0)
        .expect("reads");
    let mut lse = vec![0; tensors.lse.bytes() as usize];
    device
        .download(tensors.lse.region(), &mut lse, &0)
        .expect("reads");
    let dims = model.spec.head_dim as usize;
    let (mut error, mut norm) = (0.0, 0.0);
    for sequence in 0..model.lengths.len() {
        for head in 0..model.q_heads() {
            let (expected, expected_lse) = model.reference(sequence, head);
            let row = sequence * model.q_heads() as usize + head as usize;
            for (dim, expected) in expected.iter().enumerate() {
                let at = 2 * (row * dims + dim);
                let found = bf16::from_bits(u16::from_le_bytes([out[at], out[at + 1]])).to_f64();
                assert!(
                    found.is_finite(),
                    "sequence {sequence} head {head} dim {dim}"
                );
                error += (found - expected).powi(2);
                norm += expected.powi(2);
            }
            if model.spec.lse == Lse::Written {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(&lse[4 * row..4 * row + 4]);
                let found = f64::from(f32::from_le_bytes(bytes));
                assert!(
                    found == expected_lse || (found - expected_lse).abs() < 1e-3,
                    "sequence {sequence} head {head}: {found} for {expected_lse}"
                );
            }
        }
    }
    let relative = error.sqrt() / norm.sqrt().max(1e-30);
    let limit = QueryDtype::Bf16.tolerance();
    assert!(relative <= limit, "{relative} on {:?}", model.lengths);
}

fn small(change: impl FnOnce(&mut KernelSpec)) -> KernelSpec {
    let mut spec = KernelSpec {
        head_dim: 64,
        lse: Lse::Written,
        ..spec()
    };
    change(&mut spec);
    spec
}

const RAGGED: [u32; 6] = [1, 0, 63, 16, 700, 129];

#[test]
fn ragged_batches_match_f64_through_plan_parameters_and_merge() {
    for table in TableForm::ALL {
        for (kv, group, head_tile) in [
            (KvDtype::Bf16, 4, 8),
            (KvDtype::Fp8E4M3, 7, 8),
            (KvDtype::Bf16, 5, 2),
        ] {
            let spec = small(|spec| {
                spec.table = table;
                spec.kv = kv;
                spec.group = group;
            });
            let model = Model::random(spec.clone(), 2, &RAGGED, 7 + u64::from(group));
            let mut kernels = kernels(
                &spec,
                Tuning {
                    head_tile,
                    ..tuning()
                },
            );
            let mut plan = DevicePlan::default();
            check(&mut kernels, &mut plan, &model);
            let launches = kernels.device().launches();
            assert_eq!(
                launches.len(),
                2,
                "the long sequence must be cut: {launches:?}"
            );
        }
    }
}

#[test]
fn one_plan_serves_step_after_step_and_batches_of_other_sizes() {
    let spec = small(|_| ());
    let mut kernels = kernels(&spec, tuning());
    let mut plan = DevicePlan::default();
    for (step, lengths) in [&[5u32, 900][..], &[6, 901], &[3; 9], &[2000], &[], &[7]]
        .iter()
        .enumerate()
    {
        let model = Model::random(spec.clone(), 2, lengths, step as u64 + 1);
        check(&mut kernels, &mut plan, &model);
    }
}

#[test]
fn an_empty_batch_launches_nothing_and_a_short_one_no_merge() {
    let spec = small(|_| ());
    let mut kernels = kernels(&spec, tuning());
    let mut plan = DevicePlan::default();
    check(
        &mut kernels,
        &mut plan,
        &Model::random(spec.clone(), 2, &[], 1),
    );
    assert_eq!(kernels.device().launches(), []);
    check(
        &mut kernels,
        &mut plan,
        &Model::random(spec.clone(), 2, &[0, 0], 1),
    );
    assert_eq!(
        kernels.device().launches(),
        [(String::from("pagesmith_decode"), 4)]
    );
}

#[test]
fn heads_before_tokens_and_padded_rows_are_a_matter_of_strides() {
    let spec = small(|_| ());
    let mut model = Model::random(spec.clone(), 2, &RAGGED, 3);
    model.strides = KvStrides::hnd(spec.block_size, 2, spec.head_dim);
    let mut kernels = kernels(&spec, tuning());
    let mut plan = DevicePlan::default();
    check(&mut kernels, &mut plan, &model);

    // Queries as a slice of a fused QKV row: [tokens, 8 + 2 + 2 heads, D].
    let tensors = Tensors::new(kernels.device(), &model);
    let fused_heads = model.q_heads() as usize + 4;
    let dims = spec.head_dim as usize;
    let mut fused = vec![0xFF_u8; model.lengths.len() * fused_heads * dims * 2];
    for (token, row) in model
        .query
        .chunks(model.q_heads() as usize * dims)
        .enumerate()
    {
        let bytes: Vec<u8> = row.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let at = token * fused_heads * dims * 2;
        fused[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    let fused = kernels.device().buffer_of(&fused);
    let mut args = tensors.args(&model);
    args.query = Rows::strided(
        fused.region(),
        spec.query,
        [model.lengths.len() as u32, model.q_heads(), spec.head_dim],
        (fused_heads * dims) as i64,
        dims as i64,
    )
    .expect("fits");
    kernels.decode(&mut plan, args, &0).expect("a decode");
    compare(kernels.device(), &tensors, &model);
}

#[test]
fn a_resident_table_is_used_where_it_is() {
    for form in TableForm::ALL {
        let spec = small(|spec| spec.table = form);
        let model = Model::random(spec.clone(), 2, &RAGGED, 5);
        let mut kernels = kernels(&spec, tuning());
        let mut plan = DevicePlan::default();
        let tensors = Tensors::new(kernels.device(), &model);
        let table = HostTable::new(&model);
        let batch = table.batch(&model);
        let bytes =
            |ids: &[i32]| -> Vec<u8> { ids.iter().flat_map(|id| id.to_le_bytes()).collect() };
        let entries = match form {
            TableForm::Dense => &table.dense,
            TableForm::Csr => &table.indices,
        };
        let entries = kernels.device().buffer_of(&bytes(entries));
        let indptr = kernels.device().buffer_of(&bytes(&table.indptr));
        let request = plan_request(&model, &batch, TablePlace::Resident);
        kernels.plan_decode(&mut plan, request, &0).expect("a plan");

        let mut args = tensors.args(&model);
        let error = kernels.decode(&mut plan, args, &0).unwrap_err().to_string();
        assert!(error.contains("table = absent"), "{error}");
        let short = entries.region().part(0, 8).expect("inside");
        let indptr = (form == TableForm::Csr).then(|| indptr.region());
        // SAFETY: too short for what was planned, which is refused.
        args.table = Some(unsafe { ResidentTable::new(short, indptr) });
        let error = kernels.decode(&mut plan, args, &0).unwrap_err().to_string();
        assert!(error.contains("table.entries bytes = 8"), "{error}");
        assert_eq!(kernels.device().launches(), []);

        // SAFETY: the buffers hold the batch's own table.
        args.table = Some(unsafe { ResidentTable::new(entries.region(), indptr) });
        kernels.decode(&mut plan, args, &0).expect("a decode");
        compare(kernels.device(), &tensors, &model);
    }
}

#[test]
fn arguments_that_do_not_suit_the_plan_are_refused_by_name_before_any_launch() {
    let spec = small(|_| ());
    let model = Model::random(spec.clone(), 2, &[40, 7], 9);
    let mut kernels = kernels(&spec, tuning());
    let mut plan = DevicePlan::default();
    let tensors = Tensors::new(kernels.device(), &model);
    let args = tensors.args(&model);
    let error = kernels.decode(&mut plan, args, &0).unwrap_err().to_string();
    assert!(error.contains("call plan_decode first"), "{error}");

    let table = HostTable::new(&model);
    let batch = table.batch(&model);
    let request = plan_request(&model, &batch, TablePlace::Planned);
    kernels.plan_decode(&mut plan, request, &0).expect("a plan");
    let region = tensors.key.region();
    let rows = |tokens, heads, dtype| {
        Rows::contiguous(tensors.out.region(), dtype, [tokens, heads, 64]).expect("fits")
    };
    let cache = |blocks, size, heads, dtype| {
        KvCache::new(region, dtype, [blocks, size, heads, 64], model.strides).expect("fits")
    };
    let (blocks, bf16, q_heads) = (model.blocks, KvDtype::Bf16, model.q_heads());
    type Args<'m> = DecodeArgs<Region<'m>>;
    type Change<'c> = Box<dyn Fn(&mut Args<'c>) + 'c>;
    let changes: [(&str, Change<'_>); 16] = [
        (
            "query.tokens",
            Box::new(|a| a.query = rows(1, q_heads, QueryDtype::Bf16)),
        ),
        (
            "query.heads",
            Box::new(|a| a.query = rows(2, q_heads - 1, QueryDtype::Bf16)),
        ),
        (
            "query.dtype",
            Box::new(|a| a.query = rows(2, q_heads, QueryDtype::F16)),
        ),
        (
            "out.tokens",
            Box::new(|a| a.out = rows(1, q_heads, QueryDtype::Bf16)),
        ),
        (
            "out.dtype",
            Box::new(|a| a.out = rows(2, q_heads, QueryDtype::F16)),
        ),
        (
            "key.blocks",
            Box::new(|a| a.key = cache(blocks - 1, 16, 2, bf16)),
        ),
        (
            "key.block_size",
            Box::new(|a| a.key = cache(blocks, 8, 2, bf16)),
        ),
        (
            "key.heads",
            Box::new(|a| a.key = cache(blocks, 16, 1, bf16)),
        ),
        (
            "value.dtype",
            Box::new(|a| a.value = cache(blocks, 16, 2, KvDtype::F16)),
        ),
        (
            "value.blocks",
            Box::new(|a| a.value = cache(blocks - 1, 16, 2, bf16)),
        ),
        ("lse", Box::new(|a| a.lse = None)),
        ("scales.softmax", Box::new(|a| a.scales.softmax = f32::NAN)),
        ("scales.softmax", Box::new(|a| a.scales.softmax = -1.0)),
        ("scales.key", Box::new(|a| a.scales.key = 2.0)),
        ("scales.key", Box::new(|a| a.scales.key = -1.0)),
        (
            "scales.key",
            Box::new(|a| {
                a.scales.softmax = f32::MAX;
                a.scales.key = f32::MAX;
            }),
        ),
    ];
    for (name, change) in changes {
        let mut wrong = args;
        change(&mut wrong);
        match kernels.decode(&mut plan, wrong, &0) {
            Err(AttentionError::Mismatch { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(kernels.device().launches(), []);
    kernels
        .decode(&mut plan, args, &0)
        .expect("unchanged, it runs");
}

#[test]
fn a_log_sum_exp_for_a_kernel_that_writes_none_is_refused() {
    let spec = small(|spec| spec.lse = Lse::Omitted);
    let model = Model::random(spec.clone(), 2, &[40], 9);
    let mut kernels = kernels(&spec, tuning());
    let mut plan = DevicePlan::default();
    check(&mut kernels, &mut plan, &model);
    let tensors = Tensors::new(kernels.device(), &model);
    let mut args = tensors.args(&model);
    args.lse = Some(LseRows::new(tensors.lse.region(), [1, model.q_heads()]).expect("fits"));
    let error = kernels.decode(&mut plan, args, &0).unwrap_err().to_string();
    assert!(error.contains("Lse::Written"), "{error}");
}

#[test]
fn a_spec_that_is_not_loaded_and_a_variant_changed_after_planning_are_refused() {
    let spec = small(|_| ());
    let model = Model::random(spec.clone(), 2, &[40], 9);
    let table = HostTable::new(&model);
    let batch = table.batch(&model);
    let mut plan = DevicePlan::default();
    let mut empty = Kernels::new(Host::new(a100()));
    let request = plan_request(&model, &batch, TablePlace::Planned);
    let error = empty.plan_decode(&mut plan, request, &0).unwrap_err();
    assert!(error.to_string().contains(&spec.slug()), "{error}");

    let mut kernels = kernels(&spec, tuning());
    let tensors = Tensors::new(kernels.device(), &model);
    kernels.plan_decode(&mut plan, request, &0).expect("a plan");
    let narrower = Tuning {
        stages: 3,
        ..tuning()
    };
    let other = Variant::new(spec, narrower).expect("legal");
    kernels.load(&other, &image(&other)).expect("loads");
    let error = kernels
        .decode(&mut plan, tensors.args(&model), &0)
        .unwrap_err()
        .to_string();
    assert!(error.contains("plan again"), "{error}");
}

#[test]
fn families_without_kernels_are_unsupported_by_name() {
    let mut kernels = kernels(&spec(), tuning());
    let error = kernels.prefill(&0).unwrap_err().to_string();
    assert!(
        error.contains("kernels on a100-sxm4-80gb has no prefill"),
        "{error}"
    );
}

#[test]
fn a_winner_that_cannot_be_loaded_falls_through_to_the_next() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = KernelCache::open_or_create(root.path(), &a100()).expect("creates");
    let [first, second, third] = variants();
    let records = [
        put(&cache, &first, 1.0),
        put(&cache, &second, 2.0),
        put(&cache, &third, 3.0),
    ];
    std::fs::write(cache.image_path(&records[0].image), b"damaged").expect("writable");
    let device = Host::refusing(a100(), records[1].image);
    let mut kernels = Kernels::new(device);
    let choice = kernels.load_best(&cache, &spec()).expect("the third");
    assert_eq!(choice.record, records[2]);
    assert_eq!(choice.skipped.len(), 2);
    assert_eq!(kernels.variant(&spec()), Some(&third));

    std::fs::remove_file(cache.image_path(&records[2].image)).expect("there");
    let error = kernels.load_best(&cache, &spec()).unwrap_err().to_string();
    for part in [
        "not a pagesmith image",
        "refused for a test",
        "is missing",
        "autotune run",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn an_image_of_another_variant_is_refused_at_load() {
    let spec = small(|_| ());
    let variant = Variant::new(spec.clone(), tuning()).expect("legal");
    let wide = KernelSpec {
        head_dim: 256,
        ..spec
    };
    let other = Variant::new(wide, tuning()).expect("legal");
    let mut kernels = Kernels::new(Host::new(a100()));
    let error = kernels.load(&variant, &image(&other)).unwrap_err();
    assert!(error.to_string().contains(&variant.id()), "{error}");
    assert!(kernels.variant(variant.spec()).is_none());
}
