//! Why a GGUF header cannot be read.

/// A GGUF header that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file is of another kind.
    #[error("GGUF header: the first bytes are {found:02x?}, not \"GGUF\"; pass a .gguf file")]
    Magic {
        /// The bytes.
        found: [u8; 4],
    },
    /// A version that is not read.
    #[error(
        "GGUF header: version {version} is not read, only 2 and 3 in little-endian order; convert the model again with a current llama.cpp"
    )]
    Version {
        /// As stored.
        version: u32,
    },
    /// The file ends inside the header.
    #[error("GGUF header: the file ends at byte {offset}, inside {reading}; download it again")]
    Truncated {
        /// Where it ends.
        offset: u64,
        /// What was being read: a part of the header, or the key whose value it is.
        reading: String,
    },
    /// A count or length that no model has.
    #[error(
        "GGUF header: {reading} at byte {offset} claims {value}, more than the {limit} that are accepted; the file is damaged, download it again"
    )]
    TooLarge {
        /// Where the number is.
        offset: u64,
        /// What it counts.
        reading: String,
        /// The number.
        value: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// An entry of a type that the format does not have, or nested too deeply.
    #[error(
        "GGUF header: the value of `{key}` at byte {offset} has type {value_type}, which does not exist here; the file is damaged, download it again"
    )]
    ValueType {
        /// Where the type is.
        offset: u64,
        /// The entry.
        key: String,
        /// The type's number.
        value_type: u32,
    },
    /// A text that is no UTF-8.
    #[error(
        "GGUF header: {reading} before byte {offset} is not UTF-8; the file is damaged, download it again"
    )]
    Text {
        /// Where the text ends.
        offset: u64,
        /// What it is.
        reading: String,
    },
    /// An entry that occurs twice.
    #[error(
        "GGUF header: `{key}` occurs twice, the second time before byte {offset}; convert the model again"
    )]
    Duplicate {
        /// The entry.
        key: String,
        /// Where the second one ends.
        offset: u64,
    },
    /// The operating system could not read the file.
    #[error("GGUF header: reading failed at byte {offset}: {message}; check the file")]
    Io {
        /// Where.
        offset: u64,
        /// What the system says.
        message: String,
    },
}
