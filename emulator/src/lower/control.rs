//! Barriers, fences and the end of threads.

use super::function::{Lowerer, Result};
use super::op::{BarrierKind, NONE, Op};
use crate::count::InstructionKind as Kind;
use crate::parse::ast::{Instruction, Operand, Ty};

impl Lowerer<'_> {
    pub(super) fn control(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        match &*i.opcode[0] {
            "ret" | "exit" => Ok((Op::Exit, Kind::Branch)),
            "trap" => Ok((Op::Trap, Kind::Branch)),
            "membar" | "fence" => Ok((Op::Nop, Kind::Fence)),
            "bar" | "barrier" => self.barrier(i),
            // Hints to the hardware.
            _ => Ok((Op::Nop, Kind::Move)),
        }
    }

    fn barrier(&mut self, i: &Instruction) -> Result<(Op, Kind)> {
        if i.has("warp") {
            let [members] = self.operands(i)?;
            return Ok((
                Op::WarpSync {
                    members: self.word(members, Ty::U32, i)?,
                },
                Kind::WarpSync,
            ));
        }
        if i.has("cluster") {
            return self.unsupported(i);
        }
        let aligned = &*i.opcode[0] == "bar" || i.has("aligned");
        let kind = match (
            i.has("sync"),
            i.has("arrive"),
            i.has("popc"),
            i.has("and"),
            i.has("or"),
        ) {
            (true, ..) => BarrierKind::Sync,
            (_, true, ..) => BarrierKind::Arrive,
            (_, _, true, ..) => BarrierKind::ReducePopc,
            (_, _, _, true, _) => BarrierKind::ReduceAnd,
            (.., true) => BarrierKind::ReduceOr,
            _ => return self.unsupported(i),
        };
        let reduces = matches!(
            kind,
            BarrierKind::ReducePopc | BarrierKind::ReduceAnd | BarrierKind::ReduceOr
        );
        let (d, rest, last): (_, &[Operand], _) = match &i.operands[..] {
            [d, rest @ .., last] if reduces => (Some(d), rest, Some(last)),
            _ if reduces => return self.bad_operand(i, "wrong number of operands"),
            rest => (None, rest, None),
        };
        let (a, a_not) = match last {
            Some(last) => self.predicate(last, i)?,
            None => (NONE, false),
        };
        let (id, count) = match rest {
            [id] => (self.word(id, Ty::U32, i)?, NONE),
            [id, count] => (self.word(id, Ty::U32, i)?, self.word(count, Ty::U32, i)?),
            _ => return self.bad_operand(i, "wrong number of operands"),
        };
        let d = match d {
            Some(d) if kind == BarrierKind::ReducePopc => self.destination(d, Ty::U32, i)?,
            Some(d) => self.destination(d, Ty::Pred, i)?,
            None => NONE,
        };
        Ok((
            Op::Barrier {
                kind,
                id,
                count,
                d,
                a,
                a_not,
                aligned,
            },
            Kind::Barrier,
        ))
    }
}
