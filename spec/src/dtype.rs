//! Element types of queries and of the KV cache.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Element type of queries and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryDtype {
    /// bfloat16: 8 exponent bits, 8 significant bits.
    Bf16,
    /// IEEE half precision.
    F16,
}

/// Element type of the KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KvDtype {
    /// bfloat16, unscaled.
    #[serde(rename = "bf16")]
    Bf16,
    /// IEEE half precision, unscaled.
    #[serde(rename = "f16")]
    F16,
    /// 8-bit float with 4 exponent bits and no infinities (OCP "e4m3fn"): true = stored × scale.
    #[serde(rename = "fp8_e4m3")]
    Fp8E4M3,
}

/// A dtype name that pagesmith does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: unknown dtype `{value}`; use one of {known}")]
pub struct UnknownDtype {
    /// The setting that held the name.
    pub field: &'static str,
    /// What it held.
    pub value: String,
    /// The accepted names, comma separated.
    pub known: &'static str,
}

impl QueryDtype {
    /// Every query dtype.
    pub const ALL: [QueryDtype; 2] = [QueryDtype::Bf16, QueryDtype::F16];

    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        2
    }

    /// The name used in ids and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            QueryDtype::Bf16 => "bf16",
            QueryDtype::F16 => "f16",
        }
    }

    /// The KV dtype that stores the same values.
    pub const fn as_kv(self) -> KvDtype {
        match self {
            QueryDtype::Bf16 => KvDtype::Bf16,
            QueryDtype::F16 => KvDtype::F16,
        }
    }

    /// Largest accepted `‖out − reference‖ / ‖reference‖` of a kernel with this query dtype, the
    /// reference being f64 attention over the dequantised cache. Rounding the output alone costs
    /// about 1.7e-3 (bf16) and 2.1e-4 (f16).
    pub const fn tolerance(self) -> f64 {
        match self {
            QueryDtype::Bf16 => 3e-3,
            QueryDtype::F16 => 5e-4,
        }
    }
}

impl KvDtype {
    /// Every KV dtype.
    pub const ALL: [KvDtype; 3] = [KvDtype::Bf16, KvDtype::F16, KvDtype::Fp8E4M3];

    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        match self {
            KvDtype::Bf16 | KvDtype::F16 => 2,
            KvDtype::Fp8E4M3 => 1,
        }
    }

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            KvDtype::Bf16 => "bf16",
            KvDtype::F16 => "f16",
            KvDtype::Fp8E4M3 => "fp8_e4m3",
        }
    }

    /// The short name used in kernel ids and templates.
    pub const fn token(self) -> &'static str {
        match self {
            KvDtype::Bf16 => "bf16",
            KvDtype::F16 => "f16",
            KvDtype::Fp8E4M3 => "e4m3",
        }
    }

    /// True when stored values must be multiplied by a scale.
    pub const fn is_scaled(self) -> bool {
        matches!(self, KvDtype::Fp8E4M3)
    }
}

impl fmt::Display for QueryDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for QueryDtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        match text {
            "bf16" | "bfloat16" => Ok(QueryDtype::Bf16),
            "f16" | "fp16" | "float16" | "half" => Ok(QueryDtype::F16),
            _ => Err(UnknownDtype {
                field: "query dtype",
                value: text.to_owned(),
                known: "bf16, f16",
            }),
        }
    }
}

impl FromStr for KvDtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        match text {
            "bf16" | "bfloat16" => Ok(KvDtype::Bf16),
            "f16" | "fp16" | "float16" | "half" => Ok(KvDtype::F16),
            "fp8_e4m3" | "fp8" | "e4m3" => Ok(KvDtype::Fp8E4M3),
            _ => Err(UnknownDtype {
                field: "kv dtype",
                value: text.to_owned(),
                known: "bf16, f16, fp8_e4m3",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back_to_its_dtype() {
        for dtype in QueryDtype::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        for dtype in KvDtype::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(dtype.token().parse(), Ok(dtype));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "fp7".parse::<KvDtype>().unwrap_err().to_string();
        assert!(
            error.contains("fp7") && error.contains("fp8_e4m3"),
            "{error}"
        );
    }
}
