//! PTX as lines and instructions, as far as edits need it.

use pagesmith_spec::abi::Field;
use std::collections::BTreeMap;
use std::ops::Range;

/// One instruction, on a line of its own as NVRTC writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction<'a> {
    /// `@%p1` or `@!%p1`, or nothing.
    pub(super) guard: &'a str,
    pub(super) opcode: &'a str,
    /// Split at commas outside brackets and braces.
    pub(super) operands: Vec<&'a str>,
}

impl<'a> Instruction<'a> {
    /// The instruction of a line; `None` for labels, directives, comments and braces.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let text = line.trim().strip_suffix(';')?;
        if text.starts_with(['.', '/', '$', '{', '}']) {
            return None;
        }
        let (guard, text) = match text.starts_with('@') {
            true => text.split_once(char::is_whitespace)?,
            false => ("", text),
        };
        let text = text.trim();
        let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Some(Instruction {
            guard,
            opcode,
            operands: split(operands),
        })
    }

    pub(super) fn render(&self) -> String {
        let space = if self.guard.is_empty() { "" } else { " " };
        let operands = self.operands.join(", ");
        format!("\t{}{space}{} \t{operands};", self.guard, self.opcode)
    }
}

/// Splits at commas outside brackets and braces.
pub(super) fn split(operands: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, character) in operands.char_indices() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(operands[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(operands[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The lines of an entry's body.
pub(super) fn body(lines: &[&str], entry: &str) -> Option<Range<usize>> {
    let head = format!(".entry {entry}(");
    let start = lines.iter().position(|line| line.contains(&head))?;
    let length = lines[start..].iter().position(|line| *line == "}")?;
    Some(start..start + length)
}

/// Where in the parameter struct a `ld.param` operand such as `[%rd1+64]` points, the base register being
/// followed to the parameter.
pub(super) fn parameter_offset(
    lines: &[&str],
    body: Range<usize>,
    entry: &str,
    operand: &str,
) -> Option<i64> {
    let parameter = format!("{entry}_param_0");
    let mut bases: BTreeMap<&str, i64> = BTreeMap::from([(parameter.as_str(), 0)]);
    for line in &lines[body] {
        let Some(instruction) = Instruction::parse(line) else {
            continue;
        };
        let (base, offset) = match (instruction.opcode, &instruction.operands[..]) {
            ("mov.b64" | "mov.u64", &[to, from]) => ((to, from), 0),
            ("add.s64", &[to, from, offset]) => match offset.parse() {
                Ok(offset) => ((to, from), offset),
                Err(_) => continue,
            },
            _ => continue,
        };
        if let Some(known) = bases.get(base.1) {
            bases.insert(base.0, known + offset);
        }
    }
    let inner = operand.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
    Some(bases.get(base)? + offset.parse::<i64>().ok()?)
}

/// `[%rd1+64]` moved from one field to another.
pub(super) fn redirected(operand: &str, from: Field, to: Field) -> Option<String> {
    let inner = operand.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
    let offset = offset.parse::<i64>().ok()? + to.offset as i64 - from.offset as i64;
    Some(format!("[{base}+{offset}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_reads_and_renders_with_its_guard_and_nested_operands() {
        let line = "\t@!%p1 mma.sync.x {%f1,%f2}, {%r1,%r2}, [%rd1+8], 4;";
        let instruction = Instruction::parse(line).unwrap();
        assert_eq!(instruction.guard, "@!%p1");
        assert_eq!(
            instruction.operands,
            ["{%f1,%f2}", "{%r1,%r2}", "[%rd1+8]", "4"]
        );
        let rendered = instruction.render();
        assert_eq!(Instruction::parse(&rendered), Some(instruction));
        for other in [
            "$L__BB0_2:",
            "\t.loc 1 2 3",
            "\t// begin inline asm",
            "{",
            "\t.reg .b32 %r<3>;",
        ] {
            assert_eq!(Instruction::parse(other), None, "{other}");
        }
        assert_eq!(
            Instruction::parse("\tret;").unwrap().operands,
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_parameter_is_found_through_registers() {
        let text = ".visible .entry k(\n)\n{\n\tmov.b64 \t%rd2, k_param_0;\n\tadd.s64 \t%rd1, %rd2, 56;\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        let body = body(&lines, "k").unwrap();
        let offset = |operand| parameter_offset(&lines, body.clone(), "k", operand);
        assert_eq!(offset("[%rd1+-48]"), Some(8));
        assert_eq!(offset("[k_param_0+160]"), Some(160));
        assert_eq!(offset("[%rd9+8]"), None);
    }
}
