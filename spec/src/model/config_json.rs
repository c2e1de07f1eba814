//! The shape in a Hugging Face config.json.

use super::error::shorten;
use super::{ModelError, ModelFields, ModelShape, Rope, RopeScaling, Window, WindowedLayers};
use crate::QueryDtype;
use serde_json::{Map, Value};

const SOURCE: &str = "config.json";
/// Longest config.json that is parsed; the longest published ones have some 100 KB.
const MAX_BYTES: usize = 4 << 20;
/// transformers leaves out of a config.json what equals the model class's default.
const FIX_MISSING: &str = "add it with the model's value (transformers writes every field with \
                           `config.to_json_file(path, use_diff=False)`)";

impl ModelShape {
    /// Reads a Hugging Face config.json: Llama, Mistral, Qwen 2 and 3, Phi 3, Gemma 2 and 3, and
    /// others with the same fields, at the top or in a multimodal model's `text_config`.
    ///
    /// ```
    /// use pagesmith_spec::ModelShape;
    ///
    /// let shape = ModelShape::from_config_json(br#"{
    ///     "model_type": "llama", "num_hidden_layers": 30, "num_attention_heads": 9,
    ///     "num_key_value_heads": 3, "hidden_size": 576, "max_position_embeddings": 8192,
    ///     "rope_theta": 100000, "torch_dtype": "bfloat16"
    /// }"#)?;
    /// assert_eq!((shape.head_dim(), shape.group()), (64, 3));
    /// # Ok::<(), pagesmith_spec::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// When it is no JSON object, a needed field is missing or of another type, a value is
    /// impossible, or the model's attention is of a kind that a shape cannot express.
    pub fn from_config_json(json: &[u8]) -> Result<Self, ModelError> {
        if json.len() > MAX_BYTES {
            return Err(ModelError::TooLong {
                bytes: json.len(),
                limit: MAX_BYTES,
            });
        }
        let root: Value = serde_json::from_slice(json).map_err(|error| ModelError::Json {
            message: error.to_string(),
        })?;
        let Value::Object(root) = root else {
            return Err(ModelError::Json {
                message: format!("it holds {}, not an object", kind(&root)),
            });
        };
        let root = Section {
            path: String::new(),
            values: &root,
        };
        let text = root.text()?;
        refuse_other_attention(&text)?;
        let layers = text.needed_u32("num_hidden_layers")?;
        let query_heads = text.needed_u32("num_attention_heads")?;
        let hidden_size = text.u32("hidden_size")?;
        let head_dim = match text.u32("head_dim")? {
            Some(head_dim) => head_dim,
            None => derived_head_dim(&text, hidden_size, query_heads)?,
        };
        ModelShape::new(ModelFields {
            name: model_name(&root, &text)?,
            layers,
            query_heads,
            kv_heads: kv_heads(&text, query_heads)?,
            head_dim,
            hidden_size,
            vocabulary: text.u32("vocab_size")?,
            max_context: text.needed_u32("max_position_embeddings")?,
            rope: rope(&text, head_dim)?,
            window: window(&text, layers)?,
            softcap: text.f64("attn_logit_softcapping")?,
            score_scale: score_scale(&text)?,
            dtype: dtype(&root, &text)?,
        })
    }
}

/// Markers of attention that is not softmax over cached K and V heads of one size, or that adds
/// something to it. Computing such a model with the plain kernel would be silently wrong.
fn refuse_other_attention(text: &Section<'_>) -> Result<(), ModelError> {
    let unsupported = |field: &str, reason| {
        Err(ModelError::Unsupported {
            field: text.name(field),
            value: text.values.get(field).map(describe).unwrap_or_default(),
            reason,
        })
    };
    if text.get("kv_lora_rank").is_some() {
        return unsupported("kv_lora_rank", "its cache holds latent vectors, not heads");
    }
    if text.get("attention_chunk_size").is_some() {
        return unsupported(
            "attention_chunk_size",
            "tokens attend only to their own chunk",
        );
    }
    if text.bool("alibi")? == Some(true) {
        return unsupported("alibi", "its scores have position biases (ALiBi)");
    }
    if let Some(nested) = text.section("attn_config")?
        && nested.bool("alibi")? == Some(true)
    {
        return unsupported("attn_config", "its scores have position biases (ALiBi)");
    }
    if text.string("model_type")? == Some("gpt_oss") {
        return unsupported("model_type", "its softmax has attention sinks");
    }
    let other_layers = |layer: &Value| {
        !matches!(
            layer.as_str(),
            Some("full_attention" | "sliding_attention" | "attention")
        )
    };
    for field in ["layer_types", "layers_block_type"] {
        if text
            .array(field)?
            .is_some_and(|layers| layers.iter().any(other_layers))
        {
            return unsupported(field, "some of its layers are not softmax attention");
        }
    }
    Ok(())
}

fn derived_head_dim(
    text: &Section<'_>,
    hidden_size: Option<u32>,
    query_heads: u32,
) -> Result<u32, ModelError> {
    let hidden_size = hidden_size.ok_or_else(|| ModelError::Missing {
        source_kind: SOURCE,
        field: text.name("head_dim"),
        fix: "add it, or hidden_size, from which it follows",
    })?;
    // A zero is left for the check of `query_heads`, whose message is the better one.
    let head_dim = hidden_size.checked_div(query_heads).unwrap_or(1);
    if head_dim * query_heads != hidden_size && query_heads != 0 {
        return Err(ModelError::Value {
            field: "hidden_size",
            value: hidden_size.to_string(),
            reason: format!("is no multiple of num_attention_heads = {query_heads}"),
            fix: String::from("correct one of them, or add head_dim"),
        });
    }
    Ok(head_dim)
}

fn kv_heads(text: &Section<'_>, query_heads: u32) -> Result<u32, ModelError> {
    // Falcon's spelling second.
    for field in ["num_key_value_heads", "num_kv_heads"] {
        if let Some(kv_heads) = text.u32(field)? {
            return Ok(kv_heads);
        }
    }
    Ok(match text.bool("multi_query")? {
        Some(true) => 1,
        _ => query_heads,
    })
}

/// The repository's or directory's name, or the model's type.
fn model_name(root: &Section<'_>, text: &Section<'_>) -> Result<String, ModelError> {
    let path = root.string("_name_or_path")?.unwrap_or_default();
    let last = path.rsplit(['/', '\\']).find(|part| !part.is_empty());
    let names = [
        last,
        root.string("model_type")?,
        text.string("model_type")?,
        Some("unnamed"),
    ];
    Ok(names.into_iter().flatten().take(1).collect())
}

fn rope(text: &Section<'_>, head_dim: u32) -> Result<Rope, ModelError> {
    // transformers 5 moved everything into `rope_parameters`, by kind of layer where they differ.
    let parameters = match text.section("rope_parameters")? {
        Some(parameters) => match parameters.section("full_attention")? {
            Some(full) => Some(full),
            None => Some(parameters),
        },
        None => None,
    };
    let scaling = match &parameters {
        Some(parameters) => Some(parameters.clone()),
        None => text.section("rope_scaling")?,
    };
    let nested = |field| parameters.as_ref().map_or(Ok(None), |p| p.f64(field));
    let base = match text.f64("rope_theta")? {
        Some(base) => Some(base),
        None => nested("rope_theta")?,
    };
    let fraction = match text.f64("partial_rotary_factor")? {
        Some(fraction) => Some(fraction),
        None => nested("partial_rotary_factor")?,
    };
    let rotated_dim = match fraction {
        None => None,
        Some(fraction) if (0.0..=1.0).contains(&fraction) => {
            Some((f64::from(head_dim) * fraction) as u32)
        }
        Some(fraction) => {
            return Err(ModelError::Value {
                field: "partial_rotary_factor",
                value: fraction.to_string(),
                reason: String::from("is no fraction"),
                fix: String::from("use 0 to 1"),
            });
        }
    };
    Ok(Rope {
        // What every class of transformers with rotary embedding takes for its default.
        base: base.unwrap_or(10_000.0),
        rotated_dim,
        scaling: match scaling {
            Some(scaling) => rope_scaling(&scaling, text)?,
            None => RopeScaling::None,
        },
    })
}

fn rope_scaling(scaling: &Section<'_>, text: &Section<'_>) -> Result<RopeScaling, ModelError> {
    let kind = match scaling.string("rope_type")? {
        Some(kind) => Some(kind),
        None => scaling.string("type")?,
    };
    const CONTEXT: &str = "original_max_position_embeddings";
    let original_context = || match scaling.u32(CONTEXT)? {
        Some(context) => Ok(Some(context)),
        None => text.u32(CONTEXT),
    };
    Ok(match kind {
        // mrope splits the positions of images; for text it is the plain rotation.
        None | Some("default" | "mrope") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear {
            factor: scaling.needed_f64("factor")?,
        },
        Some("dynamic") => RopeScaling::Dynamic {
            factor: scaling.needed_f64("factor")?,
        },
        Some("llama3") => RopeScaling::Llama3 {
            factor: scaling.needed_f64("factor")?,
            low_freq_factor: scaling.needed_f64("low_freq_factor")?,
            high_freq_factor: scaling.needed_f64("high_freq_factor")?,
            original_context: scaling.needed_u32(CONTEXT)?,
        },
        Some("yarn") => RopeScaling::Yarn {
            factor: scaling.needed_f64("factor")?,
            original_context: original_context()?,
        },
        // "su" is the name that Phi 3 gave it first.
        Some("longrope" | "su") => RopeScaling::LongRope {
            original_context: original_context()?,
        },
        Some(other) => RopeScaling::Other {
            name: shorten(other),
        },
    })
}

fn window(text: &Section<'_>, layers: u32) -> Result<Option<Window>, ModelError> {
    let Some(tokens) = text.u32("sliding_window")? else {
        return Ok(None);
    };
    if text.bool("use_sliding_window")? == Some(false) {
        return Ok(None);
    }
    let windowed = if let Some(types) = text.array("layer_types")? {
        let listed: Vec<bool> = types
            .iter()
            .take(ModelShape::MAX_LAYERS as usize + 1)
            .map(|layer| layer.as_str() == Some("sliding_attention"))
            .collect();
        if !listed.contains(&true) {
            return Ok(None);
        }
        WindowedLayers::Listed(listed)
    } else if let Some(period) = text.u32("sliding_window_pattern")? {
        WindowedLayers::AllButEach(period)
    } else {
        match text.string("model_type")? {
            Some("gemma2") => WindowedLayers::AllButEach(2),
            Some("gemma3" | "gemma3_text") => WindowedLayers::AllButEach(6),
            // Qwen's first layers see everything, the others have the window.
            Some("qwen2" | "qwen2_moe" | "qwen3" | "qwen3_moe") => {
                let full = text.needed_u32("max_window_layers")?;
                if full >= layers {
                    return Ok(None);
                }
                let layers = layers.min(ModelShape::MAX_LAYERS);
                WindowedLayers::Listed((0..layers).map(|layer| layer >= full).collect())
            }
            _ => WindowedLayers::All,
        }
    };
    Ok(Some(Window {
        tokens,
        layers: windowed,
    }))
}

fn score_scale(text: &Section<'_>) -> Result<Option<f64>, ModelError> {
    if let Some(scalar) = text.f64("query_pre_attn_scalar")? {
        return Ok(Some(scalar.powf(-0.5)));
    }
    // Granite.
    text.f64("attention_multiplier")
}

fn dtype(root: &Section<'_>, text: &Section<'_>) -> Result<Option<QueryDtype>, ModelError> {
    for section in [text, root] {
        for field in ["dtype", "torch_dtype"] {
            if let Some(name) = section.string(field)? {
                // f32 and quantised weights leave the choice to the server.
                return Ok(name.strip_prefix("torch.").unwrap_or(name).parse().ok());
            }
        }
    }
    Ok(None)
}

/// One object of the file, with its place for error messages. A `null` counts as absent.
#[derive(Clone)]
struct Section<'a> {
    path: String,
    values: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    /// The object that describes the language model.
    fn text(&self) -> Result<Section<'a>, ModelError> {
        if self.get("num_attention_heads").is_none() {
            for field in ["text_config", "llm_config", "language_config"] {
                if let Some(text) = self.section(field)? {
                    return Ok(text);
                }
            }
        }
        Ok(self.clone())
    }

    fn name(&self, field: &str) -> String {
        format!("{}{field}", self.path)
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.values.get(field).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        field: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(ModelError::Type {
                source_kind: SOURCE,
                field: self.name(field),
                value: describe(value),
                expected,
            }),
        }
    }

    fn u32(&self, field: &str) -> Result<Option<u32>, ModelError> {
        self.read(field, "a whole number from 0 to 4294967295", |value| {
            u32::try_from(value.as_u64()?).ok()
        })
    }

    fn f64(&self, field: &str) -> Result<Option<f64>, ModelError> {
        self.read(field, "a number", Value::as_f64)
    }

    fn bool(&self, field: &str) -> Result<Option<bool>, ModelError> {
        self.read(field, "true or false", Value::as_bool)
    }

    fn string(&self, field: &str) -> Result<Option<&'a str>, ModelError> {
        self.read(field, "a string", Value::as_str)
    }

    fn array(&self, field: &str) -> Result<Option<&'a Vec<Value>>, ModelError> {
        self.read(field, "a list", Value::as_array)
    }

    fn section(&self, field: &str) -> Result<Option<Section<'a>>, ModelError> {
        let values = self.read(field, "an object", Value::as_object)?;
        Ok(values.map(|values| Section {
            path: format!("{}{field}.", self.path),
            values,
        }))
    }

    fn needed_u32(&self, field: &str) -> Result<u32, ModelError> {
        self.u32(field)?.ok_or_else(|| self.missing(field))
    }

    fn needed_f64(&self, field: &str) -> Result<f64, ModelError> {
        self.f64(field)?.ok_or_else(|| self.missing(field))
    }

    fn missing(&self, field: &str) -> ModelError {
        ModelError::Missing {
            source_kind: SOURCE,
            field: self.name(field),
            fix: FIX_MISSING,
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        scalar => shorten(&scalar.to_string()),
    }
}
