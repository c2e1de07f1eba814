//! One edit of a PTX text.

use super::CaughtBy;
use super::text::{Instruction, body, parameter_offset, redirected, split};
use pagesmith_spec::abi::{DecodeParams, Field, KernelParams};

/// A broken kernel: where the edit is, what it does, and what has to notice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mutation {
    /// What is broken, as a reader of the CUDA would say it.
    pub name: &'static str,
    /// The instruction that changes.
    pub place: Place,
    /// How.
    pub edit: Edit,
    /// What has to notice it, whatever else does too.
    pub expected: CaughtBy,
}

/// One instruction of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The kernel.
    pub entry: &'static str,
    /// Start of the opcode.
    pub opcode: &'static str,
    /// Which instructions of that opcode count.
    pub operand: Operand,
    /// Which of those that count, from 0 in the order of the text.
    pub nth: usize,
}

/// A condition on an instruction's operands; the destination is operand 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// None.
    Any,
    /// It has so many.
    Count(usize),
    /// This operand is exactly that text.
    Is(usize, &'static str),
    /// This operand is a register.
    Register(usize),
    /// It loads this field of the decode parameters.
    Field(&'static str),
}

/// What happens to the instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    /// It is gone.
    Drop,
    /// Its result is this operand, unchanged.
    Forward(usize),
    /// These operands change places.
    Swap(usize, usize),
    /// Members of this operand, a `{...}` list, change places.
    SwapMembers(usize, usize, usize),
    /// This operand becomes that text.
    Set(usize, &'static str),
    /// The operands from this one on are gone.
    Truncate(usize),
    /// This part of the opcode becomes that one.
    Opcode(&'static str, &'static str),
    /// It loads this field of the decode parameters instead.
    Field(&'static str),
}

impl Mutation {
    /// The PTX of the mutant; `None` when the place is not there or the edit does not suit it.
    pub fn apply(&self, ptx: &str) -> Option<String> {
        let lines: Vec<&str> = ptx.lines().collect();
        let body = body(&lines, self.place.entry)?;
        let (line, instruction) = body
            .clone()
            .filter_map(|line| Some((line, Instruction::parse(lines[line])?)))
            .filter(|(_, instruction)| {
                instruction.opcode.starts_with(self.place.opcode)
                    && self.place.operand.holds(instruction, |operand| {
                        parameter_offset(&lines, body.clone(), self.place.entry, operand)
                    })
            })
            .nth(self.place.nth)?;
        let edited = self.edit.of(&instruction, self.place.operand)?;
        let mut text: Vec<&str> = lines.clone();
        text[line] = &edited;
        Some(text.join("\n") + "\n")
    }
}

fn field(name: &str) -> Option<Field> {
    DecodeParams::FIELDS
        .iter()
        .find(|field| field.name == name)
        .copied()
}

impl Operand {
    fn holds(self, instruction: &Instruction<'_>, offset: impl Fn(&str) -> Option<i64>) -> bool {
        let operands = &instruction.operands;
        match self {
            Operand::Any => true,
            Operand::Count(count) => operands.len() == count,
            Operand::Is(index, text) => operands.get(index) == Some(&text),
            Operand::Register(index) => operands.get(index).is_some_and(|at| at.starts_with('%')),
            Operand::Field(name) => match (field(name), operands.last()) {
                (Some(field), Some(operand)) => offset(operand) == Some(field.offset as i64),
                _ => false,
            },
        }
    }
}

impl Edit {
    fn of(self, instruction: &Instruction<'_>, place: Operand) -> Option<String> {
        let mut edited = instruction.clone();
        let owned: String;
        match self {
            Edit::Drop => return Some(String::new()),
            Edit::Forward(index) => {
                let source = *edited.operands.get(index)?;
                // A shuffle's destination is `%r1|%p1`.
                let target = edited.operands.first()?.split('|').next()?;
                let kind = edited.opcode.rsplit('.').next()?;
                owned = format!("mov.{}", if kind == "s32" { "b32" } else { kind });
                edited.opcode = &owned;
                edited.operands = vec![target, source];
                return Some(edited.render());
            }
            Edit::Swap(a, b) => {
                edited.operands.get(a.max(b))?;
                edited.operands.swap(a, b);
            }
            Edit::SwapMembers(index, a, b) => {
                let list = edited.operands.get(index)?;
                let inner = list.strip_prefix('{')?.strip_suffix('}')?;
                let mut members = split(inner);
                members.get(a.max(b))?;
                members.swap(a, b);
                owned = format!("{{{}}}", members.join(","));
                edited.operands[index] = &owned;
                return Some(edited.render());
            }
            Edit::Set(index, text) => *edited.operands.get_mut(index)? = text,
            Edit::Truncate(count) => {
                edited.operands.get(count)?;
                edited.operands.truncate(count);
            }
            Edit::Opcode(from, to) => {
                owned = edited.opcode.replacen(from, to, 1);
                if owned == edited.opcode {
                    return None;
                }
                edited.opcode = &owned;
                return Some(edited.render());
            }
            Edit::Field(to) => {
                let Operand::Field(from) = place else {
                    return None;
                };
                owned = redirected(edited.operands.last()?, field(from)?, field(to)?)?;
                *edited.operands.last_mut()? = &owned;
                return Some(edited.render());
            }
        }
        Some(edited.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".visible .entry k(\n)\n{\n\tmov.b64 \t%rd1, k_param_0;\n\txor.b32 \t%r1, %r2, 32;\n\txor.b32 \t%r3, %r1, %r2;\n\tld.param.u64 \t%rd2, [%rd1+144];\n\tmma.sync.x {%f1,%f2}, {%r1,%r2,%r3}, {%r4}, {%f1,%f2};\n\tshfl.sync.bfly.b32 \t%r9|%p1, %r8, 4, 31, -1;\n\tbar.sync \t0;\n}\n";

    fn mutant(opcode: &'static str, operand: Operand, nth: usize, edit: Edit) -> Option<String> {
        let place = Place {
            entry: "k",
            opcode,
            operand,
            nth,
        };
        let mutation = Mutation {
            name: "test",
            place,
            edit,
            expected: CaughtBy::Numbers,
        };
        let text = mutation.apply(PTX)?;
        let changed: Vec<&str> = text
            .lines()
            .zip(PTX.lines())
            .filter(|(a, b)| a != b)
            .map(|(a, _)| a)
            .collect();
        assert!(changed.len() <= 1, "one edit changes one line: {changed:?}");
        Some(changed.first().map_or(String::from("unchanged"), |line| {
            line.replace([' ', '\t'], "")
        }))
    }

    #[test]
    fn each_edit_does_what_it_says_and_nothing_else() {
        let any = Operand::Any;
        let got = |opcode, operand, nth, edit| mutant(opcode, operand, nth, edit).unwrap();
        assert_eq!(got("bar.sync", any, 0, Edit::Drop), "");
        assert_eq!(
            got("xor", Operand::Is(2, "32"), 0, Edit::Forward(1)),
            "mov.b32%r1,%r2;"
        );
        assert_eq!(
            got("xor", Operand::Register(2), 0, Edit::Forward(1)),
            "mov.b32%r3,%r1;"
        );
        assert_eq!(got("shfl", any, 0, Edit::Forward(1)), "mov.b32%r9,%r8;");
        assert_eq!(got("xor", any, 1, Edit::Swap(1, 2)), "xor.b32%r3,%r2,%r1;");
        assert_eq!(
            got("mma", any, 0, Edit::SwapMembers(1, 1, 2)),
            "mma.sync.x{%f1,%f2},{%r1,%r3,%r2},{%r4},{%f1,%f2};"
        );
        assert_eq!(got("xor", any, 0, Edit::Set(2, "0")), "xor.b32%r1,%r2,0;");
        assert_eq!(
            got("shfl", Operand::Count(5), 0, Edit::Truncate(4)),
            "shfl.sync.bfly.b32%r9|%p1,%r8,4,31;"
        );
        assert_eq!(
            got("shfl", any, 0, Edit::Opcode("bfly", "down")),
            "shfl.sync.down.b32%r9|%p1,%r8,4,31,-1;"
        );
        let v_token = Operand::Field("v_token_stride");
        assert_eq!(
            got("ld.param", v_token, 0, Edit::Field("k_token_stride")),
            "ld.param.u64%rd2,[%rd1+120];"
        );
    }

    #[test]
    fn a_place_that_is_gone_is_no_mutant() {
        assert_eq!(mutant("bar.sync", Operand::Any, 1, Edit::Drop), None);
        assert_eq!(
            mutant("xor", Operand::Is(2, "64"), 0, Edit::Forward(1)),
            None
        );
        assert_eq!(
            mutant("xor", Operand::Any, 0, Edit::Opcode("none", "some")),
            None
        );
        assert_eq!(
            mutant("mma", Operand::Any, 0, Edit::SwapMembers(1, 1, 3)),
            None
        );
        assert_eq!(
            mutant("ld.param", Operand::Field("q"), 0, Edit::Field("k")),
            None
        );
    }
}
