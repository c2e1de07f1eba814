//! One case on a device: tensors in, poisoned outputs, one decode, outputs back.

use crate::case::{BlockTable, Case, TailEntries};
use pagesmith_runtime::attention::{
    DecodeArgs, DecodeBatch, DevicePlan, KvCache, LseRows, ResidentTable, Rows, Scales, TablePlace,
    TensorError,
};
use pagesmith_runtime::device::{Buffer, RegionError};
use pagesmith_runtime::plan::{BatchError, CacheBlocks};
use pagesmith_runtime::{AttentionBackend, AttentionError, Batch, Device, DeviceError, Kernels};
use pagesmith_spec::Lse;
use pagesmith_spec::layout::KvStrides;

/// Bytes before and after each output that nobody may write; keeps the outputs 16-byte aligned.
pub(super) const GUARD: usize = 256;
/// A NaN in bf16 and f16 that no kernel computes: an element that still holds it was not written.
pub(super) const POISON: u16 = 0x7FB5;
/// The same for f32.
pub(super) const LSE_POISON: u32 = 0x7FB5_7FB5;

/// The outputs' memory after a launch, guards included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub(super) out: Vec<u8>,
    /// Empty when the kernel writes no log-sum-exp.
    pub(super) lse: Vec<u8>,
}

/// A case that could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
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
    /// A tensor does not lie where it should.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// Runs a case on the kernel that `kernels` has loaded for its spec.
///
/// # Errors
/// When anything refuses the case.
pub fn run<D: Device>(kernels: &mut Kernels<D>, case: &Case) -> Result<Written, RunError> {
    let stream = kernels.device().stream();
    let q = filled(kernels.device(), "q", &case.q)?;
    let k = cache(kernels.device(), "k", &case.k, case.k_strides, case)?;
    let v = cache(kernels.device(), "v", &case.v, case.v_strides, case)?;
    let mut written = poisoned(case);
    let out = filled(kernels.device(), "out", &written.out)?;
    let lse = filled(kernels.device(), "lse", &written.lse)?;
    let blocks = CacheBlocks {
        block_size: case.kernel.block_size,
        count: case.num_blocks(),
    };
    let batch = match &case.table {
        BlockTable::Dense { entries, stride } => {
            Batch::dense(blocks, &case.lengths, entries, *stride)?
        }
        BlockTable::Csr {
            indptr,
            indices,
            last_block_len,
        } => Batch::csr(blocks, indptr, indices, last_block_len)?,
    };
    let resident = Resident::upload(kernels.device(), case)?;

    let mut plan = DevicePlan::<D>::default();
    kernels.plan_decode(
        &mut plan,
        DecodeBatch {
            spec: &case.kernel,
            kv_heads: case.kv_heads,
            batch: &batch,
            table: match resident {
                Some(_) => TablePlace::Resident,
                None => TablePlace::Planned,
            },
        },
        &stream,
    )?;
    let tokens = case.lengths.len() as u32;
    let rows = [tokens, case.q_heads(), case.kernel.head_dim];
    let cache_shape = [
        case.num_blocks(),
        case.kernel.block_size,
        case.kv_heads,
        case.kernel.head_dim,
    ];
    let inner = |written: &[u8]| (GUARD as u64, (written.len() - 2 * GUARD) as u64);
    let (out_start, out_bytes) = inner(&written.out);
    let args = DecodeArgs {
        query: Rows::strided(
            q.region(),
            case.kernel.query,
            rows,
            case.q_strides.token as i64,
            case.q_strides.head as i64,
        )?,
        key: KvCache::new(k.region(), case.kernel.kv, cache_shape, case.k_strides)?,
        value: KvCache::new(v.region(), case.kernel.kv, cache_shape, case.v_strides)?,
        out: Rows::strided(
            out.region().part(out_start, out_bytes)?,
            case.kernel.query,
            rows,
            case.out_strides.token as i64,
            case.out_strides.head as i64,
        )?,
        lse: match case.kernel.lse {
            Lse::Omitted => None,
            Lse::Written => {
                let (start, bytes) = inner(&written.lse);
                let memory = lse.region().part(start, bytes)?;
                Some(LseRows::new(memory, [tokens, case.q_heads()])?)
            }
        },
        table: resident.as_ref().map(Resident::table),
        scales: Scales {
            softmax: case.scale,
            key: case.k_scale,
            value: case.v_scale,
        },
    };
    kernels.decode(&mut plan, args, &stream)?;

    let device = kernels.device();
    device.synchronize(&stream)?;
    device.download(out.region(), &mut written.out, &stream)?;
    device.download(lse.region(), &mut written.lse, &stream)?;
    Ok(written)
}

/// The outputs' memory before the launch.
fn poisoned(case: &Case) -> Written {
    let elements = case.row_extent(case.out_strides) + GUARD;
    let lse = match case.kernel.lse {
        Lse::Omitted => Vec::new(),
        Lse::Written => {
            let elements = case.lengths.len() * case.q_heads() as usize + GUARD / 2;
            LSE_POISON.to_le_bytes().repeat(elements)
        }
    };
    Written {
        out: POISON.to_le_bytes().repeat(elements),
        lse,
    }
}

fn filled<D: Device>(device: &D, name: &str, bytes: &[u8]) -> Result<D::Buffer, DeviceError> {
    let buffer = device.alloc(name, bytes.len() as u64)?;
    device.upload(buffer.region(), bytes, &device.stream())?;
    Ok(buffer)
}

/// The whole cache, of which only the stored blocks are written.
fn cache<D: Device>(
    device: &D,
    name: &str,
    stored: &[u8],
    strides: KvStrides,
    case: &Case,
) -> Result<D::Buffer, RunError> {
    let block = strides.block.unsigned_abs() * u64::from(case.kernel.kv.bytes());
    let below = u64::from(case.first_block) * block;
    let buffer = device.alloc(name, below + stored.len() as u64)?;
    let region = buffer.region().part(below, stored.len() as u64)?;
    device.upload(region, stored, &device.stream())?;
    Ok(buffer)
}

/// A block table in device memory with all its entries, the meaningless ones included. A plan's own copy
/// of a CSR table ends with the live ones.
struct Resident<B> {
    entries: B,
    indptr: Option<B>,
}

impl<B: Buffer> Resident<B> {
    fn upload<D: Device<Buffer = B>>(device: &D, case: &Case) -> Result<Option<Self>, DeviceError> {
        if case.tail == TailEntries::Exact {
            return Ok(None);
        }
        let bytes = |entries: &[i32]| -> Vec<u8> {
            entries
                .iter()
                .flat_map(|entry| entry.to_le_bytes())
                .collect()
        };
        Ok(Some(match &case.table {
            BlockTable::Dense { entries, .. } => Resident {
                entries: filled(device, "table", &bytes(entries))?,
                indptr: None,
            },
            BlockTable::Csr {
                indptr, indices, ..
            } => Resident {
                entries: filled(device, "table", &bytes(indices))?,
                indptr: Some(filled(device, "table_indptr", &bytes(indptr))?),
            },
        }))
    }

    fn table(&self) -> ResidentTable<pagesmith_runtime::device::Region<'_>> {
        // SAFETY: `upload` wrote the table of the case, from which the batch was made.
        unsafe {
            ResidentTable::new(
                self.entries.region(),
                self.indptr.as_ref().map(Buffer::region),
            )
        }
    }
}
