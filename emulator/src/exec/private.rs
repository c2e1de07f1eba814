//! Memory that no other block can touch: local memory, parameters, constants.

use super::access::{Block, spread};
use super::context::Context;
use super::judge::Request;
use super::lanes::lanes;
use crate::check::{Details, FindingKind};

impl Context<'_> {
    fn local_start(&self, warp: u32, lane: usize, address: u64) -> usize {
        (warp as usize * 32 + lane) * self.env.entry.local_bytes as usize + address as usize
    }

    fn in_local(&mut self, request: Request<'_>, mask: u32) -> u32 {
        let mask = self.aligned(request, mask);
        let size = u64::from(self.env.entry.local_bytes);
        self.drop_outside(request, mask, size, "local memory")
    }

    pub(super) fn load_local(&mut self, request: Request<'_>, mask: u32, data: &mut Block) {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        for lane in lanes(self.in_local(request, mask)) {
            let start = self.local_start(warp, lane, addresses.of[lane]);
            let range = start..start + bytes as usize;
            if self.checks.uninitialised
                && !self.local_written[range.clone()]
                    .iter()
                    .all(|written| *written)
            {
                let address = addresses.of[lane];
                self.report(
                    FindingKind::UninitialisedMemory,
                    warp,
                    lane as u32,
                    pc,
                    || Details {
                        address: Some(address),
                        allocation: None,
                        message: format!("read of local bytes at {address:#x} that nothing wrote"),
                    },
                );
            }
            spread(&self.local[range], lane, data);
        }
    }

    pub(super) fn store_local(&mut self, request: Request<'_>, mask: u32, data: &Block) {
        let Request {
            warp,
            addresses,
            bytes,
            ..
        } = request;
        for lane in lanes(self.in_local(request, mask)) {
            let start = self.local_start(warp, lane, addresses.of[lane]);
            for (i, byte) in self.local[start..start + bytes as usize]
                .iter_mut()
                .enumerate()
            {
                *byte = (data[i / 4][lane] >> (8 * (i % 4))) as u8;
            }
            self.local_written[start..start + bytes as usize].fill(true);
        }
    }

    /// Loads from a read-only image: parameters or constants.
    pub(super) fn load_image(
        &mut self,
        request: Request<'_>,
        image: &[u8],
        mask: u32,
        data: &mut Block,
    ) {
        let Request {
            addresses, bytes, ..
        } = request;
        let mask = self.aligned(request, mask);
        if mask != 0 && addresses.min == addresses.max {
            // Nearly every parameter is read by all lanes at one address.
            let start = usize::try_from(addresses.min).unwrap_or(usize::MAX);
            if let Some(source) = image.get(start..start.saturating_add(bytes as usize)) {
                spread(source, 0, data);
                for plane in data {
                    *plane = [plane[0]; 32];
                }
                return;
            }
        }
        let size = image.len() as u64;
        for lane in lanes(self.drop_outside(request, mask, size, "parameters or constants")) {
            let start = addresses.of[lane] as usize;
            spread(&image[start..start + bytes as usize], lane, data);
        }
    }
}
