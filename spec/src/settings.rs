//! What a server chooses about its cache, and the kernels that follow from it and a model.

use crate::{
    KernelSpec, KvDtype, KvLayout, Lse, ModelShape, Operation, QueryDtype, SpecError, TableForm,
};

/// A server's choices about its KV cache.
///
/// ```
/// use pagesmith_spec::{KvDtype, ModelShape, Settings};
///
/// let settings = Settings { kv_dtypes: vec![KvDtype::Fp8E4M3], ..Settings::default() };
/// let specs = settings.kernels(&ModelShape::by_name("qwen2-7b")?)?;
/// assert_eq!(specs[0].group, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Tokens per KV block.
    pub block_size: u32,
    /// Element type of queries and outputs.
    pub query: QueryDtype,
    /// KV dtypes to have kernels for.
    pub kv_dtypes: Vec<KvDtype>,
    /// Order inside a block.
    pub layout: KvLayout,
    /// How a sequence finds its blocks.
    pub table: TableForm,
    /// Whether the log-sum-exp is written.
    pub lse: Lse,
}

impl Default for Settings {
    /// Blocks of 16, bf16 queries, bf16 and fp8 e4m3 caches, dense tables, no log-sum-exp.
    fn default() -> Self {
        Settings {
            block_size: 16,
            query: QueryDtype::Bf16,
            kv_dtypes: vec![KvDtype::Bf16, KvDtype::Fp8E4M3],
            layout: KvLayout::DimContiguous,
            table: TableForm::Dense,
            lse: Lse::Omitted,
        }
    }
}

impl Settings {
    /// The kernels that `shape` needs under these settings, one for each distinct KV dtype.
    ///
    /// # Errors
    /// When the model needs a feature that no kernel has, or a spec has no kernel.
    pub fn kernels(&self, shape: &ModelShape) -> Result<Vec<KernelSpec>, SpecError> {
        refuse_missing_features(shape)?;
        if self.kv_dtypes.is_empty() {
            return Err(SpecError {
                field: "kv_dtype",
                value: String::from("an empty list"),
                reason: "leaves nothing to tune",
                fix: String::from("name at least one of bf16, f16, fp8_e4m3"),
            });
        }
        let mut specs: Vec<KernelSpec> = Vec::new();
        for &kv in &self.kv_dtypes {
            let spec = KernelSpec {
                operation: Operation::Decode,
                head_dim: shape.head_dim(),
                group: shape.group(),
                block_size: self.block_size,
                query: self.query,
                kv,
                layout: self.layout,
                table: self.table,
                lse: self.lse,
            };
            spec.check()?;
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }
}

/// A feature that the decode family does not have yet is refused by name: a kernel without it would
/// give plausible, wrong results.
fn refuse_missing_features(shape: &ModelShape) -> Result<(), SpecError> {
    let missing = |field, value: String| SpecError {
        field,
        value: format!("{value} of {}", shape.name()),
        reason: "has no kernel yet",
        fix: String::from("use a model without it, such as llama-3-8b or qwen2-7b"),
    };
    if let Some(softcap) = shape.softcap() {
        return Err(missing("logit softcap", softcap.to_string()));
    }
    if let Some(window) = shape.window() {
        return Err(missing(
            "sliding window",
            format!("{} tokens", window.tokens),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str) -> ModelShape {
        ModelShape::by_name(name).unwrap()
    }

    #[test]
    fn a_model_with_a_feature_that_no_kernel_has_is_refused_by_name() {
        let error = Settings::default()
            .kernels(&shape("gemma-2-9b"))
            .unwrap_err();
        assert_eq!(error.field, "logit softcap");
        assert!(error.to_string().contains("gemma-2-9b"), "{error}");
    }

    #[test]
    fn each_distinct_kv_dtype_gives_one_kernel() {
        let settings = Settings {
            kv_dtypes: vec![KvDtype::Bf16, KvDtype::Fp8E4M3, KvDtype::Bf16],
            ..Settings::default()
        };
        let specs = settings.kernels(&shape("llama-3-8b")).unwrap();
        let kv: Vec<KvDtype> = specs.iter().map(|spec| spec.kv).collect();
        assert_eq!(kv, [KvDtype::Bf16, KvDtype::Fp8E4M3]);
    }

    #[test]
    fn an_empty_list_of_kv_dtypes_is_refused() {
        let settings = Settings {
            kv_dtypes: Vec::new(),
            ..Settings::default()
        };
        let error = settings.kernels(&shape("llama-3-8b")).unwrap_err();
        assert_eq!(error.field, "kv_dtype");
    }
}
