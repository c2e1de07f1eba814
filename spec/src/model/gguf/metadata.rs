//! The entries of a header that a shape needs.

use super::GgufError;
use super::reader::Reader;
use crate::model::error::shorten;
use crate::model::{ModelError, ModelShape};
use std::collections::BTreeMap;
use std::io::Read;

pub(super) const SOURCE: &str = "GGUF header";

/// Entries a header may have; models have 20 to 60.
const MAX_ENTRIES: u64 = 1 << 16;
/// Longest key of the format.
const MAX_KEY_BYTES: u16 = u16::MAX;
/// Longest text that is kept; chat templates are longer, and skipped.
const MAX_TEXT_BYTES: u16 = 1024;
/// The format allows lists of lists and no writer makes them.
const MAX_DEPTH: u32 = 4;
/// Entries that are kept, by the end of their keys: the front is the architecture's name, which
/// may come later in the file.
const KEPT: [&str; 26] = [
    "general.architecture",
    "general.basename",
    "general.file_type",
    "general.name",
    ".attention.chunk_size",
    ".attention.head_count",
    ".attention.head_count_kv",
    ".attention.key_length",
    ".attention.kv_lora_rank",
    ".attention.max_alibi_bias",
    ".attention.scale",
    ".attention.sliding_window",
    ".attention.sliding_window_pattern",
    ".attention.value_length",
    ".attn_logit_softcapping",
    ".block_count",
    ".context_length",
    ".embedding_length",
    ".rope.dimension_count",
    ".rope.freq_base",
    ".rope.scaling.factor",
    ".rope.scaling.original_context_length",
    ".rope.scaling.type",
    ".ssm.state_size",
    ".vocab_size",
    "tokenizer.ggml.tokens",
];

/// One kept value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    /// A list of whole numbers or booleans with at most one entry a layer.
    Ints(Vec<i128>),
    /// Another list, skipped.
    Skipped {
        length: u64,
    },
}

/// The kept entries of one header.
pub(super) struct Metadata {
    entries: BTreeMap<String, Value>,
}

impl Metadata {
    /// Reads a header up to its last entry.
    pub(super) fn read(bytes: impl Read) -> Result<Self, GgufError> {
        let mut reader = Reader::new(bytes);
        let found: [u8; 4] = reader.array("the magic number")?;
        if &found != b"GGUF" {
            return Err(GgufError::Magic { found });
        }
        let version = reader.u32("the version")?;
        if !matches!(version, 2 | 3) {
            return Err(GgufError::Version { version });
        }
        // The tensor table is not read, so its length needs no limit.
        reader.u64("the number of tensors")?;
        let count = reader.count("the number of entries", MAX_ENTRIES)?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let key = reader.text("a key", MAX_KEY_BYTES)?;
            let kept = KEPT.iter().any(|kept| key.ends_with(kept));
            let value = read_value(&mut reader, &key, kept)?;
            if let Some(value) = value.filter(|_| kept)
                && entries.insert(key.clone(), value).is_some()
            {
                return Err(GgufError::Duplicate {
                    key: shorten(&key),
                    offset: reader.offset(),
                });
            }
        }
        Ok(Metadata { entries })
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    pub(super) fn u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.convert(
            key,
            "a whole number from 0 to 4294967295",
            |value| match value {
                Value::Int(int) => u32::try_from(*int).ok(),
                _ => None,
            },
        )
    }

    pub(super) fn f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.convert(key, "a number", |value| match value {
            Value::Float(float) => Some(*float),
            Value::Int(int) => Some(*int as f64),
            _ => None,
        })
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, ModelError> {
        self.convert(key, "a text of up to 1024 bytes", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(super) fn needed_u32(&self, key: &str) -> Result<u32, ModelError> {
        self.u32(key)?.ok_or_else(|| missing(key))
    }

    /// A number that is the same for all layers, or listed for each of them.
    ///
    /// # Errors
    /// When the layers differ: one kernel cannot serve them all.
    pub(super) fn same_for_all_layers(&self, key: &str) -> Result<Option<u32>, ModelError> {
        let Some(Value::Ints(listed)) = self.get(key) else {
            return self.u32(key);
        };
        let first = listed.first().copied().unwrap_or_default();
        if listed.iter().any(|entry| *entry != first) {
            return Err(ModelError::Unsupported {
                field: key.to_owned(),
                value: shorten(&format!("{listed:?}")),
                reason: "its layers differ in heads, or some have no attention",
            });
        }
        match u32::try_from(first) {
            Ok(first) => Ok(Some(first)),
            Err(_) => Err(ModelError::Type {
                source_kind: SOURCE,
                field: key.to_owned(),
                value: shorten(&format!("{listed:?}")),
                expected: "a list of whole numbers",
            }),
        }
    }

    fn convert<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(ModelError::Type {
                source_kind: SOURCE,
                field: key.to_owned(),
                value: describe(value),
                expected,
            }),
        }
    }
}

pub(super) fn missing(key: &str) -> ModelError {
    ModelError::Missing {
        source_kind: SOURCE,
        field: key.to_owned(),
        fix: "convert the model again with a current llama.cpp",
    }
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Int(int) => int.to_string(),
        Value::Float(float) => float.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::Text(text) => format!("{:?}", shorten(text)),
        Value::Ints(listed) => shorten(&format!("{listed:?}")),
        Value::Skipped { length } => format!("a list or text of {length}"),
    }
}

/// What a value is, by the numbers of the format.
#[derive(Clone, Copy)]
enum Type {
    Scalar(Scalar),
    Text,
    List,
}

/// A value of fixed width.
#[derive(Clone, Copy)]
enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

impl Type {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Type::Scalar(Scalar::U8),
            1 => Type::Scalar(Scalar::I8),
            2 => Type::Scalar(Scalar::U16),
            3 => Type::Scalar(Scalar::I16),
            4 => Type::Scalar(Scalar::U32),
            5 => Type::Scalar(Scalar::I32),
            6 => Type::Scalar(Scalar::F32),
            7 => Type::Scalar(Scalar::Bool),
            8 => Type::Text,
            9 => Type::List,
            10 => Type::Scalar(Scalar::U64),
            11 => Type::Scalar(Scalar::I64),
            12 => Type::Scalar(Scalar::F64),
            _ => return None,
        })
    }

    fn read<R: Read>(reader: &mut Reader<R>, key: &str) -> Result<Self, GgufError> {
        let offset = reader.offset();
        let number = reader.u32(key)?;
        Type::from_number(number).ok_or_else(|| GgufError::ValueType {
            offset,
            key: shorten(key),
            value_type: number,
        })
    }
}

impl Scalar {
    const fn width(self) -> u64 {
        match self {
            Scalar::U8 | Scalar::I8 | Scalar::Bool => 1,
            Scalar::U16 | Scalar::I16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }

    fn read<R: Read>(self, reader: &mut Reader<R>, key: &str) -> Result<Value, GgufError> {
        Ok(match self {
            Scalar::U8 => Value::Int(u8::from_le_bytes(reader.array(key)?).into()),
            Scalar::I8 => Value::Int(i8::from_le_bytes(reader.array(key)?).into()),
            Scalar::U16 => Value::Int(u16::from_le_bytes(reader.array(key)?).into()),
            Scalar::I16 => Value::Int(i16::from_le_bytes(reader.array(key)?).into()),
            Scalar::U32 => Value::Int(u32::from_le_bytes(reader.array(key)?).into()),
            Scalar::I32 => Value::Int(i32::from_le_bytes(reader.array(key)?).into()),
            Scalar::U64 => Value::Int(u64::from_le_bytes(reader.array(key)?).into()),
            Scalar::I64 => Value::Int(i64::from_le_bytes(reader.array(key)?).into()),
            Scalar::F32 => Value::Float(f32::from_le_bytes(reader.array(key)?).into()),
            Scalar::F64 => Value::Float(f64::from_le_bytes(reader.array(key)?)),
            Scalar::Bool => Value::Bool(reader.array::<1>(key)? != [0]),
        })
    }
}

/// Reads the value of `key`; keeps it when `keep` says so and it is not long.
fn read_value<R: Read>(
    reader: &mut Reader<R>,
    key: &str,
    keep: bool,
) -> Result<Option<Value>, GgufError> {
    match Type::read(reader, key)? {
        Type::Scalar(scalar) => scalar.read(reader, key).map(Some),
        Type::Text if keep => Ok(Some(Value::Text(reader.text(key, MAX_TEXT_BYTES)?))),
        Type::Text => reader.skip_text(key).map(|()| None),
        Type::List => read_list(reader, key, keep).map(Some),
    }
}

fn read_list<R: Read>(reader: &mut Reader<R>, key: &str, keep: bool) -> Result<Value, GgufError> {
    let element = Type::read(reader, key)?;
    let length = reader.u64(key)?;
    if keep
        && length <= u64::from(ModelShape::MAX_LAYERS)
        && let Type::Scalar(scalar) = element
    {
        let mut listed = Vec::new();
        for _ in 0..length {
            match scalar.read(reader, key)? {
                Value::Int(int) => listed.push(int),
                Value::Bool(bool) => listed.push(bool.into()),
                // No list of fractions is needed; what stands for one is refused where it is used.
                _ => listed.push(-1),
            }
        }
        return Ok(Value::Ints(listed));
    }
    skip_elements(reader, key, element, length, MAX_DEPTH)?;
    Ok(Value::Skipped { length })
}

fn skip_elements<R: Read>(
    reader: &mut Reader<R>,
    key: &str,
    element: Type,
    length: u64,
    depth: u32,
) -> Result<(), GgufError> {
    match element {
        Type::Scalar(scalar) => reader.skip(length.saturating_mul(scalar.width()), key),
        // Each element takes some bytes of the file at least: a hostile count ends with the file.
        Type::Text => (0..length).try_for_each(|_| reader.skip_text(key)),
        Type::List => {
            let offset = reader.offset();
            let depth = depth.checked_sub(1).ok_or_else(|| GgufError::ValueType {
                offset,
                key: shorten(key),
                value_type: 9,
            })?;
            (0..length).try_for_each(|_| {
                let element = Type::read(reader, key)?;
                let length = reader.u64(key)?;
                skip_elements(reader, key, element, length, depth)
            })
        }
    }
}
