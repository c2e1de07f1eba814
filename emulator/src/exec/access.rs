//! `ld` and `st`: from registers to a space and back.

use super::context::Context;
use super::judge::{Request, by_space};
use super::lanes::{lanes, put};
use super::pattern::resolve;
use super::warp::Warp;
use crate::lower::op::{Address, NONE, Reg, Space};
use crate::parse::ast::Ty;

/// One load or store instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) ty: Ty,
    pub(super) count: u8,
    /// Data in 64-bit registers.
    pub(super) wide: bool,
    pub(super) regs: [Reg; 4],
}

impl Shape {
    pub(super) const fn bytes(self) -> u32 {
        self.ty.bytes() * self.count as u32
    }
}

/// Data of an access: up to four words a lane.
pub(super) type Block = [[u32; 32]; 4];

impl Context<'_> {
    /// `ld`.
    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        space: Space,
        shape: Shape,
        address: Address,
    ) {
        let bytes = shape.bytes();
        let addresses = resolve(self.fast, &warp.words, &warp.doubles, address, mask, bytes);
        let request = Request {
            warp: warp.index,
            pc: warp.pc,
            addresses: &addresses,
            bytes,
        };
        let env = self.env;
        let mut data: Block = [[0; 32]; 4];
        by_space(space, request, mask, |space, request, mask| match space {
            Space::Shared => self.load_shared(request, mask, &mut data),
            Space::Local => self.load_local(request, mask, &mut data),
            Space::Param => self.load_image(request, env.params, mask, &mut data),
            Space::Const => self.load_image(request, env.constants, mask, &mut data),
            Space::Global | Space::Generic => self.load_global(request, mask, &mut data),
        });
        distribute(warp, mask, shape, &data);
    }

    /// `st`.
    pub(super) fn store(
        &mut self,
        warp: &Warp,
        mask: u32,
        space: Space,
        shape: Shape,
        address: Address,
    ) {
        let bytes = shape.bytes();
        let addresses = resolve(self.fast, &warp.words, &warp.doubles, address, mask, bytes);
        let request = Request {
            warp: warp.index,
            pc: warp.pc,
            addresses: &addresses,
            bytes,
        };
        let data = gather(warp, shape);
        by_space(space, request, mask, |space, request, mask| match space {
            Space::Shared => self.store_shared(request, mask, &data),
            Space::Local => self.store_local(request, mask, &data),
            Space::Param | Space::Const => {
                self.drop_outside(request, mask, 0, "a read-only space");
            }
            Space::Global | Space::Generic => self.store_global(request, mask, &data),
        });
    }
}

/// Bytes of one lane into its words.
pub(super) fn spread(source: &[u8], lane: usize, data: &mut Block) {
    for (i, byte) in source.iter().enumerate() {
        let plane = &mut data[i / 4][lane];
        let shift = 8 * (i % 4);
        *plane = *plane & !(0xFF << shift) | u32::from(*byte) << shift;
    }
}

/// Extends a narrow value in a word to 64 bits.
const fn extend(ty: Ty, word: u32) -> u64 {
    match ty {
        Ty::S8 => word as u8 as i8 as i64 as u64,
        Ty::S16 => word as u16 as i16 as i64 as u64,
        Ty::S32 => word as i32 as i64 as u64,
        _ => match ty.bytes() {
            1 => word as u8 as u64,
            2 => word as u16 as u64,
            _ => word as u64,
        },
    }
}

/// Loaded words to the destination registers.
#[inline]
fn distribute(warp: &mut Warp, mask: u32, shape: Shape, data: &Block) {
    let elements = usize::from(shape.count);
    if shape.ty.bytes() == 4 && !shape.wide {
        for (reg, plane) in shape.regs.iter().zip(data).take(elements) {
            if *reg != NONE {
                put(&mut warp.words[*reg as usize].0, plane, mask);
            }
        }
        return;
    }
    let size = shape.ty.bytes();
    for (element, reg) in shape.regs.iter().enumerate().take(elements) {
        if *reg == NONE {
            continue;
        }
        let value = |lane: usize| {
            if size == 8 {
                return u64::from(data[2 * element][lane])
                    | u64::from(data[2 * element + 1][lane]) << 32;
            }
            let at = element * size as usize;
            extend(shape.ty, data[at / 4][lane] >> (8 * (at % 4)))
        };
        for lane in lanes(mask) {
            if shape.wide {
                warp.doubles[*reg as usize].0[lane] = value(lane);
            } else {
                warp.words[*reg as usize].0[lane] = value(lane) as u32;
            }
        }
    }
}

/// Source registers to the words to store.
#[inline]
fn gather(warp: &Warp, shape: Shape) -> Block {
    let mut data: Block = [[0; 32]; 4];
    let elements = usize::from(shape.count);
    if shape.ty.bytes() == 4 && !shape.wide {
        for (reg, plane) in shape.regs.iter().zip(&mut data).take(elements) {
            *plane = warp.words[*reg as usize].0;
        }
        return data;
    }
    let size = shape.ty.bytes();
    for (element, reg) in shape.regs.iter().enumerate().take(elements) {
        for lane in 0..32 {
            let value = if shape.wide {
                warp.doubles[*reg as usize].0[lane]
            } else {
                u64::from(warp.words[*reg as usize].0[lane])
            };
            if size == 8 {
                data[2 * element][lane] = value as u32;
                data[2 * element + 1][lane] = (value >> 32) as u32;
            } else {
                let at = element * size as usize;
                let shift = 8 * (at % 4);
                let low = if size >= 4 {
                    u32::MAX
                } else {
                    (1 << (8 * size)) - 1
                };
                data[at / 4][lane] |= (value as u32 & low) << shift;
            }
        }
    }
    data
}
