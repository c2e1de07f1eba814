//! Attends with a tuned kernel: three sequences of different lengths, blocks scattered over the cache.
//!
//! `cargo run --release --example decode` runs the kernel's PTX on the CPU; `-- cuda:0` runs its CUBIN on
//! a GPU. Both open the cache that `autotune run --model llama-3-8b` fills.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that a person runs"
)]

use half::bf16;
use pagesmith::attention::{
    AttentionBackend, AttentionError, DecodeArgs, DecodeBatch, DevicePlan, KvCache,
};
use pagesmith::attention::{Kernels, Rows, Scales, TablePlace};
use pagesmith::cache::{KernelCache, default_root};
use pagesmith::device::{Buffer, Cuda, Device, Emulated};
use pagesmith::plan::{Batch, CacheBlocks};
use pagesmith::spec::{Gpu, ModelShape, Settings, layout::KvStrides};
use std::error::Error;
use std::process::ExitCode;
use zerocopy::IntoBytes;

fn main() -> ExitCode {
    let device = std::env::args().nth(1).unwrap_or("emulated".into());
    let result = match device.as_str() {
        "emulated" => Gpu::by_name("a100-sxm4-80gb")
            .map_err(Into::into)
            .and_then(|gpu| attend(Emulated::new(gpu))),
        "cuda:0" => Cuda::new(0).map_err(Into::into).and_then(attend),
        other => Err(format!("device `{other}`: use emulated or cuda:0").into()),
    };
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {error}");
    if let Some(AttentionError::Cache(_)) = error.downcast_ref() {
        eprintln!("here: cargo run --release -p pagesmith-autotune -- run --model llama-3-8b");
    }
    ExitCode::FAILURE
}

fn attend<D: Device>(device: D) -> Result<(), Box<dyn Error>> {
    // The model and the server's settings say which kernel; the cache has the tuned one for this GPU.
    let model = ModelShape::by_name("llama-3-8b")?;
    let spec = &Settings::default().kernels(&model)?[0];
    let cache = KernelCache::open(default_root(None)?, device.gpu())?;
    let mut kernels = Kernels::from_cache(device, &cache, [spec])?;
    let stream = kernels.device().stream();

    // A KV cache of 32 blocks, and the blocks of each sequence in any order. A row's tail is never read.
    const BLOCKS: u32 = 32;
    let (q_heads, kv_heads, dim) = (model.query_heads(), model.kv_heads(), model.head_dim());
    let lengths = [40, 100, 7];
    let table = [
        9, 4, 30, -1, -1, -1, -1, 0, 31, 2, 17, 8, 21, 5, 12, -1, -1, -1, -1, -1, -1,
    ];
    let blocks = CacheBlocks {
        block_size: spec.block_size,
        count: BLOCKS,
    };
    let batch = Batch::dense(blocks, &lengths, &table, 7)?;

    // Keys of zero weigh all tokens alike; token i of a sequence has the value i: the result is their mean.
    let strides = KvStrides::nhd(spec.block_size, kv_heads, dim);
    let keys = vec![bf16::ZERO; BLOCKS as usize * strides.block as usize];
    let mut values = keys.clone();
    for (sequence, &length) in lengths.iter().enumerate() {
        for token in 0..length as usize {
            let block = table[sequence * 7 + token / 16] as usize;
            let row = block * strides.block as usize + token % 16 * strides.token as usize;
            values[row..][..strides.token as usize].fill(bf16::from_f32(token as f32));
        }
    }
    let query = vec![bf16::ONE; lengths.len() * (q_heads * dim) as usize];
    let mut out = vec![bf16::NAN; query.len()];

    // Memory on the device, then once a step the plan, and once a layer the decode.
    let mut plan = DevicePlan::default();
    let [k, v, q, o] = [("k", &keys), ("v", &values), ("q", &query), ("out", &out)]
        .map(|(name, data)| upload(kernels.device(), name, data.as_bytes()));
    let (k, v, q, o) = (k?, v?, q?, o?);
    let shape = [BLOCKS, spec.block_size, kv_heads, dim];
    let rows = [lengths.len() as u32, q_heads, dim];
    kernels.plan_decode(
        &mut plan,
        DecodeBatch {
            spec,
            kv_heads,
            batch: &batch,
            table: TablePlace::Planned,
        },
        &stream,
    )?;
    let args = DecodeArgs {
        query: Rows::contiguous(q.region(), spec.query, rows)?,
        key: KvCache::new(k.region(), spec.kv, shape, strides)?,
        value: KvCache::new(v.region(), spec.kv, shape, strides)?,
        out: Rows::contiguous(o.region(), spec.query, rows)?,
        lse: None,
        table: None,
        scales: Scales::for_head_dim(dim),
    };
    kernels.decode(&mut plan, args, &stream)?;
    kernels
        .device()
        .download(o.region(), out.as_mut_bytes(), &stream)?;

    for (row, length) in out.chunks_exact((q_heads * dim) as usize).zip(lengths) {
        println!(
            "{length:>4} tokens: mean value {:>6}, expected {}",
            row[0],
            (length - 1) as f32 / 2.0
        );
    }
    Ok(())
}

fn upload<D: Device>(device: &D, name: &str, bytes: &[u8]) -> Result<D::Buffer, Box<dyn Error>> {
    let buffer = device.alloc(name, bytes.len() as u64)?;
    device.upload(buffer.region(), bytes, &device.stream())?;
    Ok(buffer)
}
