//! What a layer's attention does beyond plain causal softmax.

use serde::{Deserialize, Serialize};

/// A sliding window: a token sees itself and the `tokens - 1` before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Tokens a query sees, itself included.
    pub tokens: u32,
    /// The layers that have it; the others see everything.
    pub layers: WindowedLayers,
}

/// Which layers have a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowedLayers {
    /// Every layer.
    All,
    /// Every layer but each `period`-th: with 2, layers 0, 2, 4, ... as in Gemma 2; with 6, all but
    /// 5, 11, ... as in Gemma 3.
    AllButEach(u32),
    /// One entry a layer.
    Listed(Vec<bool>),
}

impl WindowedLayers {
    /// Whether `layer`, counted from 0, has the window.
    pub fn contains(&self, layer: u32) -> bool {
        match self {
            WindowedLayers::All => true,
            WindowedLayers::AllButEach(period) => !(layer + 1).is_multiple_of(*period),
            WindowedLayers::Listed(layers) => {
                layers.get(layer as usize).copied().unwrap_or_default()
            }
        }
    }
}
