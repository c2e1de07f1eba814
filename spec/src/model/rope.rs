//! Rotary position embedding.

use serde::{Deserialize, Serialize};

/// Rotary position embedding of queries and keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rope {
    /// The base of the frequencies ("theta").
    pub base: f64,
    /// Leading elements of a head that are rotated; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_dim: Option<u32>,
    /// How the frequencies are stretched beyond the context of the training.
    #[serde(default)]
    pub scaling: RopeScaling,
}

/// How rotary frequencies are stretched beyond the context of the training.
///
/// Factors of single frequencies (longrope's two lists) are left in the model's own file: kernels
/// take the finished table of cosines and sines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all, as far as the source says. A GGUF file keeps Llama 3.1's factors in a tensor,
    /// so its header says this.
    #[default]
    None,
    /// Positions divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// The base grows with the sequence ("dynamic NTK").
    Dynamic {
        /// Largest stretch.
        factor: f64,
    },
    /// Llama 3.1: low frequencies divided, high ones kept, a ramp between them.
    Llama3 {
        /// The divisor of low frequencies.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// Context of the training.
        original_context: u32,
    },
    /// YaRN (arXiv 2309.00071).
    Yarn {
        /// The stretch.
        factor: f64,
        /// Context of the training, where the source says it.
        original_context: Option<u32>,
    },
    /// LongRoPE (arXiv 2402.13753): a factor for each frequency, other ones beyond the context of
    /// the training.
    LongRope {
        /// Context of the training, where the source says it.
        original_context: Option<u32>,
    },
    /// A kind that pagesmith does not know.
    Other {
        /// Its name in the source.
        name: String,
    },
}
