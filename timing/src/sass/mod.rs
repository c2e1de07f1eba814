//! A kernel's machine code, decoded in process from its CUBIN.

mod cfg;
mod class;
mod elf;
mod instruction;
mod opcode;

pub use cfg::Block;
pub use class::Class;
pub use elf::Cubin;
pub(crate) use elf::LineSection;
pub use instruction::{Control, Guard, Instruction};

use crate::{error::TimingError, lines};

/// One kernel: its instructions, their PTX lines, and its basic blocks.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its symbol.
    pub entry: String,
    /// Compute capability of the code, such as 80.
    pub arch: u32,
    /// Its instructions in address order.
    pub instructions: Vec<Instruction>,
    /// For each instruction the 1-based PTX line that it was made from.
    pub lines: Vec<Option<u32>>,
    /// Its basic blocks in address order.
    pub blocks: Vec<Block>,
}

impl Kernel {
    /// Decodes a kernel of a CUBIN that was compiled with `-lineinfo`.
    ///
    /// # Errors
    /// When the bytes are no CUBIN, have no such kernel, or no line table for it.
    pub fn decode(cubin: &[u8], entry: &str) -> Result<Self, TimingError> {
        let cubin = Cubin::parse(cubin)?;
        let (words, _) = cubin.code(entry)?.as_chunks::<16>();
        let instructions: Vec<Instruction> =
            words.iter().copied().map(Instruction::from_bytes).collect();
        let lines = lines::ptx_lines(&cubin, entry, instructions.len())?;
        let blocks = cfg::blocks(&instructions);
        Ok(Self {
            entry: entry.to_owned(),
            arch: cubin.arch(),
            instructions,
            lines,
            blocks,
        })
    }
}
