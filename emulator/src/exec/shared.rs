//! Loads and stores of shared memory.

use super::access::Block;
use super::context::{Context, SharedUse};
use super::judge::Request;
use super::lanes::lanes;
use crate::check::Party;

impl Context<'_> {
    pub(super) fn load_shared(&mut self, request: Request<'_>, mask: u32, data: &mut Block) {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        let mask = self.in_shared(request, mask);
        self.count_wavefronts(request, SharedUse::Load, mask);
        for lane in lanes(mask) {
            let address = addresses.of[lane] as usize;
            let at = address / 4;
            if self.shadowed {
                let who = Party {
                    warp,
                    lane: lane as u32,
                };
                let conflict = self.shadow.read(address, bytes, who);
                if let Some(conflict) = conflict {
                    self.report_conflict(conflict, who, pc, address as u32, "read");
                }
            }
            if bytes < 4 {
                data[0][lane] = self.shared[at] >> (8 * (address % 4));
                continue;
            }
            for (plane, word) in data
                .iter_mut()
                .zip(&self.shared[at..at + bytes as usize / 4])
            {
                plane[lane] = *word;
            }
        }
    }

    pub(super) fn store_shared(&mut self, request: Request<'_>, mask: u32, data: &Block) {
        let Request {
            warp,
            pc,
            addresses,
            bytes,
        } = request;
        let mask = self.in_shared(request, mask);
        self.count_wavefronts(request, SharedUse::Store, mask);
        for lane in lanes(mask) {
            let address = addresses.of[lane] as usize;
            let at = address / 4;
            if self.shadowed {
                let who = Party {
                    warp,
                    lane: lane as u32,
                };
                let conflict = self.shadow.write(address, bytes, who);
                if let Some(conflict) = conflict {
                    self.report_conflict(conflict, who, pc, address as u32, "write");
                }
            }
            if bytes < 4 {
                let shift = 8 * (address % 4);
                let low = (1u32 << (8 * bytes)) - 1;
                let word = &mut self.shared[at];
                *word = *word & !(low << shift) | (data[0][lane] & low) << shift;
                continue;
            }
            for (plane, word) in data
                .iter()
                .zip(&mut self.shared[at..at + bytes as usize / 4])
            {
                *word = plane[lane];
            }
        }
    }
}
