//! A compiled variant, and the file it is kept in.

use crate::{Arch, ContentHash};
use serde::{Deserialize, Serialize};

/// What one kernel takes of a multiprocessor, read from its ELF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes a thread spills.
    pub spill_bytes: u32,
    /// Bytes of stack a thread.
    pub stack_bytes: u32,
    /// Bytes of static shared memory a CTA.
    pub shared_bytes: u32,
    /// Named barriers.
    pub barriers: u32,
}

/// One kernel of an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageEntry {
    /// Its symbol.
    pub name: String,
    /// What it takes.
    pub resources: Resources,
}

/// A compiled variant: the PTX that is emulated and the CUBIN that is launched, from one compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What was compiled, beside the code itself.
    pub header: ImageHeader,
    /// PTX text.
    pub ptx: String,
    /// ELF for `header.arch`.
    pub cubin: Vec<u8>,
}

/// What an image was compiled from and for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageHeader {
    /// The arch that the CUBIN is for.
    pub arch: Arch,
    /// Its kernels.
    pub entries: Vec<ImageEntry>,
    /// The launch ABI it was compiled against ([`crate::abi::hash`]).
    pub abi: ContentHash,
    /// The rendered source, headers and options.
    pub source: ContentHash,
    /// The variant it was forged from ([`crate::Variant::hash`]); absent for a source that is no variant.
    /// Launched as another one, its kernels would read and write beyond what that one's tensors have.
    pub variant: Option<ContentHash>,
    /// The compiler, such as `nvrtc 13.0`.
    pub compiler: String,
}

/// An image file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Not an image file, or of another format version.
    #[error("image: not a pagesmith image of format {FORMAT}; tune again to write one")]
    Format,
    /// Shorter than its header says, or longer.
    #[error("image: {field} does not fit the file ({length} bytes); tune again to replace it")]
    Truncated {
        /// The part that does not fit.
        field: &'static str,
        /// The file's length.
        length: usize,
    },
    /// The contents are not those that were written.
    #[error("image: contents hash to {found}, {expected} were written; tune again to replace it")]
    Corrupt {
        /// As stored.
        expected: ContentHash,
        /// As computed.
        found: ContentHash,
    },
    /// The header does not parse.
    #[error("image: header: {0}; tune again to replace it")]
    Header(String),
}

/// Version of the file format.
pub const FORMAT: u32 = 2;
const MAGIC: &[u8; 12] = b"pagesmithimg";
/// Magic, format, payload hash, and the lengths of header, PTX and CUBIN.
const PREFIX: usize = 12 + 4 + 32 + 3 * 8;

impl Image {
    /// Identifies the image by its contents.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of("pagesmith-image-1", &[&self.payload()])
    }

    /// The kernel of that symbol.
    pub fn entry(&self, name: &str) -> Option<&ImageEntry> {
        self.header.entries.iter().find(|entry| entry.name == name)
    }

    fn header_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.header).expect("a header of strings and numbers serialises")
    }

    fn payload(&self) -> Vec<u8> {
        let header = self.header_json();
        let mut payload = Vec::with_capacity(24 + header.len() + self.ptx.len() + self.cubin.len());
        for length in [header.len(), self.ptx.len(), self.cubin.len()] {
            payload.extend_from_slice(&(length as u64).to_le_bytes());
        }
        payload.extend_from_slice(&header);
        payload.extend_from_slice(self.ptx.as_bytes());
        payload.extend_from_slice(&self.cubin);
        payload
    }

    /// The bytes of the image's file: magic, format, payload hash, payload.
    pub fn to_bytes(&self) -> Vec<u8> {
        let payload = self.payload();
        let mut bytes = Vec::with_capacity(PREFIX + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(ContentHash::of("pagesmith-image-1", &[&payload]).as_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Reads an image's file back, trusting nothing in it.
    ///
    /// # Errors
    /// When it is not exactly what [`Image::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ImageError::Format)?;
        let (format, rest) = rest.split_first_chunk::<4>().ok_or(ImageError::Format)?;
        if u32::from_le_bytes(*format) != FORMAT {
            return Err(ImageError::Format);
        }
        let truncated = |field| ImageError::Truncated {
            field,
            length: bytes.len(),
        };
        let (expected, payload) = rest
            .split_first_chunk::<32>()
            .ok_or_else(|| truncated("hash"))?;
        let expected = ContentHash::from_bytes(*expected);
        let found = ContentHash::of("pagesmith-image-1", &[payload]);
        if expected != found {
            return Err(ImageError::Corrupt { expected, found });
        }
        let mut rest = payload;
        let mut lengths = [0usize; 3];
        for length in &mut lengths {
            let (bytes, tail) = rest
                .split_first_chunk::<8>()
                .ok_or_else(|| truncated("lengths"))?;
            *length =
                usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| truncated("lengths"))?;
            rest = tail;
        }
        let mut take = |length: usize, field| {
            let (part, tail) = rest
                .split_at_checked(length)
                .ok_or_else(|| truncated(field))?;
            rest = tail;
            Ok::<_, ImageError>(part)
        };
        let header = take(lengths[0], "header")?;
        let ptx = take(lengths[1], "ptx")?;
        let cubin = take(lengths[2], "cubin")?;
        if !rest.is_empty() {
            return Err(truncated("cubin"));
        }
        Ok(Image {
            header: serde_json::from_slice(header)
                .map_err(|error| ImageError::Header(error.to_string()))?,
            ptx: std::str::from_utf8(ptx)
                .map_err(|error| ImageError::Header(error.to_string()))?
                .to_owned(),
            cubin: cubin.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image {
            header: ImageHeader {
                arch: Arch::SM_80,
                entries: vec![ImageEntry {
                    name: "pagesmith_decode".into(),
                    resources: Resources {
                        registers: 96,
                        ..Resources::default()
                    },
                }],
                abi: crate::abi::hash(),
                source: ContentHash::of("test", &[b"source"]),
                variant: Some(ContentHash::of("test", &[b"variant"])),
                compiler: "nvrtc 13.0".into(),
            },
            ptx: ".version 9.0".into(),
            cubin: vec![0x7f, b'E', b'L', b'F'],
        }
    }

    #[test]
    fn a_file_reads_back_as_written() {
        assert_eq!(Image::from_bytes(&image().to_bytes()), Ok(image()));
    }

    #[test]
    fn a_file_cut_anywhere_or_changed_anywhere_is_refused() {
        let bytes = image().to_bytes();
        for end in 0..bytes.len() {
            assert!(Image::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Image::from_bytes(&changed).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn hostile_lengths_under_a_valid_hash_are_refused() {
        let mut payload = Vec::new();
        for length in [u64::MAX, 1, 1] {
            payload.extend_from_slice(&length.to_le_bytes());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(ContentHash::of("pagesmith-image-1", &[&payload]).as_bytes());
        bytes.extend_from_slice(&payload);
        assert!(matches!(
            Image::from_bytes(&bytes),
            Err(ImageError::Truncated { .. })
        ));
    }
}
