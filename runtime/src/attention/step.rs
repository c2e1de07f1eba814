//! A plan with the device memory it needs.

use crate::device::{Buffer, Device, DeviceError, Region};
use crate::plan::{Batch, Plan, Table};
use pagesmith_spec::Variant;
use pagesmith_spec::abi::DevicePtr;
use zerocopy::IntoBytes;

use super::TablePlace;

/// A [`Plan`] with its device memory: work list, block table and partial results.
///
/// Memory only grows, so steps of a similar size do not allocate. A server that keeps several steps
/// in flight keeps several of these.
#[derive(Debug)]
pub struct DevicePlan<D: Device> {
    pub(super) plan: Plan,
    pub(super) planned: Option<Planned>,
    work: Scratch<D::Buffer>,
    table: Scratch<D::Buffer>,
    indptr: Scratch<D::Buffer>,
    partial_out: Scratch<D::Buffer>,
    partial_lse: Scratch<D::Buffer>,
    /// The stream that last used the memory.
    stream: Option<D::Stream>,
}

/// What a plan was made for.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) variant: Variant,
    pub(super) kv_heads: u32,
    pub(super) sequences: u32,
    pub(super) blocks: u32,
    pub(super) table: TablePlace,
    /// Entries from one row of a dense table to the next; 0 for CSR.
    pub(super) table_row: i64,
    /// Entries of the table.
    pub(super) table_entries: u64,
}

/// Addresses in a plan's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanAddresses {
    pub(super) work: DevicePtr,
    pub(super) merge: DevicePtr,
    pub(super) table: DevicePtr,
    pub(super) indptr: DevicePtr,
    pub(super) partial_out: DevicePtr,
    pub(super) partial_lse: DevicePtr,
}

impl<D: Device> Default for DevicePlan<D> {
    fn default() -> Self {
        DevicePlan {
            plan: Plan::default(),
            planned: None,
            work: Scratch::new("work"),
            table: Scratch::new("table"),
            indptr: Scratch::new("table_indptr"),
            partial_out: Scratch::new("partial_out"),
            partial_lse: Scratch::new("partial_lse"),
            stream: None,
        }
    }
}

impl<D: Device> DevicePlan<D> {
    /// The work list.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Makes `stream` the one that uses the memory, after the work of the one before.
    pub(super) fn take_over(&mut self, device: &D, stream: &D::Stream) -> Result<(), DeviceError> {
        if let Some(last) = &self.stream
            && last != stream
        {
            device.synchronize(last)?;
        }
        if self.stream.as_ref() != Some(stream) {
            self.stream = Some(stream.clone());
        }
        Ok(())
    }

    /// Copies work list and table to the device, and makes room for partial results.
    pub(super) fn upload(
        &mut self,
        device: &D,
        variant: &Variant,
        batch: &Batch<'_>,
        place: TablePlace,
        stream: &D::Stream,
    ) -> Result<(), DeviceError> {
        let work = self.plan.work().as_bytes();
        let merge = self.plan.merge().as_bytes();
        if work.is_empty() {
            return Ok(());
        }
        // One allocation for both lists: a work item is 32 bytes, so the merge list stays aligned.
        let total = work.len() as u64 + merge.len() as u64;
        let region = self.work.room(device, total)?;
        device.upload(region, work, stream)?;
        if !merge.is_empty() {
            let after = region.part(work.len() as u64, merge.len() as u64)?;
            device.upload(after, merge, stream)?;
        }
        self.partial_out
            .room(device, self.plan.partial_out_bytes(variant))?;
        self.partial_lse
            .room(device, self.plan.partial_lse_bytes(variant))?;
        if place == TablePlace::Planned {
            match batch.table() {
                Table::Dense { entries, row, .. } => {
                    let live = &entries[..batch.sequences() * row];
                    self.table.store(device, live.as_bytes(), stream)?;
                }
                Table::Csr {
                    indptr, indices, ..
                } => {
                    let live = &indices[..table_entries(batch) as usize];
                    self.table.store(device, live.as_bytes(), stream)?;
                    self.indptr.store(device, indptr.as_bytes(), stream)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn addresses(&self) -> PlanAddresses {
        let work = self.work.start();
        let merge = work.0 + self.plan.work().as_bytes().len() as u64;
        PlanAddresses {
            work,
            merge: DevicePtr(merge),
            table: self.table.start(),
            indptr: self.indptr.start(),
            partial_out: self.partial_out.start(),
            partial_lse: self.partial_lse.start(),
        }
    }
}

/// Entries of the table that belong to the batch.
pub(super) fn table_entries(batch: &Batch<'_>) -> u64 {
    match batch.table() {
        Table::Dense { row, .. } => batch.sequences() as u64 * row as u64,
        Table::Csr { indptr, .. } => indptr
            .last()
            .map_or(0, |&end| u64::from(end.unsigned_abs())),
    }
}

/// Memory that grows when more is needed and is kept when less is.
#[derive(Debug)]
struct Scratch<B> {
    name: &'static str,
    buffer: Option<B>,
}

impl<B: Buffer> Scratch<B> {
    fn new(name: &'static str) -> Self {
        Scratch { name, buffer: None }
    }

    /// At least `bytes` bytes; nothing is allocated for none.
    fn room<D: Device<Buffer = B>>(
        &mut self,
        device: &D,
        bytes: u64,
    ) -> Result<Region<'_>, DeviceError> {
        let held = self.buffer.as_ref().map_or(0, Buffer::bytes);
        if bytes > held {
            // The first size is exact, so that the emulator's bounds are; then by half, so that a
            // slowly growing batch does not allocate at every step.
            self.buffer = Some(device.alloc(self.name, bytes.max(held + held / 2))?);
        }
        match &self.buffer {
            Some(buffer) => Ok(buffer.region()),
            // SAFETY: no byte of it can be touched.
            None => Ok(unsafe { Region::from_raw(DevicePtr::NULL, 0) }),
        }
    }

    fn store<D: Device<Buffer = B>>(
        &mut self,
        device: &D,
        bytes: &[u8],
        stream: &D::Stream,
    ) -> Result<(), DeviceError> {
        let region = self.room(device, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        device.upload(region, bytes, stream)
    }

    fn start(&self) -> DevicePtr {
        self.buffer
            .as_ref()
            .map_or(DevicePtr::NULL, |buffer| buffer.region().start())
    }
}
