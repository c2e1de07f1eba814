//! The decode that times are of, on any device: its tensors are made once and shared by all variants of a
//! spec.

use pagesmith_runtime::attention::{
    DecodeArgs, DecodeBatch, DevicePlan, KvCache, LseRows, Rows, Scales, TablePlace, TensorError,
};
use pagesmith_runtime::device::Buffer;
use pagesmith_runtime::plan::{BatchError, CacheBlocks};
use pagesmith_runtime::{AttentionBackend, AttentionError, Batch, Device, DeviceError, Kernels};
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KernelSpec, KvDtype, Lse, TableForm, Workload, e4m3};

/// A decode that could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The batch was refused.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A tensor was refused.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The decode was refused or failed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Queries, cache, outputs and block table of one workload on a device.
#[derive(Debug)]
pub struct Tensors<B> {
    spec: KernelSpec,
    workload: Workload,
    q: B,
    k: B,
    v: B,
    out: B,
    lse: B,
    blocks: CacheBlocks,
    lengths: Vec<u32>,
    table: Vec<i32>,
    indptr: Vec<i32>,
    last_block_len: Vec<i32>,
}

impl<B: Buffer> Tensors<B> {
    /// Makes the tensors: random values of variance 1, and blocks in random order, as they are in a cache
    /// that has been in use. The same workload gives the same values.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn new<D: Device<Buffer = B>>(
        device: &D,
        spec: &KernelSpec,
        workload: Workload,
    ) -> Result<Self, WorkloadError> {
        let Workload {
            batch,
            tokens,
            kv_heads,
        } = workload;
        let row = tokens.div_ceil(spec.block_size);
        let blocks = CacheBlocks {
            block_size: spec.block_size,
            count: batch * row,
        };
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let q_bytes = tensor_bytes(&[batch, kv_heads, spec.group, spec.head_dim, 2]);
        let kv_bytes = tensor_bytes(&[
            blocks.count,
            spec.block_size,
            kv_heads,
            spec.head_dim,
            spec.kv.bytes(),
        ]);
        let mut filled = |name: &str, dtype, bytes| -> Result<B, DeviceError> {
            let buffer = device.alloc(name, bytes)?;
            let values = random.values(dtype, bytes as usize);
            device.upload(buffer.region(), &values, &device.stream())?;
            Ok(buffer)
        };
        let q = filled("q", spec.query.as_kv(), q_bytes)?;
        let k = filled("k", spec.kv, kv_bytes)?;
        let v = filled("v", spec.kv, kv_bytes)?;
        let lse_bytes = match spec.lse {
            Lse::Omitted => 0,
            Lse::Written => tensor_bytes(&[batch, kv_heads, spec.group, 4]),
        };
        // Ids fit: `count` blocks were just allocated.
        let mut table: Vec<i32> = (0..blocks.count).map(|id| id as i32).collect();
        random.shuffle(&mut table);
        Ok(Tensors {
            q,
            k,
            v,
            out: device.alloc("out", q_bytes)?,
            lse: device.alloc("lse", lse_bytes)?,
            blocks,
            lengths: vec![tokens; batch as usize],
            table,
            indptr: (0..=batch)
                .map(|sequence| (sequence * row) as i32)
                .collect(),
            last_block_len: vec![(tokens - (row - 1) * spec.block_size) as i32; batch as usize],
            spec: spec.clone(),
            workload,
        })
    }

    /// Plans the workload for the variant that `kernels` has loaded.
    ///
    /// # Errors
    /// When the runtime refuses the batch.
    pub fn plan<D: Device<Buffer = B>>(
        &self,
        kernels: &mut Kernels<D>,
        stream: &D::Stream,
    ) -> Result<DevicePlan<D>, WorkloadError> {
        let batch = match self.spec.table {
            TableForm::Dense => Batch::dense(
                self.blocks,
                &self.lengths,
                &self.table,
                self.table.len() / self.lengths.len(),
            )?,
            TableForm::Csr => {
                Batch::csr(self.blocks, &self.indptr, &self.table, &self.last_block_len)?
            }
        };
        let mut plan = DevicePlan::default();
        kernels.plan_decode(
            &mut plan,
            DecodeBatch {
                spec: &self.spec,
                kv_heads: self.workload.kv_heads,
                batch: &batch,
                table: TablePlace::Planned,
            },
            stream,
        )?;
        Ok(plan)
    }

    /// One decode, merge included.
    ///
    /// # Errors
    /// When the runtime or the device refuses it.
    pub fn decode<D: Device<Buffer = B>>(
        &self,
        kernels: &mut Kernels<D>,
        plan: &mut DevicePlan<D>,
        stream: &D::Stream,
    ) -> Result<(), WorkloadError> {
        let KernelSpec {
            head_dim,
            group,
            block_size,
            query,
            kv,
            ..
        } = self.spec;
        let Workload {
            batch, kv_heads, ..
        } = self.workload;
        let rows = [batch, kv_heads * group, head_dim];
        let cache = [self.blocks.count, block_size, kv_heads, head_dim];
        let strides = KvStrides::nhd(block_size, kv_heads, head_dim);
        let args = DecodeArgs {
            query: Rows::contiguous(self.q.region(), query, rows)?,
            key: KvCache::new(self.k.region(), kv, cache, strides)?,
            value: KvCache::new(self.v.region(), kv, cache, strides)?,
            out: Rows::contiguous(self.out.region(), query, rows)?,
            lse: match self.spec.lse {
                Lse::Omitted => None,
                Lse::Written => Some(LseRows::new(self.lse.region(), [rows[0], rows[1]])?),
            },
            table: None,
            scales: Scales::for_head_dim(head_dim),
        };
        Ok(kernels.decode(plan, args, stream)?)
    }
}

fn tensor_bytes(shape: &[u32]) -> u64 {
    shape.iter().map(|&axis| u64::from(axis)).product()
}

/// A splitmix64 sequence: the workload is the same in every run, which counts must be.
struct Random(u64);

/// Distinct values of a tensor; a power of two.
const QUANTILES: usize = 4096;

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `bytes` bytes of values that are uniform with variance 1.
    fn values(&mut self, dtype: KvDtype, bytes: usize) -> Vec<u8> {
        let codes: Vec<u16> = (0..QUANTILES)
            .map(|index| {
                let quantile = (index as f32 + 0.5) / QUANTILES as f32;
                encode(dtype, (2.0 * quantile - 1.0) * 3f32.sqrt())
            })
            .collect();
        let mut values = Vec::with_capacity(bytes + 8);
        while values.len() < bytes {
            let bits = self.bits();
            for pick in 0..4 {
                let code = codes[(bits >> (16 * pick)) as usize % QUANTILES];
                values.extend_from_slice(&code.to_le_bytes()[..dtype.bytes() as usize]);
            }
        }
        values.truncate(bytes);
        values
    }

    fn shuffle(&mut self, items: &mut [i32]) {
        for last in (1..items.len()).rev() {
            let other = (self.bits() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }
}

fn encode(dtype: KvDtype, value: f32) -> u16 {
    match dtype {
        KvDtype::Bf16 => half::bf16::from_f32(value).to_bits(),
        KvDtype::F16 => half::f16::from_f32(value).to_bits(),
        KvDtype::Fp8E4M3 => u16::from(e4m3::encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_variance_one_in_every_dtype() {
        for dtype in KvDtype::ALL {
            let bytes = Random(1).values(dtype, 1 << 16);
            assert_eq!(bytes.len(), 1 << 16);
            let values: Vec<f64> = bytes
                .chunks_exact(dtype.bytes() as usize)
                .map(|code| match dtype {
                    KvDtype::Bf16 => half::bf16::from_le_bytes([code[0], code[1]]).to_f64(),
                    KvDtype::F16 => half::f16::from_le_bytes([code[0], code[1]]).to_f64(),
                    KvDtype::Fp8E4M3 => f64::from(e4m3::decode(code[0])),
                })
                .collect();
            let variance = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
            assert!((0.95..1.05).contains(&variance), "{dtype}: {variance}");
        }
    }

    #[test]
    fn a_shuffled_table_has_every_block_once() {
        let mut table: Vec<i32> = (0..1000).collect();
        Random(7).shuffle(&mut table);
        assert_ne!(table[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        table.sort_unstable();
        assert!(table.iter().zip(0..).all(|(&id, expected)| id == expected));
    }
}
