//! Loads and stores of global memory.

use super::access::Block;
use super::context::{Context, GlobalUse};
use super::judge::{Request, sectors_of};
use super::lanes::{FULL, lanes};
use crate::check::{Details, FindingKind};
use crate::memory::Allocation;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Context<'_> {
    /// Reports lanes that read bytes which nothing wrote.
    #[inline]
    pub(super) fn check_written(
        &mut self,
        request: Request<'_>,
        allocation: &Allocation,
        mask: u32,
    ) {
        let Request {
            addresses, bytes, ..
        } = request;
        let written = allocation.written();
        // Only meaningful where all lanes are in this allocation; a lane elsewhere may lie below it.
        let start = addresses.min.wrapping_sub(allocation.base);
        if addresses.contiguous && start.is_multiple_of(32) && mask == FULL {
            // One run of whole shadow words.
            let at = (start / 32) as usize;
            let run = &written[at..at + bytes as usize];
            if run
                .iter()
                .fold(u32::MAX, |all, word| all & word.load(Relaxed))
                == u32::MAX
            {
                return;
            }
        }
        let low = u32::MAX >> (32 - bytes);
        let mut all = u32::MAX;
        for lane in lanes(mask) {
            let offset = addresses.of[lane] - allocation.base;
            all &= written[(offset / 32) as usize].load(Relaxed) >> (offset % 32);
        }
        if all & low != low {
            self.report_unwritten(request, allocation, mask);
        }
    }

    #[cold]
    fn report_unwritten(&mut self, request: Request<'_>, allocation: &Allocation, mask: u32) {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        for lane in lanes(mask) {
            let address = addresses.of[lane];
            let offset = address - allocation.base;
            if allocation.is_written(offset, u64::from(bytes)) {
                continue;
            }
            let name: &Arc<str> = &allocation.name;
            self.report(
                FindingKind::UninitialisedMemory,
                warp,
                lane as u32,
                pc,
                || Details {
                    address: Some(address),
                    allocation: Some(name.to_string()),
                    message: format!(
                        "read of {bytes} bytes at offset {offset} of `{name}` that nothing wrote"
                    ),
                },
            );
        }
    }

    /// Marks the lanes' bytes as written.
    #[inline]
    pub(super) fn mark_written(allocation: &Allocation, request: Request<'_>, mask: u32) {
        let Request {
            addresses, bytes, ..
        } = request;
        let written = allocation.written();
        let low = u32::MAX >> (32 - bytes);
        for lane in lanes(mask) {
            let offset = addresses.of[lane] - allocation.base;
            let word = &written[(offset / 32) as usize];
            let bits = low << (offset % 32);
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
        }
    }

    pub(super) fn load_global(&mut self, request: Request<'_>, mask: u32, data: &mut Block) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        self.by_region(request, mask, |context, index, allocation, mask| {
            if context.count_traffic {
                let total = bytes * mask.count_ones();
                context.count_global(pc, GlobalUse::Load, index, sectors_of(request, mask), total);
            }
            if context.checks.uninitialised {
                context.check_written(request, allocation, mask);
            }
            let words = allocation.words();
            for lane in lanes(mask) {
                let offset = addresses.of[lane] - allocation.base;
                let at = (offset / 4) as usize;
                if bytes < 4 {
                    data[0][lane] = words[at].load(Relaxed) >> (8 * (offset % 4));
                    continue;
                }
                let count = (bytes / 4) as usize;
                for (plane, word) in data.iter_mut().zip(&words[at..at + count]) {
                    plane[lane] = word.load(Relaxed);
                }
            }
        });
    }

    pub(super) fn store_global(&mut self, request: Request<'_>, mask: u32, data: &Block) {
        let Request {
            pc,
            addresses,
            bytes,
            ..
        } = request;
        self.by_region(request, mask, |context, index, allocation, mask| {
            if context.count_traffic {
                let total = bytes * mask.count_ones();
                context.count_global(
                    pc,
                    GlobalUse::Store,
                    index,
                    sectors_of(request, mask),
                    total,
                );
            }
            let words = allocation.words();
            for lane in lanes(mask) {
                let offset = addresses.of[lane] - allocation.base;
                if bytes < 4 {
                    allocation.write(offset, &data[0][lane].to_le_bytes()[..bytes as usize]);
                    continue;
                }
                let at = (offset / 4) as usize;
                let count = (bytes / 4) as usize;
                for (plane, word) in data.iter().zip(&words[at..at + count]) {
                    word.store(plane[lane], Relaxed);
                }
            }
            Self::mark_written(allocation, request, mask);
        });
    }
}
