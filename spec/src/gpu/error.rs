//! Why a GPU is unknown, or its description refused.

/// A GPU that is unknown, or a description that cannot be right.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No description has that name.
    #[error("gpu: `{name}` is unknown; use one of {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are, comma separated.
        known: String,
    },
    /// A description is not of the expected form.
    #[error("gpu description: {message}; spec/gpus/a100-sxm4-80gb.toml shows every field")]
    Syntax {
        /// What the parser says, with line and field.
        message: String,
    },
    /// A field of a description holds what no GPU has.
    #[error("gpu description: {field} = {value} {reason}; correct it in the file")]
    Field {
        /// The field, with its table.
        field: &'static str,
        /// What it holds.
        value: String,
        /// Why that cannot be.
        reason: &'static str,
    },
}
