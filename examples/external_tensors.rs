//! Attends over tensors that belong to the caller: its own `CudaSlice`s, on its own stream.
//!
//! `cargo run --release --example external_tensors` on a machine with a GPU, after
//! `autotune run --model llama-3-8b --device cuda:0`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that a person runs"
)]

use cudarc::driver::{CudaContext, CudaSlice};
use half::bf16;
use pagesmith::attention::{AttentionBackend, DecodeArgs, DecodeBatch, DevicePlan, KvCache};
use pagesmith::attention::{Kernels, Rows, Scales, TablePlace};
use pagesmith::cache::{KernelCache, default_root};
use pagesmith::device::Device;
use pagesmith::device::cuda::{Cuda, External};
use pagesmith::plan::{Batch, CacheBlocks};
use pagesmith::spec::{ModelShape, Settings, layout::KvStrides};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match attend() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attend() -> Result<(), Box<dyn Error>> {
    // What a server has anyway: a context, a stream, and its cache as one slice for keys and one for values.
    // (cudarc panics where there is no driver; pagesmith's own constructor says so instead.)
    Cuda::new(0)?;
    let stream = CudaContext::new(0)?.new_stream()?;
    let model = ModelShape::by_name("llama-3-8b")?;
    let spec = &Settings::default().kernels(&model)?[0];
    let (q_heads, kv_heads, dim) = (model.query_heads(), model.kv_heads(), model.head_dim());
    let strides = KvStrides::nhd(spec.block_size, kv_heads, dim);
    const BLOCKS: u32 = 64;
    let elements = BLOCKS as usize * strides.block as usize;
    let keys: CudaSlice<bf16> = stream.clone_htod(&vec![bf16::ZERO; elements])?;
    let values: CudaSlice<bf16> = stream.clone_htod(&vec![bf16::ONE; elements])?;
    let query: CudaSlice<bf16> = stream.clone_htod(&vec![bf16::ONE; (q_heads * dim) as usize])?;
    let mut out: CudaSlice<bf16> = stream.clone_htod(&vec![bf16::NAN; (q_heads * dim) as usize])?;

    // pagesmith works on that stream and borrows those slices for the launch.
    let device = Cuda::on_stream(stream.clone())?;
    let cache = KernelCache::open(default_root(None)?, device.gpu())?;
    let mut kernels = Kernels::from_cache(device, &cache, [spec])?;
    let mut plan = DevicePlan::default();
    let table: Vec<i32> = (0..BLOCKS as i32).rev().collect();
    let blocks = CacheBlocks {
        block_size: spec.block_size,
        count: BLOCKS,
    };
    let batch = Batch::dense(blocks, &[1000], &table, table.len())?;
    let request = DecodeBatch {
        spec,
        kv_heads,
        batch: &batch,
        table: TablePlace::Planned,
    };
    kernels.plan_decode(&mut plan, request, &stream)?;
    {
        let k = External::read(&keys, &stream);
        let v = External::read(&values, &stream);
        let q = External::read(&query, &stream);
        let o = External::write(&mut out, &stream);
        let shape = [BLOCKS, spec.block_size, kv_heads, dim];
        let args = DecodeArgs {
            query: Rows::contiguous(q.region(), spec.query, [1, q_heads, dim])?,
            key: KvCache::new(k.region(), spec.kv, shape, strides)?,
            value: KvCache::new(v.region(), spec.kv, shape, strides)?,
            out: Rows::contiguous(o.region(), spec.query, [1, q_heads, dim])?,
            lse: None,
            table: None,
            scales: Scales::for_head_dim(dim),
        };
        kernels.decode(&mut plan, args, &stream)?;
    }
    let out = stream.clone_dtoh(&out)?;
    println!("mean value {}, expected 1", out[0]);
    Ok(())
}
