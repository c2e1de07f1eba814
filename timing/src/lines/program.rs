//! The DWARF line program (DWARF 2-4, section 6.2), as far as ptxas writes it.

use super::reader::Reader;
use crate::error::TimingError;
use crate::sass::LineSection;

/// A row of the line matrix: from `address` on, code comes from `line`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) address: u64,
    pub(crate) line: u32,
    pub(crate) ends_sequence: bool,
}

/// The rows of one kernel, in the order in which the program emits them.
pub(crate) fn rows(section: &LineSection<'_>, entry: &str) -> Result<Vec<Row>, TimingError> {
    let mut reader = Reader::new(section.bytes);
    let mut rows = Vec::new();
    while !reader.is_empty() {
        let length = reader.u32()?;
        if length >= 0xffff_fff0 {
            return Err(reader.error("64-bit DWARF is not written by ptxas"));
        }
        let mut unit = reader.sub(length as usize)?;
        let header = Header::parse(&mut unit)?;
        run(&header, unit, section, entry, &mut rows)?;
    }
    Ok(rows)
}

/// The fields of a unit's header that its program needs.
struct Header {
    minimum_instruction_length: u64,
    line_base: i64,
    line_range: u64,
    opcode_base: u8,
    /// Operands of standard opcode i + 1.
    operands: Vec<u8>,
}

impl Header {
    fn parse(unit: &mut Reader<'_>) -> Result<Self, TimingError> {
        let version = unit.u16()?;
        if !(2..=4).contains(&version) {
            return Err(unit.error("its DWARF version is not 2, 3 or 4"));
        }
        let length = unit.u32()? as usize;
        let mut header = unit.sub(length)?;
        let minimum_instruction_length = u64::from(header.u8()?);
        if version == 4 {
            header.u8()?; // operations an instruction: only for VLIW machines
        }
        header.u8()?; // whether a row begins a statement: of no use here
        let line_base = i64::from(header.u8()? as i8);
        let line_range = u64::from(header.u8()?);
        let opcode_base = header.u8()?;
        if line_range == 0 || opcode_base == 0 {
            return Err(header.error("its line range or opcode base is 0"));
        }
        let operands = header.take(usize::from(opcode_base) - 1)?.to_vec();
        Ok(Self {
            minimum_instruction_length,
            line_base,
            line_range,
            opcode_base,
            operands,
        })
    }
}

/// State of the line machine.
#[derive(Clone, Copy)]
struct State {
    address: u64,
    line: i64,
    /// Whether the sequence belongs to the kernel asked for.
    wanted: bool,
}

impl State {
    const START: Self = Self {
        address: 0,
        line: 1,
        wanted: false,
    };

    fn advance(&mut self, header: &Header, operations: u64) {
        let bytes = operations.wrapping_mul(header.minimum_instruction_length);
        self.address = self.address.wrapping_add(bytes);
    }

    fn row(&self, ends_sequence: bool) -> Row {
        Row {
            address: self.address,
            line: u32::try_from(self.line).unwrap_or(0),
            ends_sequence,
        }
    }
}

fn run(
    header: &Header,
    mut program: Reader<'_>,
    section: &LineSection<'_>,
    entry: &str,
    rows: &mut Vec<Row>,
) -> Result<(), TimingError> {
    let mut state = State::START;
    while !program.is_empty() {
        let opcode = program.u8()?;
        if opcode >= header.opcode_base {
            let adjusted = u64::from(opcode - header.opcode_base);
            state.advance(header, adjusted / header.line_range);
            let lines = header.line_base + (adjusted % header.line_range) as i64;
            state.line = state.line.wrapping_add(lines);
            push(rows, &state, false);
            continue;
        }
        match opcode {
            0 => extended(&mut program, &mut state, section, entry, rows)?,
            1 => push(rows, &state, false),
            2 => {
                let operations = program.uleb()?;
                state.advance(header, operations);
            }
            3 => state.line = state.line.wrapping_add(program.sleb()?),
            8 => {
                let adjusted = u64::from(255 - header.opcode_base);
                state.advance(header, adjusted / header.line_range);
            }
            9 => state.address = state.address.wrapping_add(u64::from(program.u16()?)),
            _ => {
                // Files, columns and flags, or an opcode of a later standard: its operands are
                // LEB128 numbers, as many as the header says.
                for _ in 0..header.operands[usize::from(opcode) - 1] {
                    program.uleb()?;
                }
            }
        }
    }
    Ok(())
}

fn extended(
    program: &mut Reader<'_>,
    state: &mut State,
    section: &LineSection<'_>,
    entry: &str,
    rows: &mut Vec<Row>,
) -> Result<(), TimingError> {
    let length = usize::try_from(program.uleb()?).unwrap_or(usize::MAX);
    if length == 0 {
        return Err(program.error("an extended opcode has no length"));
    }
    let mut operand = program.sub(length)?;
    match operand.u8()? {
        1 => {
            push(rows, state, true);
            *state = State::START;
        }
        2 => {
            let offset = operand.offset() as u64;
            state.address = operand.u64()?;
            let symbol = section.symbols.binary_search_by_key(&offset, |&(at, _)| at);
            state.wanted = symbol.is_ok_and(|found| section.symbols[found].1 == entry);
        }
        _ => {} // file definitions and NVIDIA's inlining notes
    }
    Ok(())
}

fn push(rows: &mut Vec<Row>, state: &State, ends_sequence: bool) {
    if state.wanted {
        rows.push(state.row(ends_sequence));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_advanced_past_every_number_is_no_panic() {
        let header = Header {
            minimum_instruction_length: 16,
            line_base: -5,
            line_range: 14,
            opcode_base: 10,
            operands: vec![0, 1, 1, 1, 1, 0, 0, 0, 1],
        };
        let section = LineSection {
            bytes: &[],
            symbols: Vec::new(),
        };
        // Twice advance_line by i64::MAX, and then a special opcode that adds to it.
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00];
        let program = [&[3], &max[..], &[3], &max[..], &[255]].concat();
        let mut rows = Vec::new();
        let ran = run(&header, Reader::new(&program), &section, "k", &mut rows);
        assert_eq!(ran, Ok(()));
        assert!(rows.is_empty());
    }
}
