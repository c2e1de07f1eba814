//! Loads, stores, atomics, asynchronous copies and address conversions.

use super::arith::types;
use super::function::{Lowerer, Result};
use super::op::{Address, Atomic, Binary64, NONE, Op, Space, Unary64};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{self, Instruction, Operand, Ty};

impl Lowerer<'_> {
    pub(super) fn memory(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        match &*i.opcode[0] {
            "ld" | "ldu" => self.load(i),
            "st" => self.store(i),
            "atom" | "red" => self.atomic(i),
            "cp" => self.copy(i),
            "ldmatrix" => self.load_matrix(i),
            "cvta" => self.convert_address(i),
            "isspacep" => {
                let Some(space) = Self::space(i) else {
                    return self.unsupported(i);
                };
                let [d, a] = self.operands(i)?;
                let a = self.double(a, i)?;
                Ok((
                    Op::IsSpace {
                        space,
                        d: self.destination(d, Ty::Pred, i)?,
                        a,
                    },
                    Kind::Compare,
                ))
            }
            // Cache hints.
            _ => Ok((Op::Nop, Kind::Move)),
        }
    }

    fn space(i: &Instruction) -> Option<Space> {
        i.opcode.iter().skip(1).find_map(|part| {
            Some(match &**part {
                "global" => Space::Global,
                "shared" | "shared::cta" => Space::Shared,
                "local" => Space::Local,
                "param" | "param::entry" | "param::func" => Space::Param,
                "const" => Space::Const,
                _ => return None,
            })
        })
    }

    /// The address and the space: the variable's own where the opcode says `.param` of an inlined function.
    fn place(&mut self, operand: &Operand, i: &Instruction) -> Result<(Address, Space)> {
        if i.has("shared::cluster") {
            return self.unsupported(i);
        }
        let stated = Self::space(i).unwrap_or(Space::Generic);
        let (mut address, named) = self.address(operand, i)?;
        let space = match (stated, named) {
            (Space::Param, Some(ast::Space::Local)) => Space::Local,
            (Space::Param, None) if self.inlined() => Space::Local,
            (Space::Generic, Some(space)) => {
                // A generic access that names a variable: through its window.
                if let Operand::Memory {
                    base: Some(name),
                    offset,
                } = operand
                    && let Some(super::scope::Symbol::Variable { address: start, .. }) =
                        self.find(name)?
                {
                    let generic = start
                        .wrapping_add_signed(*offset)
                        .wrapping_add(Self::window(space));
                    address = Address {
                        base: self.constant64(generic)?,
                        wide: true,
                        offset: 0,
                    };
                }
                Space::Generic
            }
            (stated, _) => stated,
        };
        Ok((address, space))
    }

    /// Element type, number of elements, and whether the data registers are 64-bit.
    fn shape(&mut self, data: &Operand, i: &Instruction) -> Result<(Ty, u8, bool)> {
        let ty = self.last_type(i)?;
        let count: u8 = if i.has("v4") {
            4
        } else if i.has("v2") {
            2
        } else {
            1
        };
        let elements = Self::elements(data);
        if ty == Ty::Pred || ty == Ty::B128 || i.has("v8") || u32::from(count) * ty.bytes() > 16 {
            return self.unsupported(i);
        }
        if elements.len() != usize::from(count) {
            return self.bad_operand(i, "the number of registers differs from the vector length");
        }
        let mut wide = ty.bytes() == 8;
        for element in elements {
            if let Some(declared) = self.declared(element)? {
                wide = declared.bytes() == 8;
            }
        }
        if ty.bytes() == 8 && !wide {
            return self.bad_operand(i, "64-bit registers are wanted");
        }
        Ok((ty, count, wide))
    }

    fn load(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let [data, address] = self.operands(i)?;
        let (ty, count, wide) = self.shape(data, i)?;
        let register_ty = if wide { Ty::B64 } else { Ty::B32 };
        let mut d = [NONE; 4];
        for (reg, element) in d.iter_mut().zip(Self::elements(data)) {
            *reg = self.destination(element, register_ty, i)?;
        }
        // A signed byte in a 16-bit register keeps 16 bits; every other narrow value fills its plane.
        let mut ty = ty;
        if ty == Ty::S8
            && matches!(self.declared(&Self::elements(data)[0])?, Some(declared) if declared.bytes() == 2)
        {
            return self.unsupported(i);
        }
        if ty == Ty::S16
            && matches!(self.declared(&Self::elements(data)[0])?, Some(declared) if declared.bytes() == 2)
        {
            ty = Ty::U16;
        }
        let (address, space) = self.place(address, i)?;
        let kind = match space {
            Space::Global | Space::Generic => Kind::GlobalLoad,
            Space::Shared => Kind::SharedLoad,
            Space::Local => Kind::Local,
            Space::Param | Space::Const => Kind::Constant,
        };
        Ok((
            Op::Load {
                space,
                ty,
                count,
                wide,
                d,
                address,
            },
            kind,
        ))
    }

    fn store(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let [address, data] = self.operands(i)?;
        let (ty, count, wide) = self.shape(data, i)?;
        let mut a = [NONE; 4];
        for (reg, element) in a.iter_mut().zip(Self::elements(data)) {
            *reg = if wide {
                self.double(element, i)?
            } else {
                self.word(element, ty, i)?
            };
            if *reg == NONE {
                return self.bad_operand(i, "`_` cannot be stored");
            }
        }
        let (address, space) = self.place(address, i)?;
        let kind = match space {
            Space::Global | Space::Generic => Kind::GlobalStore,
            Space::Shared => Kind::SharedStore,
            Space::Local => Kind::Local,
            Space::Param | Space::Const => return self.bad_operand(i, "this space is read-only"),
        };
        Ok((
            Op::Store {
                space,
                ty,
                count,
                wide,
                a,
                address,
            },
            kind,
        ))
    }

    fn atomic(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let ty = self.last_type(i)?;
        let op = i.opcode.iter().skip(1).find_map(|part| {
            Some(match &**part {
                "add" => Atomic::Add,
                "min" => Atomic::Min,
                "max" => Atomic::Max,
                "and" => Atomic::And,
                "or" => Atomic::Or,
                "xor" => Atomic::Xor,
                "exch" => Atomic::Exch,
                "cas" => Atomic::Cas,
                "inc" => Atomic::Inc,
                "dec" => Atomic::Dec,
                _ => return None,
            })
        });
        let Some(op) = op else {
            return self.unsupported(i);
        };
        let fits = match op {
            Atomic::Add => matches!(
                ty,
                Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 | Ty::F32 | Ty::F64
            ),
            Atomic::Min | Atomic::Max => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64),
            Atomic::And | Atomic::Or | Atomic::Xor | Atomic::Exch | Atomic::Cas => {
                ty.integer() && matches!(ty.bytes(), 4 | 8)
            }
            Atomic::Inc | Atomic::Dec => ty == Ty::U32,
        };
        if !fits || i.has("v2") || i.has("v4") || i.has("v8") {
            return self.unsupported(i);
        }
        let returns = &*i.opcode[0] == "atom";
        let extra = usize::from(op == Atomic::Cas);
        let skip = usize::from(returns);
        if i.operands.len() != 2 + skip + extra {
            return self.bad_operand(i, "wrong number of operands");
        }
        let d = if returns {
            self.destination(&i.operands[0], ty, i)?
        } else {
            NONE
        };
        let b = self.typed(&i.operands[1 + skip], ty, i)?;
        let c = if extra == 1 {
            self.typed(&i.operands[2 + skip], ty, i)?
        } else {
            NONE
        };
        let (address, space) = self.place(&i.operands[skip], i)?;
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return self.unsupported(i);
        }
        Ok((
            Op::Atomic {
                space,
                op,
                ty,
                d,
                address,
                b,
                c,
            },
            Kind::Atomic,
        ))
    }

    fn copy(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        if !i.has("async") || i.has("bulk") || i.has("mbarrier") {
            return self.unsupported(i);
        }
        if i.has("commit_group") {
            return Ok((Op::AsyncCommit, Kind::AsyncGroup));
        }
        if i.has("wait_all") {
            return Ok((
                Op::AsyncWait {
                    pending: 0,
                    all: true,
                },
                Kind::AsyncGroup,
            ));
        }
        if i.has("wait_group") {
            let [Operand::Int(pending)] = self.operands(i)? else {
                return self.bad_operand(i, "the number of groups is a constant");
            };
            let pending = u32::try_from(*pending).unwrap_or(u32::MAX);
            return Ok((
                Op::AsyncWait {
                    pending,
                    all: false,
                },
                Kind::AsyncGroup,
            ));
        }
        if !(i.has("ca") || i.has("cg")) || i.has("shared::cluster") {
            return self.unsupported(i);
        }
        let (Some(to), Some(from), Some(Operand::Int(size))) =
            (i.operands.first(), i.operands.get(1), i.operands.get(2))
        else {
            return self.bad_operand(i, "two addresses and a constant size are wanted");
        };
        let size = match (size, i.has("cg")) {
            (16, _) | (4 | 8, false) => *size as u8,
            _ => return self.bad_operand(i, "the size is 4, 8 or 16, with .cg only 16"),
        };
        let src = match &i.operands[3..] {
            [] => NONE,
            [src] => match self.declared(src)? {
                Some(Ty::Pred) => return self.unsupported(i),
                _ => self.word(src, Ty::U32, i)?,
            },
            _ => return self.unsupported(i),
        };
        let (to, from) = (self.address(to, i)?.0, self.address(from, i)?.0);
        Ok((
            Op::AsyncCopy {
                size,
                to,
                from,
                src,
            },
            Kind::AsyncCopy,
        ))
    }

    fn load_matrix(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        if !i.has("m8n8") || !i.has("b16") || i.has("shared::cluster") {
            return self.unsupported(i);
        }
        let count: u8 = match (i.has("x1"), i.has("x2"), i.has("x4")) {
            (true, _, _) => 1,
            (_, true, _) => 2,
            (_, _, true) => 4,
            _ => return self.unsupported(i),
        };
        let [data, address] = self.operands(i)?;
        let elements = Self::elements(data);
        if elements.len() != usize::from(count) {
            return self.bad_operand(
                i,
                "the number of registers differs from the number of matrices",
            );
        }
        let mut d = [NONE; 4];
        for (reg, element) in d.iter_mut().zip(elements) {
            *reg = self.destination(element, Ty::B32, i)?;
        }
        let address = self.address(address, i)?.0;
        Ok((
            Op::LoadMatrix {
                count,
                trans: i.has("trans"),
                d,
                address,
            },
            Kind::LoadMatrix,
        ))
    }

    fn convert_address(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        let to = i.has("to");
        let Some(space) = Self::space(i) else {
            return self.unsupported(i);
        };
        if types(i).any(|ty| ty.bytes() != 8) {
            return self.unsupported(i);
        }
        let [d, a] = self.operands(i)?;
        let a = self.double(a, i)?;
        let d = self.destination(d, Ty::U64, i)?;
        let window = Self::window(match space {
            Space::Shared => ast::Space::Shared,
            // Parameters of an inlined function are local variables.
            Space::Local => ast::Space::Local,
            Space::Param if self.inlined() => ast::Space::Local,
            Space::Param => ast::Space::Param,
            Space::Const => ast::Space::Const,
            Space::Global | Space::Generic => ast::Space::Global,
        });
        let op = if window == 0 {
            Op::Unary64 {
                op: Unary64::Mov,
                d,
                a,
            }
        } else {
            let b = self.constant64(window)?;
            Op::Binary64 {
                op: if to { Binary64::Sub } else { Binary64::Add },
                d,
                a,
                b,
            }
        };
        let _ = types(i);
        Ok((op, Kind::Move))
    }
}
