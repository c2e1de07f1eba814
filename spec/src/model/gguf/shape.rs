//! From the entries of a header to a shape.

use super::metadata::{Metadata, SOURCE, Value, describe, missing};
use crate::QueryDtype;
use crate::model::error::shorten;
use crate::model::{
    ModelError, ModelFields, ModelShape, Rope, RopeScaling, Window, WindowedLayers,
};
use std::io::{BufReader, Read};

impl ModelShape {
    /// Reads the header of a GGUF file whose first bytes, or all of them, are in memory.
    ///
    /// # Errors
    /// As [`ModelShape::from_gguf_reader`].
    pub fn from_gguf_header(bytes: &[u8]) -> Result<Self, ModelError> {
        Self::from_metadata(&Metadata::read(bytes)?)
    }

    /// Reads the header of a GGUF file, version 2 or 3, and no more than some KiB beyond it.
    ///
    /// The reader is buffered here: pass the opened file itself.
    ///
    /// # Errors
    /// When the bytes are no complete header, a needed entry is missing or of another type, a
    /// value is impossible, or the model's attention is of a kind that a shape cannot express.
    pub fn from_gguf_reader(reader: impl Read) -> Result<Self, ModelError> {
        Self::from_metadata(&Metadata::read(BufReader::with_capacity(1 << 16, reader))?)
    }

    fn from_metadata(metadata: &Metadata) -> Result<Self, ModelError> {
        let arch = metadata
            .text("general.architecture")?
            .ok_or_else(|| missing("general.architecture"))?;
        let key = |suffix: &str| format!("{arch}.{suffix}");
        refuse_other_attention(metadata, arch)?;
        let layers = metadata.needed_u32(&key("block_count"))?;
        let query_heads = metadata
            .same_for_all_layers(&key("attention.head_count"))?
            .ok_or_else(|| missing(&key("attention.head_count")))?;
        let kv_heads = metadata
            .same_for_all_layers(&key("attention.head_count_kv"))?
            .unwrap_or(query_heads);
        let hidden_size = metadata.u32(&key("embedding_length"))?;
        let vocabulary = match metadata.get("tokenizer.ggml.tokens") {
            Some(Value::Skipped { length }) => u32::try_from(*length).ok(),
            _ => metadata.u32(&key("vocab_size"))?,
        };
        ModelShape::new(ModelFields {
            name: model_name(metadata, arch)?,
            layers,
            query_heads,
            kv_heads,
            head_dim: head_dim(metadata, arch, hidden_size, query_heads)?,
            hidden_size,
            vocabulary,
            max_context: metadata.needed_u32(&key("context_length"))?,
            rope: rope(metadata, arch)?,
            window: window(metadata, arch)?,
            softcap: metadata.f64(&key("attn_logit_softcapping"))?,
            score_scale: metadata.f64(&key("attention.scale"))?,
            dtype: dtype(metadata)?,
        })
    }
}

/// As for a config.json: what the plain kernel would compute wrongly without a word.
fn refuse_other_attention(metadata: &Metadata, arch: &str) -> Result<(), ModelError> {
    for (suffix, reason) in [
        (
            "attention.kv_lora_rank",
            "its cache holds latent vectors, not heads",
        ),
        (
            "attention.chunk_size",
            "tokens attend only to their own chunk",
        ),
        (
            "attention.max_alibi_bias",
            "its scores have position biases (ALiBi)",
        ),
        (
            "ssm.state_size",
            "some of its layers are not softmax attention",
        ),
    ] {
        let key = format!("{arch}.{suffix}");
        if let Some(value) = metadata.get(&key)
            && *value != Value::Float(0.0)
        {
            return Err(ModelError::Unsupported {
                field: key,
                value: describe(value),
                reason,
            });
        }
    }
    if arch == "gpt-oss" {
        return Err(ModelError::Unsupported {
            field: String::from("general.architecture"),
            value: arch.to_owned(),
            reason: "its softmax has attention sinks",
        });
    }
    Ok(())
}

fn model_name(metadata: &Metadata, arch: &str) -> Result<String, ModelError> {
    for key in ["general.name", "general.basename"] {
        if let Some(name) = metadata.text(key)?
            && !name.is_empty()
        {
            return Ok(name.to_owned());
        }
    }
    Ok(arch.to_owned())
}

fn head_dim(
    metadata: &Metadata,
    arch: &str,
    hidden_size: Option<u32>,
    query_heads: u32,
) -> Result<u32, ModelError> {
    let key = format!("{arch}.attention.key_length");
    let value_key = format!("{arch}.attention.value_length");
    let value_length = metadata.u32(&value_key)?;
    let head_dim = match (metadata.u32(&key)?, hidden_size) {
        (Some(key_length), _) => key_length,
        // Zero heads are left for the check of `query_heads`, whose message is the better one.
        (None, Some(hidden_size)) => match hidden_size.checked_rem(query_heads) {
            None => 1,
            Some(0) => hidden_size / query_heads,
            Some(_) => {
                return Err(ModelError::Value {
                    field: "embedding_length",
                    value: hidden_size.to_string(),
                    reason: format!("is no multiple of attention.head_count = {query_heads}"),
                    fix: String::from("convert the model again with a current llama.cpp"),
                });
            }
        },
        (None, None) => return Err(missing(&key)),
    };
    match value_length {
        Some(value_length) if value_length != head_dim => Err(ModelError::Unsupported {
            field: value_key,
            value: value_length.to_string(),
            reason: "its heads of V have another size than those of K",
        }),
        _ => Ok(head_dim),
    }
}

fn rope(metadata: &Metadata, arch: &str) -> Result<Rope, ModelError> {
    let key = |suffix: &str| format!("{arch}.rope.{suffix}");
    let factor = metadata.f64(&key("scaling.factor"))?;
    let original_context = metadata.u32(&key("scaling.original_context_length"))?;
    let needed_factor = || factor.ok_or_else(|| missing(&key("scaling.factor")));
    let scaling = match metadata.text(&key("scaling.type"))? {
        None | Some("none") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear {
            factor: needed_factor()?,
        },
        Some("yarn") => RopeScaling::Yarn {
            factor: needed_factor()?,
            original_context,
        },
        Some("longrope") => RopeScaling::LongRope { original_context },
        Some(other) => RopeScaling::Other {
            name: shorten(other),
        },
    };
    Ok(Rope {
        // What llama.cpp takes when the entry is absent.
        base: metadata.f64(&key("freq_base"))?.unwrap_or(10_000.0),
        rotated_dim: metadata.u32(&key("dimension_count"))?,
        scaling,
    })
}

fn window(metadata: &Metadata, arch: &str) -> Result<Option<Window>, ModelError> {
    let tokens = metadata.u32(&format!("{arch}.attention.sliding_window"))?;
    // llama.cpp writes 0 for no window.
    let Some(tokens) = tokens.filter(|tokens| *tokens > 0) else {
        return Ok(None);
    };
    let key = format!("{arch}.attention.sliding_window_pattern");
    let layers = match metadata.get(&key) {
        Some(Value::Ints(listed)) => {
            if listed.iter().any(|entry| !matches!(entry, 0 | 1)) {
                return Err(ModelError::Type {
                    source_kind: SOURCE,
                    field: key,
                    value: shorten(&format!("{listed:?}")),
                    expected: "a list of booleans",
                });
            }
            WindowedLayers::Listed(listed.iter().map(|entry| *entry == 1).collect())
        }
        Some(_) => match metadata.needed_u32(&key)? {
            1 => return Ok(None),
            period => WindowedLayers::AllButEach(period),
        },
        // Periods that llama.cpp has in its code and not in the file.
        None => match arch {
            "gemma2" => WindowedLayers::AllButEach(2),
            "gemma3" => WindowedLayers::AllButEach(6),
            "cohere2" => WindowedLayers::AllButEach(4),
            _ => WindowedLayers::All,
        },
    };
    Ok(Some(Window { tokens, layers }))
}

/// The dtype of most tensors, where it is a 16-bit one: `LLAMA_FTYPE_MOSTLY_F16` and `_BF16`.
fn dtype(metadata: &Metadata) -> Result<Option<QueryDtype>, ModelError> {
    Ok(match metadata.u32("general.file_type")? {
        Some(1) => Some(QueryDtype::F16),
        Some(32) => Some(QueryDtype::Bf16),
        _ => None,
    })
}
