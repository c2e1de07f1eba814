//! Operands to registers.

use super::entry::SpecialKind;
use super::function::{Lowerer, Result};
use super::op::{Address, File, NONE, Reg};
use super::scope::{Symbol, file_of};
use crate::ParseErrorKind;
use crate::memory::{CONST_WINDOW, LOCAL_WINDOW};
use crate::parse::ast::{Instruction, Operand, Space, Ty};

/// The special register of this name.
fn special_kind(name: &str) -> Option<SpecialKind> {
    let axis = |name: &str| match name.rsplit_once('.')?.1 {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    Some(match name {
        "%laneid" => SpecialKind::LaneId,
        "%warpid" => SpecialKind::WarpId,
        "%nwarpid" => SpecialKind::WarpCount,
        "%lanemask_eq" => SpecialKind::LaneMaskEq,
        "%lanemask_lt" => SpecialKind::LaneMaskLt,
        "%lanemask_le" => SpecialKind::LaneMaskLe,
        "%lanemask_gt" => SpecialKind::LaneMaskGt,
        "%lanemask_ge" => SpecialKind::LaneMaskGe,
        "%smid" => SpecialKind::SmId,
        "%nsmid" => SpecialKind::SmCount,
        "%gridid" => SpecialKind::GridId,
        "%dynamic_smem_size" => SpecialKind::DynamicShared,
        "%total_smem_size" => SpecialKind::TotalShared,
        _ if name.starts_with("%tid.") => SpecialKind::Tid(axis(name)?),
        _ if name.starts_with("%ntid.") => SpecialKind::Ntid(axis(name)?),
        _ if name.starts_with("%ctaid.") => SpecialKind::Ctaid(axis(name)?),
        _ if name.starts_with("%nctaid.") => SpecialKind::Nctaid(axis(name)?),
        _ => return None,
    })
}

impl Lowerer<'_> {
    pub(super) fn bad_operand<T>(&self, instruction: &Instruction, why: &str) -> Result<T> {
        self.fail(ParseErrorKind::Operand {
            instruction: instruction.spelled(),
            why: why.to_owned(),
        })
    }

    pub(super) fn unsupported<T>(&self, instruction: &Instruction) -> Result<T> {
        self.fail(ParseErrorKind::Unsupported(instruction.spelled()))
    }

    /// The operands, exactly `N` of them.
    pub(super) fn operands<'i, const N: usize>(
        &self,
        instruction: &'i Instruction,
    ) -> Result<&'i [Operand; N]> {
        match <&[Operand; N]>::try_from(&instruction.operands[..]) {
            Ok(operands) => Ok(operands),
            Err(_) => self.bad_operand(instruction, "wrong number of operands"),
        }
    }

    fn unknown<T>(&self, name: &str) -> Result<T> {
        self.fail(ParseErrorKind::Unknown {
            what: "name",
            name: name.chars().take(60).collect(),
        })
    }

    pub(super) fn predicate_named(&mut self, name: &str, instruction: &Instruction) -> Result<Reg> {
        match self.find(name)? {
            Some(Symbol::Register { ty: Ty::Pred, reg }) => Ok(reg),
            Some(_) => self.bad_operand(instruction, "a predicate is wanted"),
            None => self.unknown(name),
        }
    }

    /// A predicate operand and whether it is negated.
    pub(super) fn predicate(
        &mut self,
        operand: &Operand,
        instruction: &Instruction,
    ) -> Result<(Reg, bool)> {
        match operand {
            Operand::Name(name) => Ok((self.predicate_named(name, instruction)?, false)),
            Operand::NotName(name) => Ok((self.predicate_named(name, instruction)?, true)),
            _ => self.bad_operand(instruction, "a predicate is wanted"),
        }
    }

    /// A source in the 32-bit file, or a destination that is not `_`.
    pub(super) fn word(
        &mut self,
        operand: &Operand,
        ty: Ty,
        instruction: &Instruction,
    ) -> Result<Reg> {
        match operand {
            Operand::Name(name) => {
                if let Some(symbol) = self.find(name)? {
                    return match symbol {
                        Symbol::Register { ty: declared, reg }
                            if file_of(declared) == Some(File::W32) =>
                        {
                            Ok(reg)
                        }
                        Symbol::Register { .. } => {
                            self.bad_operand(instruction, "a register of 32 bits or less is wanted")
                        }
                        Symbol::Variable { space, address } => {
                            self.constant32(Self::symbol_value(space, address) as u32)
                        }
                    };
                }
                match special_kind(name) {
                    Some(SpecialKind::GridId) | None => self.unknown(name),
                    Some(kind) => self.special(kind),
                }
            }
            Operand::NameOffset(name, offset) => match self.find(name)? {
                Some(Symbol::Variable { space, address }) => self.constant32(
                    Self::symbol_value(space, address).wrapping_add_signed(*offset) as u32,
                ),
                _ => self.bad_operand(instruction, "a variable is wanted"),
            },
            Operand::Int(value) => {
                let value = *value as u32;
                self.constant32(if ty.bytes() == 2 {
                    value & 0xFFFF
                } else {
                    value
                })
            }
            Operand::F32(bits) => self.constant32(*bits),
            Operand::F64(bits) if ty == Ty::F32 => {
                let value = f64::from_bits(*bits) as f32;
                self.constant32(value.to_bits())
            }
            _ => self.bad_operand(instruction, "a register or a constant is wanted"),
        }
    }

    /// A source in the 64-bit file, or a destination that is not `_`.
    pub(super) fn double(&mut self, operand: &Operand, instruction: &Instruction) -> Result<Reg> {
        match operand {
            Operand::Name(name) => {
                if let Some(symbol) = self.find(name)? {
                    return match symbol {
                        Symbol::Register { ty, reg } if file_of(ty) == Some(File::W64) => Ok(reg),
                        Symbol::Register { .. } => {
                            self.bad_operand(instruction, "a 64-bit register is wanted")
                        }
                        Symbol::Variable { space, address } => {
                            self.constant64(Self::symbol_value(space, address))
                        }
                    };
                }
                match special_kind(name) {
                    Some(SpecialKind::GridId) => self.special(SpecialKind::GridId),
                    _ => self.unknown(name),
                }
            }
            Operand::NameOffset(name, offset) => match self.find(name)? {
                Some(Symbol::Variable { space, address }) => {
                    self.constant64(Self::symbol_value(space, address).wrapping_add_signed(*offset))
                }
                _ => self.bad_operand(instruction, "a variable is wanted"),
            },
            Operand::Int(value) => self.constant64(*value),
            Operand::F64(bits) => self.constant64(*bits),
            Operand::F32(bits) => self.constant64(f64::from(f32::from_bits(*bits)).to_bits()),
            _ => self.bad_operand(instruction, "a 64-bit register or a constant is wanted"),
        }
    }

    /// The value of a variable's name: its address in its own space.
    const fn symbol_value(space: Space, address: u64) -> u64 {
        let _ = space;
        address
    }

    /// A register in the file of `ty`.
    pub(super) fn typed(
        &mut self,
        operand: &Operand,
        ty: Ty,
        instruction: &Instruction,
    ) -> Result<Reg> {
        if ty.bytes() == 8 {
            self.double(operand, instruction)
        } else {
            self.word(operand, ty, instruction)
        }
    }

    /// A destination: a register or `_`, nothing else.
    pub(super) fn destination(
        &mut self,
        operand: &Operand,
        ty: Ty,
        instruction: &Instruction,
    ) -> Result<Reg> {
        match operand {
            Operand::Sink => return Ok(NONE),
            Operand::Name(name) => {
                if let Some(Symbol::Register { .. }) = self.find(name)? {
                    return if ty == Ty::Pred {
                        self.predicate_named(name, instruction)
                    } else {
                        self.typed(operand, ty, instruction)
                    };
                }
            }
            _ => {}
        }
        self.bad_operand(instruction, "the destination must be a register")
    }

    /// The declared type of a register operand.
    pub(super) fn declared(&mut self, operand: &Operand) -> Result<Option<Ty>> {
        match operand {
            Operand::Name(name) => match self.find(name)? {
                Some(Symbol::Register { ty, .. }) => Ok(Some(ty)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// `[base+offset]`, and the space of the variable that is named as base.
    pub(super) fn address(
        &mut self,
        operand: &Operand,
        instruction: &Instruction,
    ) -> Result<(Address, Option<Space>)> {
        let Operand::Memory { base, offset } = operand else {
            return self.bad_operand(instruction, "an address in brackets is wanted");
        };
        let constant = |lowerer: &mut Self, value: u64| {
            Ok(Address {
                base: lowerer.constant64(value)?,
                wide: true,
                offset: 0,
            })
        };
        let Some(name) = base else {
            return Ok((constant(self, offset.cast_unsigned())?, None));
        };
        match self.find(name)? {
            Some(Symbol::Variable { space, address }) => {
                let value = Self::symbol_value(space, address).wrapping_add_signed(*offset);
                Ok((constant(self, value)?, Some(space)))
            }
            Some(Symbol::Register { ty, reg }) => {
                let wide = match file_of(ty) {
                    Some(File::W64) => true,
                    Some(File::W32) => false,
                    _ => return self.bad_operand(instruction, "a predicate is no address"),
                };
                match i32::try_from(*offset) {
                    Ok(offset) => Ok((
                        Address {
                            base: reg,
                            wide,
                            offset,
                        },
                        None,
                    )),
                    Err(_) => {
                        self.bad_operand(instruction, "offsets of 32 bits at most are supported")
                    }
                }
            }
            None => self.unknown(name),
        }
    }

    /// The elements of `{a, b}`, or the operand itself.
    pub(super) fn elements(operand: &Operand) -> &[Operand] {
        match operand {
            Operand::Vector(elements) => elements,
            other => std::slice::from_ref(other),
        }
    }

    /// The window base that turns an address of this space into a generic one.
    pub(super) const fn window(space: Space) -> u64 {
        match space {
            Space::Global => 0,
            Space::Const => CONST_WINDOW,
            Space::Shared => crate::memory::SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Param => crate::memory::PARAM_WINDOW,
        }
    }
}
