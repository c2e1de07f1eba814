//! Which PTX line each SASS instruction was made from.
//!
//! With `-lineinfo` ptxas writes `.nv_debug_line_sass`, a DWARF 2 line program over the PTX text
//! in `.nv_debug_ptx_txt`. The address operand of each sequence is relocated against its kernel.

mod program;
mod reader;

use crate::error::TimingError;
use crate::sass::Cubin;

/// A sane table maps each instruction once; a hostile one could keep the reader busy for hours.
const MOST_COVERS: usize = 4;

/// The PTX line of each of the kernel's `instructions`; none before the first row of the table.
pub(crate) fn ptx_lines(
    cubin: &Cubin<'_>,
    entry: &str,
    instructions: usize,
) -> Result<Vec<Option<u32>>, TimingError> {
    let missing = || TimingError::NoLines {
        entry: entry.to_owned(),
    };
    let section = cubin.line_section().ok_or_else(missing)?;
    let rows = program::rows(&section, entry)?;
    if rows.is_empty() {
        return Err(missing());
    }
    let mut lines = vec![None; instructions];
    let mut covered = 0usize;
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        let index = |address: u64| usize::try_from(address / 16).unwrap_or(usize::MAX);
        let end = index(next.address).min(instructions);
        let begin = index(row.address).min(end);
        if !row.ends_sequence {
            covered += end - begin;
            if covered > instructions.saturating_mul(MOST_COVERS) {
                return Err(TimingError::Lines {
                    offset: 0,
                    reason: "it maps the same code over and over",
                });
            }
            // Line 0 is DWARF's word for code without a source.
            lines[begin..end].fill((row.line != 0).then_some(row.line));
        }
    }
    Ok(lines)
}
