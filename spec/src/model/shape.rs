//! The shape itself, and what makes one possible.

use super::error::shorten;
use super::{ModelError, Rope, RopeScaling, Window, WindowedLayers};
use crate::{KvDtype, QueryDtype};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A model's figures, not yet checked. [`ModelShape::new`] checks them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFields {
    /// What to call it in tables.
    pub name: String,
    /// Layers, each with its own KV cache.
    pub layers: u32,
    /// Query heads of a layer.
    pub query_heads: u32,
    /// KV heads of a layer.
    pub kv_heads: u32,
    /// Elements of one head of Q, K and V.
    pub head_dim: u32,
    /// Width of the residual stream, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_size: Option<u32>,
    /// Entries of the vocabulary, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u32>,
    /// Longest sequence in tokens.
    pub max_context: u32,
    /// Rotary position embedding.
    pub rope: Rope,
    /// Sliding window of some or all layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Scores become `softcap * tanh(score / softcap)` before the softmax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softcap: Option<f64>,
    /// Factor of the scores, where it is not `1 / sqrt(head_dim)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_scale: Option<f64>,
    /// 16-bit dtype of the published weights, where the source has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<QueryDtype>,
}

/// A model's attention in numbers: checked, so that no later arithmetic on it can overflow or
/// divide by zero.
///
/// It keeps what no kernel can do yet (a window, a softcap), so that a kernel spec can refuse the
/// model by the name of the feature instead of computing something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ModelFields", into = "ModelFields")]
pub struct ModelShape {
    fields: ModelFields,
}

/// Far above any model; low enough that products of two are safe in 32 bits.
const LAYERS: RangeInclusive<u32> = 1..=1024;
const HEADS: RangeInclusive<u32> = 1..=1024;
const HEAD_DIM: RangeInclusive<u32> = 1..=1024;
const HIDDEN_SIZE: RangeInclusive<u32> = 1..=1 << 20;
const VOCABULARY: RangeInclusive<u32> = 1..=1 << 24;
const CONTEXT: RangeInclusive<u32> = 1..=1 << 27;

impl ModelShape {
    /// Most layers of a shape.
    pub const MAX_LAYERS: u32 = *LAYERS.end();

    /// Checks the figures.
    ///
    /// What changes nothing is dropped: a window that spans the whole context, and a rotation that
    /// is said to cover all of a head.
    ///
    /// # Errors
    /// The first field that no model can have.
    pub fn new(mut fields: ModelFields) -> Result<Self, ModelError> {
        if fields
            .window
            .as_ref()
            .is_some_and(|window| window.tokens >= fields.max_context)
        {
            fields.window = None;
        }
        // One spelling for one shape: sources differ in whether they write the usual case.
        if fields.rope.rotated_dim == Some(fields.head_dim) {
            fields.rope.rotated_dim = None;
        }
        check_name(&fields.name)?;
        check_range("layers", fields.layers, LAYERS)?;
        check_range("query_heads", fields.query_heads, HEADS)?;
        check_range("kv_heads", fields.kv_heads, HEADS)?;
        check_range("head_dim", fields.head_dim, HEAD_DIM)?;
        check_range("max_context", fields.max_context, CONTEXT)?;
        if let Some(hidden_size) = fields.hidden_size {
            check_range("hidden_size", hidden_size, HIDDEN_SIZE)?;
        }
        if let Some(vocabulary) = fields.vocabulary {
            check_range("vocabulary", vocabulary, VOCABULARY)?;
        }
        check_heads(fields.query_heads, fields.kv_heads)?;
        check_rope(&fields.rope, fields.head_dim)?;
        if let Some(window) = &fields.window {
            check_window(window, fields.layers)?;
        }
        if let Some(softcap) = fields.softcap {
            check_positive("softcap", softcap)?;
        }
        if let Some(scale) = fields.score_scale {
            check_positive("score_scale", scale)?;
        }
        Ok(ModelShape { fields })
    }

    /// The same shape under another name.
    ///
    /// # Errors
    /// When the name is empty, long, or not printable.
    pub fn with_name(self, name: impl Into<String>) -> Result<Self, ModelError> {
        let name = name.into();
        check_name(&name)?;
        Ok(ModelShape {
            fields: ModelFields {
                name,
                ..self.fields
            },
        })
    }

    /// All figures at once.
    pub fn fields(&self) -> &ModelFields {
        &self.fields
    }

    /// What to call it in tables.
    pub fn name(&self) -> &str {
        &self.fields.name
    }

    /// Layers, each with its own KV cache.
    pub fn layers(&self) -> u32 {
        self.fields.layers
    }

    /// Query heads of a layer.
    pub fn query_heads(&self) -> u32 {
        self.fields.query_heads
    }

    /// KV heads of a layer.
    pub fn kv_heads(&self) -> u32 {
        self.fields.kv_heads
    }

    /// Query heads that share one KV head.
    pub fn group(&self) -> u32 {
        self.fields.query_heads / self.fields.kv_heads
    }

    /// Elements of one head of Q, K and V.
    pub fn head_dim(&self) -> u32 {
        self.fields.head_dim
    }

    /// Width of the residual stream, where known.
    pub fn hidden_size(&self) -> Option<u32> {
        self.fields.hidden_size
    }

    /// Entries of the vocabulary, where known.
    pub fn vocabulary(&self) -> Option<u32> {
        self.fields.vocabulary
    }

    /// Longest sequence in tokens.
    pub fn max_context(&self) -> u32 {
        self.fields.max_context
    }

    /// Rotary position embedding.
    pub fn rope(&self) -> &Rope {
        &self.fields.rope
    }

    /// Elements of a head that are rotated.
    pub fn rotated_dim(&self) -> u32 {
        self.fields.rope.rotated_dim.unwrap_or(self.head_dim())
    }

    /// Sliding window of some or all layers.
    pub fn window(&self) -> Option<&Window> {
        self.fields.window.as_ref()
    }

    /// Tokens that a query of `layer` sees, itself included; absent where it sees all.
    pub fn window_of(&self, layer: u32) -> Option<u32> {
        self.window()
            .filter(|window| window.layers.contains(layer))
            .map(|window| window.tokens)
    }

    /// The cap of the scores, when they have one: they become `cap * tanh(score / cap)`.
    pub fn softcap(&self) -> Option<f64> {
        self.fields.softcap
    }

    /// What `q · k` is multiplied by.
    pub fn score_scale(&self) -> f64 {
        self.fields
            .score_scale
            .unwrap_or_else(|| 1.0 / f64::from(self.head_dim()).sqrt())
    }

    /// 16-bit dtype of the published weights, where the source has one.
    pub fn dtype(&self) -> Option<QueryDtype> {
        self.fields.dtype
    }

    /// Bytes of K and V that one token takes in all layers, scales not counted.
    pub fn kv_bytes_per_token(&self, dtype: KvDtype) -> u64 {
        [
            self.layers(),
            self.kv_heads(),
            self.head_dim(),
            dtype.bytes(),
        ]
        .into_iter()
        .fold(2, |bytes, factor| bytes * u64::from(factor))
    }
}

impl TryFrom<ModelFields> for ModelShape {
    type Error = ModelError;

    fn try_from(fields: ModelFields) -> Result<Self, ModelError> {
        ModelShape::new(fields)
    }
}

impl From<ModelShape> for ModelFields {
    fn from(shape: ModelShape) -> ModelFields {
        shape.fields
    }
}

fn check_name(name: &str) -> Result<(), ModelError> {
    if !name.is_empty() && name.len() <= 256 && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(ModelError::Value {
        field: "name",
        value: format!("{:?}", shorten(name)),
        reason: String::from("is not 1 to 256 bytes of printable text"),
        fix: String::from("give the model a short name"),
    })
}

fn check_range(
    field: &'static str,
    value: u32,
    range: RangeInclusive<u32>,
) -> Result<(), ModelError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ModelError::Value {
        field,
        value: value.to_string(),
        reason: String::from("is out of range"),
        fix: format!("use {} to {}", range.start(), range.end()),
    })
}

fn check_positive(field: &'static str, value: f64) -> Result<(), ModelError> {
    // The bounds keep the value and its reciprocal normal in f32, which kernels compute in.
    if (1e-30..=1e30).contains(&value) {
        return Ok(());
    }
    Err(ModelError::Value {
        field,
        value: value.to_string(),
        reason: String::from("is not a positive number"),
        fix: String::from("correct it, or leave it out where the model has none"),
    })
}

fn check_heads(query_heads: u32, kv_heads: u32) -> Result<(), ModelError> {
    if query_heads.is_multiple_of(kv_heads) {
        return Ok(());
    }
    let divisors: Vec<String> = (1..=query_heads)
        .filter(|divisor| query_heads.is_multiple_of(*divisor))
        .map(|divisor| divisor.to_string())
        .collect();
    Err(ModelError::Value {
        field: "kv_heads",
        value: kv_heads.to_string(),
        reason: format!("does not divide query_heads = {query_heads}"),
        fix: format!("use one of {}", divisors.join(", ")),
    })
}

fn check_rope(rope: &Rope, head_dim: u32) -> Result<(), ModelError> {
    check_positive("rope.base", rope.base)?;
    if let Some(rotated_dim) = rope.rotated_dim
        && (rotated_dim > head_dim || !rotated_dim.is_multiple_of(2))
    {
        return Err(ModelError::Value {
            field: "rope.rotated_dim",
            value: rotated_dim.to_string(),
            reason: format!("is odd or exceeds head_dim = {head_dim}"),
            fix: format!("use an even number up to {head_dim}, or leave it out to rotate all"),
        });
    }
    match rope.scaling {
        RopeScaling::None | RopeScaling::Other { .. } => Ok(()),
        RopeScaling::Linear { factor } | RopeScaling::Dynamic { factor } => {
            check_positive("rope.scaling.factor", factor)
        }
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        } => {
            check_positive("rope.scaling.factor", factor)?;
            check_positive("rope.scaling.low_freq_factor", low_freq_factor)?;
            check_positive("rope.scaling.high_freq_factor", high_freq_factor)?;
            check_range("rope.scaling.original_context", original_context, CONTEXT)
        }
        RopeScaling::Yarn {
            factor,
            original_context,
        } => {
            check_positive("rope.scaling.factor", factor)?;
            check_original_context(original_context)
        }
        RopeScaling::LongRope { original_context } => check_original_context(original_context),
    }
}

fn check_original_context(context: Option<u32>) -> Result<(), ModelError> {
    context.map_or(Ok(()), |context| {
        check_range("rope.scaling.original_context", context, CONTEXT)
    })
}

fn check_window(window: &Window, layers: u32) -> Result<(), ModelError> {
    check_range("window.tokens", window.tokens, CONTEXT)?;
    match &window.layers {
        WindowedLayers::All => Ok(()),
        WindowedLayers::AllButEach(period) => {
            // With 1, no layer would have the window.
            check_range("window.layers", *period, 2..=ModelShape::MAX_LAYERS)
        }
        WindowedLayers::Listed(listed) if listed.len() != layers as usize => {
            Err(ModelError::Value {
                field: "window.layers",
                value: format!("{} entries", listed.len()),
                reason: format!("is not one for each of {layers} layers"),
                fix: String::from("list every layer"),
            })
        }
        WindowedLayers::Listed(_) => Ok(()),
    }
}
