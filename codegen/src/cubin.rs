//! What each kernel of a CUBIN takes of a multiprocessor, read from its ELF sections.
//!
//! NVIDIA does not document them. What is read here was established by comparing with `ptxas -v` for sm_80 and sm_90
//! in NVRTC 12.9 and 13.0, and a test compares again:
//!
//! | resource | where |
//! | --- | --- |
//! | registers | `.nv.info`, attribute 0x2f (symbol, count) |
//! | stack | `.nv.info`, attribute 0x12 (symbol, bytes), with callees |
//! | static shared memory | size of `.nv.shared.<kernel>`, less the system's 1 KiB where the file counts it |
//! | barriers | `.nv.info.<kernel>`, attribute 0x4c (13.x); `.text.<kernel>` sh_flags bits 20..27 (12.x) |
//! | spill instructions | `.nv.info.<kernel>`, attribute 0x55, 12 bytes each |

use object::elf::{EM_CUDA, FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, SymbolIndex};
use std::collections::BTreeMap;

/// Shared memory that the system reserves of each CTA since compute capability 8.0.
const SYSTEM_SHARED_BYTES: u32 = 1024;

/// One kernel's resources as its ELF tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CubinKernel {
    /// Its symbol.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of stack a thread, callees included.
    pub stack_bytes: u32,
    /// Bytes of static shared memory a CTA, the system's reserve excluded.
    pub shared_bytes: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Instructions that spill a register or bring one back. The ELF tells no bytes.
    pub spill_instructions: u32,
}

/// Bytes that are not a CUBIN whose kernels can be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubinError {
    /// Not an ELF file, or a damaged one.
    #[error("cubin: {0}; compile the kernel again")]
    Elf(String),
    /// An ELF file for another machine.
    #[error("cubin: ELF machine {found}, expected {} (CUDA); compile the kernel again", EM_CUDA.0)]
    NotCuda {
        /// `e_machine`.
        found: u16,
    },
    /// An attribute list that does not fit its section.
    #[error("cubin: {section} ends inside an attribute at byte {offset}; compile the kernel again")]
    Attribute {
        /// The section.
        section: String,
        /// Where in it.
        offset: usize,
    },
    /// A kernel without a register count.
    #[error("cubin: kernel {name} has no register count; compile it with NVRTC 12 or 13")]
    NoRegisters {
        /// The kernel.
        name: String,
    },
    /// A size that no multiprocessor has.
    #[error("cubin: {section} claims {bytes} bytes; compile the kernel again")]
    Size {
        /// The section.
        section: String,
        /// Its claim.
        bytes: u64,
    },
}

/// The kernels of a CUBIN, by name.
///
/// # Errors
/// When the bytes are not a whole CUBIN. No bytes make it panic or allocate more than their own length.
pub fn kernels(cubin: &[u8]) -> Result<Vec<CubinKernel>, CubinError> {
    let elf = |error: object::Error| CubinError::Elf(error.to_string());
    let header = FileHeader64::<Endianness>::parse(cubin).map_err(elf)?;
    let endian = header.endian().map_err(elf)?;
    if header.e_machine(endian) != EM_CUDA {
        return Err(CubinError::NotCuda {
            found: header.e_machine(endian).0,
        });
    }
    let sections = header.sections(endian, cubin).map_err(elf)?;
    let symbols = sections.symbols(endian, cubin, SHT_SYMTAB).map_err(elf)?;

    // Only a text section makes a kernel: other sections may be named after other things.
    let mut barriers_in_flags = BTreeMap::new();
    let mut shared = BTreeMap::new();
    let mut own = BTreeMap::new();
    let mut registers = BTreeMap::new();
    let mut stacks = BTreeMap::new();
    for section in sections.iter() {
        let name = sections.section_name(endian, section).map_err(elf)?;
        let name = String::from_utf8_lossy(name);
        if let Some(kernel) = name.strip_prefix(".text.") {
            let flags = section.sh_flags(endian).0;
            barriers_in_flags.insert(kernel.to_owned(), (flags >> 20 & 0x7f) as u32);
        } else if let Some(kernel) = name.strip_prefix(".nv.shared.") {
            let bytes = section.sh_size(endian);
            let bytes = u32::try_from(bytes).map_err(|_| CubinError::Size {
                section: name.clone().into_owned(),
                bytes,
            })?;
            shared.insert(kernel.to_owned(), bytes);
        } else if name == ".nv.info" {
            let data = section.data(endian, cubin).map_err(elf)?;
            for attribute in attributes(&name, data) {
                let attribute = attribute?;
                let into = match attribute.code {
                    code::REGISTERS => &mut registers,
                    code::STACK => &mut stacks,
                    _ => continue,
                };
                if let Some((symbol, value)) = attribute.pair()
                    && let Ok(symbol) = symbols.symbol(SymbolIndex(symbol as usize))
                {
                    let name = symbol.name(endian, symbols.strings()).map_err(elf)?;
                    into.insert(String::from_utf8_lossy(name).into_owned(), value);
                }
            }
        } else if let Some(kernel) = name.strip_prefix(".nv.info.") {
            let data = section.data(endian, cubin).map_err(elf)?;
            own.insert(kernel.to_owned(), own_attributes(&name, data)?);
        }
    }
    // Since sm_90 a CUBIN has this section, and every kernel's own counts what the system reserves of each
    // CTA. `ptxas -v` and the occupancy calculation do not count it as the kernel's.
    let reserved = if shared.contains_key("reserved.0") {
        SYSTEM_SHARED_BYTES
    } else {
        0
    };
    let of = |map: &BTreeMap<String, u32>, name: &str| map.get(name).copied().unwrap_or(0);
    barriers_in_flags
        .iter()
        .map(|(name, in_flags)| {
            let (barriers, spill_instructions) = own.get(name).copied().unwrap_or_default();
            Ok(CubinKernel {
                registers: *registers
                    .get(name)
                    .ok_or_else(|| CubinError::NoRegisters { name: name.clone() })?,
                stack_bytes: of(&stacks, name),
                shared_bytes: of(&shared, name).saturating_sub(reserved),
                barriers: barriers.max(*in_flags),
                spill_instructions,
                name: name.clone(),
            })
        })
        .collect()
}

/// Barriers and spill instructions in a kernel's own list.
fn own_attributes(section: &str, data: &[u8]) -> Result<(u32, u32), CubinError> {
    let (mut barriers, mut spills) = (0, 0);
    for attribute in attributes(section, data) {
        let attribute = attribute?;
        match attribute.code {
            code::BARRIERS => barriers = u32::from(attribute.inline),
            // A payload's length has 16 bits: the quotient fits, and so does the sum over a file.
            code::SPILLS => spills += (attribute.payload.len() / 12) as u32,
            _ => {}
        }
    }
    Ok((barriers, spills))
}

/// Codes of `.nv.info` attributes, as `cuobjdump -elf` numbers them.
mod code {
    pub(super) const REGISTERS: u8 = 0x2f;
    pub(super) const STACK: u8 = 0x12;
    pub(super) const BARRIERS: u8 = 0x4c;
    pub(super) const SPILLS: u8 = 0x55;
}

struct Attribute<'data> {
    code: u8,
    /// The two bytes after the code: the value itself, or the payload's length.
    inline: u16,
    payload: &'data [u8],
}

impl Attribute<'_> {
    fn pair(&self) -> Option<(u32, u32)> {
        let (first, rest) = self.payload.split_first_chunk::<4>()?;
        let (second, _) = rest.split_first_chunk::<4>()?;
        Some((u32::from_le_bytes(*first), u32::from_le_bytes(*second)))
    }
}

/// The attributes of one section: format, code, two bytes, and for format 4 a payload of that many bytes.
fn attributes<'data>(
    section: &str,
    data: &'data [u8],
) -> impl Iterator<Item = Result<Attribute<'data>, CubinError>> {
    const WITH_PAYLOAD: u8 = 4;
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let offset = data.len() - rest.len();
        let next = rest.split_first_chunk::<4>().and_then(|(head, tail)| {
            let inline = u16::from_le_bytes([head[2], head[3]]);
            let length = match head[0] {
                WITH_PAYLOAD => usize::from(inline),
                _ => 0,
            };
            let (payload, tail) = tail.split_at_checked(length)?;
            rest = tail;
            Some(Attribute {
                code: head[1],
                inline,
                payload,
            })
        });
        if next.is_none() {
            rest = &[];
        }
        Some(next.ok_or_else(|| CubinError::Attribute {
            section: section.to_owned(),
            offset,
        }))
    })
}
