//! A CUBIN as an ELF file: the sections that counting needs, with nothing trusted.

use crate::error::{MAX_INSTRUCTIONS, TimingError};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};

const EM_CUDA: u16 = 190;
const TEXT: &str = ".text.";

/// A CUBIN whose sections can be asked for by name.
pub struct Cubin<'a> {
    file: ElfFile64<'a, Endianness>,
}

/// The SASS line program with the kernel that each of its address operands stands for.
pub(crate) struct LineSection<'a> {
    pub(crate) bytes: &'a [u8],
    /// Byte offset of an address operand in `bytes`, and the symbol it is relocated against; sorted.
    pub(crate) symbols: Vec<(u64, String)>,
}

impl<'a> Cubin<'a> {
    /// Reads the ELF headers.
    ///
    /// # Errors
    /// When the bytes are no 64-bit ELF file for CUDA.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TimingError> {
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(|error| TimingError::Elf {
            reason: error.to_string(),
        })?;
        let machine = file.elf_header().e_machine(file.endian());
        if machine.0 != EM_CUDA {
            return Err(TimingError::NotCuda { machine: machine.0 });
        }
        Ok(Self { file })
    }

    /// Compute capability the code is for, such as 80.
    ///
    /// CUDA 13 moved it to the second byte of `e_flags` and raised the ABI version to 8.
    pub fn arch(&self) -> u32 {
        let header = self.file.elf_header();
        let flags = header.e_flags(self.file.endian()).0;
        if header.e_ident().abi_version >= 8 {
            (flags >> 8) & 0xff
        } else {
            flags & 0xff
        }
    }

    /// The kernels and functions that have code here, in file order.
    pub fn entries(&self) -> Vec<String> {
        let code = |section: object::read::elf::ElfSection64<'_, '_, Endianness>| {
            Some(section.name().ok()?.strip_prefix(TEXT)?.to_owned())
        };
        self.file.sections().filter_map(code).collect()
    }

    /// The bytes of a kernel's code: a whole number of 16-byte instructions.
    ///
    /// # Errors
    /// When there is no such kernel, or its section is no such number of instructions.
    pub fn code(&self, entry: &str) -> Result<&'a [u8], TimingError> {
        let bytes =
            self.section(&format!("{TEXT}{entry}"))
                .ok_or_else(|| TimingError::UnknownEntry {
                    entry: entry.to_owned(),
                    available: self.entries().into_iter().take(16).collect(),
                })?;
        let instructions = bytes.len() / 16;
        if bytes.len() % 16 != 0 || instructions == 0 || instructions > MAX_INSTRUCTIONS {
            return Err(TimingError::Code {
                entry: entry.to_owned(),
                length: bytes.len(),
            });
        }
        Ok(bytes)
    }

    /// The PTX that the code was made from, as ptxas keeps it with `-lineinfo`: comments and
    /// `.loc` lines blanked, every other line at its own number.
    pub fn ptx(&self) -> Option<String> {
        let bytes = self.section(".nv_debug_ptx_txt")?;
        let text = bytes.iter().map(|&b| if b == 0 { b'\n' } else { b });
        String::from_utf8(text.collect()).ok()
    }

    pub(crate) fn line_section(&self) -> Option<LineSection<'a>> {
        let section = self.file.section_by_name(".nv_debug_line_sass")?;
        let bytes = section.data().ok()?;
        let mut symbols: Vec<(u64, String)> = section
            .relocations()
            .filter_map(|(offset, relocation)| match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = self.file.symbol_by_index(index).ok()?;
                    Some((offset, symbol.name().ok()?.to_owned()))
                }
                _ => None,
            })
            .collect();
        symbols.sort();
        Some(LineSection { bytes, symbols })
    }

    fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.file.section_by_name(name)?.data().ok()
    }
}
