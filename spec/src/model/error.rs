//! Why a model is unknown, or its shape refused.

use super::GgufError;
use std::fmt;

/// A model that is unknown, unreadable, or has no possible shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No built-in model has that name.
    #[error("model: `{name}` is unknown{}; use one of {known}, or the path of a config.json or a .gguf file", Hint(.nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The known name that is spelt most alike, when one is.
        nearest: Option<&'static str>,
        /// The names there are, comma separated.
        known: String,
    },
    /// A field that is needed is absent.
    #[error("{source_kind}: `{field}` is missing; {fix}")]
    Missing {
        /// `config.json` or `GGUF header`.
        source_kind: &'static str,
        /// The field, with the object that it belongs in.
        field: String,
        /// What to do.
        fix: &'static str,
    },
    /// A field holds another type than it should.
    #[error("{source_kind}: `{field}` is {value}, not {expected}; correct it")]
    Type {
        /// `config.json` or `GGUF header`.
        source_kind: &'static str,
        /// The field, with the object that it belongs in.
        field: String,
        /// What it holds, shortened.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A field holds what no model has.
    #[error("model: {field} = {value} {reason}; {fix}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// Why that cannot be.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// The model is well formed, but its attention is of a kind that a [`super::ModelShape`] cannot
    /// express.
    #[error("model: {field} = {value}: {reason}; pagesmith has no kernels for this model")]
    Unsupported {
        /// The field that says so.
        field: String,
        /// What it holds, shortened.
        value: String,
        /// What it means.
        reason: &'static str,
    },
    /// A config.json is not JSON, or no object.
    #[error("config.json: {message}; pass the config.json of a Hugging Face model")]
    Json {
        /// What the parser says, with line and column.
        message: String,
    },
    /// A config.json is longer than any model's.
    #[error(
        "config.json: {bytes} bytes are more than the {limit} that are read; pass the config.json of a Hugging Face model"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is read.
        limit: usize,
    },
    /// A GGUF header cannot be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
}

/// ", did you mean `x`?" where there is an `x`.
struct Hint<'a>(&'a Option<&'static str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, " (did you mean `{nearest}`?)"),
            None => Ok(()),
        }
    }
}

/// The first characters of a foreign text, so that an error stays readable.
pub(super) fn shorten(text: &str) -> String {
    const KEPT: usize = 64;
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
