//! A device whose kernels are written in Rust: the launch ABI's meaning, without CUDA. What a test
//! gets from it depends on the plan, the parameters and the merge, and on nothing else.

use half::bf16;
use pagesmith_runtime::device::{
    Buffer, Device, DeviceError, LaunchConfig, LoadError, Region, check_image,
};
use pagesmith_spec::abi::{DecodeParams, DevicePtr, MergeItem, MergeParams, NO_SLOT, WorkItem};
use pagesmith_spec::{Gpu, Image, KvDtype, Lse, TableForm, Variant, e4m3};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zerocopy::{FromBytes, IntoBytes};

/// Allocations by their address.
#[derive(Debug, Default)]
struct Memory {
    allocations: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Memory {
    fn range(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let (&start, allocation) = self
            .allocations
            .range_mut(..=address)
            .next_back()
            .expect("an address of a live allocation");
        let offset = (address - start) as usize;
        allocation
            .get_mut(offset..offset + bytes)
            .expect("inside the allocation")
    }

    fn read<T: FromBytes>(&mut self, base: DevicePtr, index: i64) -> T {
        let address = base.0.wrapping_add_signed(index * size_of::<T>() as i64);
        T::read_from_bytes(self.range(address, size_of::<T>())).expect("its size")
    }

    fn write<T: IntoBytes + zerocopy::Immutable>(&mut self, base: DevicePtr, index: i64, value: T) {
        let address = base.0.wrapping_add_signed(index * size_of::<T>() as i64);
        self.range(address, size_of::<T>())
            .copy_from_slice(value.as_bytes());
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    gpu: Gpu,
    memory: Arc<Mutex<Memory>>,
    /// Every launch: entry and CTAs.
    launches: Mutex<Vec<(String, u32)>>,
    /// Images that this device refuses.
    refused: Option<pagesmith_spec::ContentHash>,
}

#[derive(Debug)]
pub(crate) struct HostBuffer {
    memory: Arc<Mutex<Memory>>,
    start: u64,
    bytes: u64,
}

impl Buffer for HostBuffer {
    fn region(&self) -> Region<'_> {
        // SAFETY: the allocation lives as long as `self`; launches are over when they return.
        unsafe { Region::from_raw(DevicePtr(self.start), self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // Poisoned when a kernel's assertion failed: that is the failure to show.
        if let Ok(mut memory) = self.memory.lock() {
            memory.allocations.remove(&self.start);
        }
    }
}

impl Host {
    pub(crate) fn new(gpu: Gpu) -> Self {
        let memory = Memory {
            next: 1 << 32,
            ..Memory::default()
        };
        Host {
            gpu,
            memory: Arc::new(Mutex::new(memory)),
            launches: Mutex::new(Vec::new()),
            refused: None,
        }
    }

    pub(crate) fn refusing(gpu: Gpu, image: pagesmith_spec::ContentHash) -> Self {
        Host {
            refused: Some(image),
            ..Host::new(gpu)
        }
    }

    /// The launches since the last call.
    pub(crate) fn launches(&self) -> Vec<(String, u32)> {
        std::mem::take(&mut self.launches.lock().expect("no panic while locked"))
    }

    pub(crate) fn buffer_of(&self, bytes: &[u8]) -> HostBuffer {
        let buffer = self.alloc("test", bytes.len() as u64).expect("room");
        self.upload(buffer.region(), bytes, &0).expect("fits");
        buffer
    }
}

impl Device for Host {
    type Buffer = HostBuffer;
    /// Streams are numbers.
    type Stream = u32;
    type Module = Variant;

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn stream(&self) -> u32 {
        0
    }

    fn alloc(&self, _name: &str, bytes: u64) -> Result<HostBuffer, DeviceError> {
        let mut memory = self.memory.lock().expect("no panic while locked");
        let start = memory.next;
        memory.next += bytes.next_multiple_of(256) + 256;
        memory.allocations.insert(start, vec![0xAA; bytes as usize]);
        Ok(HostBuffer {
            memory: Arc::clone(&self.memory),
            start,
            bytes,
        })
    }

    fn upload(&self, to: Region<'_>, bytes: &[u8], _: &u32) -> Result<(), DeviceError> {
        let to = to.prefix(bytes.len())?;
        let mut memory = self.memory.lock().expect("no panic while locked");
        memory
            .range(to.start().0, bytes.len())
            .copy_from_slice(bytes);
        Ok(())
    }

    fn download(&self, from: Region<'_>, bytes: &mut [u8], _: &u32) -> Result<(), DeviceError> {
        let from = from.prefix(bytes.len())?;
        let mut memory = self.memory.lock().expect("no panic while locked");
        bytes.copy_from_slice(memory.range(from.start().0, bytes.len()));
        Ok(())
    }

    fn fill(&self, to: Region<'_>, value: u8, _: &u32) -> Result<(), DeviceError> {
        let mut memory = self.memory.lock().expect("no panic while locked");
        memory.range(to.start().0, to.bytes() as usize).fill(value);
        Ok(())
    }

    fn load(&self, image: &Image) -> Result<Variant, LoadError> {
        check_image(image, self.gpu.arch)?;
        if self.refused == Some(image.hash()) {
            return Err(LoadError::Cubin(String::from("refused for a test")));
        }
        serde_json::from_str(&image.ptx).map_err(|error| LoadError::Ptx(error.to_string()))
    }

    unsafe fn launch(
        &self,
        variant: &Variant,
        entry: &str,
        config: LaunchConfig,
        params: &[u8],
        _: &u32,
    ) -> Result<(), DeviceError> {
        let mut launches = self.launches.lock().expect("no panic while locked");
        launches.push((entry.to_owned(), config.ctas));
        let mut memory = self.memory.lock().expect("no panic while locked");
        match entry {
            "pagesmith_decode" => {
                assert_eq!(config.threads, variant.tuning().warps * 32);
                assert_eq!(config.shared_bytes, variant.shared_bytes());
                let params = DecodeParams::read_from_bytes(params).expect("its params");
                for cta in 0..config.ctas {
                    decode(variant, &mut memory, &params, cta);
                }
            }
            "pagesmith_merge" => {
                assert_eq!((config.threads, config.shared_bytes), (128, 0));
                let params = MergeParams::read_from_bytes(params).expect("its params");
                for cta in 0..config.ctas {
                    merge(variant, &mut memory, &params, cta);
                }
            }
            other => panic!("no kernel {other}"),
        }
        Ok(())
    }

    fn synchronize(&self, _: &u32) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Heads of the tile that exist.
fn live_heads(variant: &Variant, head_begin: u32) -> u32 {
    (variant.spec().group - head_begin).min(variant.tuning().head_tile)
}

fn element(memory: &mut Memory, dtype: KvDtype, base: DevicePtr, index: i64) -> f32 {
    match dtype {
        KvDtype::Fp8E4M3 => e4m3::decode(memory.read::<u8>(base, index)),
        _ => bf16::from_bits(memory.read::<u16>(base, index)).to_f32(),
    }
}

fn decode(variant: &Variant, memory: &mut Memory, p: &DecodeParams, cta: u32) {
    let spec = variant.spec();
    let item: WorkItem = memory.read(p.work, i64::from(cta));
    for tile_head in 0..live_heads(variant, item.head_begin) {
        let head = item.kv_head * spec.group + item.head_begin + tile_head;
        let row = |token_stride, head_stride| {
            i64::from(item.q_token) * token_stride + i64::from(head) * head_stride
        };
        let query: Vec<f32> = (0..spec.head_dim)
            .map(|dim| {
                let at = row(p.q_token_stride, p.q_head_stride) + i64::from(dim);
                bf16::from_bits(memory.read::<u16>(p.q, at)).to_f32()
            })
            .collect();
        let mut scores = Vec::new();
        let mut values: Vec<Vec<f32>> = Vec::new();
        for token in item.kv_begin..item.kv_end {
            let entry = i64::from(token / spec.block_size);
            let block: i32 = match spec.table {
                TableForm::Dense => {
                    memory.read(p.table, i64::from(item.seq) * p.table_stride + entry)
                }
                TableForm::Csr => {
                    let begin: i32 = memory.read(p.table_indptr, i64::from(item.seq));
                    memory.read(p.table, i64::from(begin) + entry)
                }
            };
            let inside = i64::from(token % spec.block_size);
            let kv_head = i64::from(item.kv_head);
            let at = |block_stride, token_stride, head_stride| {
                i64::from(block) * block_stride + inside * token_stride + kv_head * head_stride
            };
            let key = at(p.k_block_stride, p.k_token_stride, p.k_head_stride);
            let value = at(p.v_block_stride, p.v_token_stride, p.v_head_stride);
            let mut dot = 0.0;
            let mut row = Vec::new();
            for dim in 0..spec.head_dim {
                let dim_at = i64::from(dim);
                dot += query[dim as usize] * element(memory, spec.kv, p.k, key + dim_at);
                row.push(element(memory, spec.kv, p.v, value + dim_at) * p.v_scale);
            }
            scores.push(dot * p.k_scale * p.scale_log2);
            values.push(row);
        }
        let maximum = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|s| (s - maximum).exp2()).collect();
        let sum: f32 = weights.iter().sum();
        let lse = match scores.is_empty() {
            true => f32::NEG_INFINITY,
            false => maximum + sum.log2(),
        };
        let out = (0..spec.head_dim as usize).map(|dim| {
            let weighted = weights.iter().zip(&values).map(|(w, row)| w * row[dim]);
            if scores.is_empty() {
                0.0
            } else {
                weighted.sum::<f32>() / sum
            }
        });
        for (dim, out) in (0i64..).zip(out.collect::<Vec<_>>()) {
            if item.slot == NO_SLOT {
                let at = row(p.out_token_stride, p.out_head_stride) + dim;
                memory.write(p.out, at, bf16::from_f32(out).to_bits());
            } else {
                let slot_head = i64::from(item.slot) * i64::from(variant.tuning().head_tile)
                    + i64::from(tile_head);
                memory.write(
                    p.partial_out,
                    slot_head * i64::from(spec.head_dim) + dim,
                    out,
                );
                memory.write(p.partial_lse, slot_head, lse);
            }
        }
        if item.slot == NO_SLOT && spec.lse == Lse::Written {
            let at = i64::from(item.q_token) * i64::from(p.q_heads) + i64::from(head);
            memory.write(p.lse, at, lse * std::f32::consts::LN_2);
        }
    }
}

fn merge(variant: &Variant, memory: &mut Memory, p: &MergeParams, cta: u32) {
    let spec = variant.spec();
    let item: MergeItem = memory.read(p.items, i64::from(cta));
    for tile_head in 0..live_heads(variant, item.q_head % spec.group) {
        let slot_head = |slot: u32| {
            i64::from(slot) * i64::from(variant.tuning().head_tile) + i64::from(tile_head)
        };
        let slots = item.slot_begin..item.slot_begin + item.slot_count;
        let lses: Vec<f32> = slots
            .clone()
            .map(|slot| memory.read(p.partial_lse, slot_head(slot)))
            .collect();
        let maximum = lses.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = lses.iter().map(|lse| (lse - maximum).exp2()).collect();
        let sum: f32 = weights.iter().sum();
        let head = i64::from(item.q_head + tile_head);
        for dim in 0..i64::from(spec.head_dim) {
            let mut out = 0.0;
            for (slot, weight) in slots.clone().zip(&weights) {
                let at = slot_head(slot) * i64::from(spec.head_dim) + dim;
                out += weight * memory.read::<f32>(p.partial_out, at);
            }
            let at = i64::from(item.q_token) * p.out_token_stride + head * p.out_head_stride + dim;
            memory.write(p.out, at, bf16::from_f32(out / sum).to_bits());
        }
        if spec.lse == Lse::Written {
            let at = i64::from(item.q_token) * i64::from(p.q_heads) + head;
            memory.write(p.lse, at, (maximum + sum.log2()) * std::f32::consts::LN_2);
        }
    }
}
