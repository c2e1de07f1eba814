//! What a variant tells its template.

use pagesmith_spec::abi::{DecodeParams, Field, KernelParams, MergeItem, MergeParams, WorkItem};
use pagesmith_spec::{KernelSpec, KvLayout, Lse, Operation, Tuning, Variant};
use serde::Serialize;
use std::collections::BTreeMap;
use tera::{Context, Value};

/// The variables of one rendering, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables(BTreeMap<&'static str, Value>);

impl Variables {
    fn set(&mut self, name: &'static str, value: impl Serialize) {
        self.0.insert(name, Value::from_serializable(&value));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn context(&self) -> Context {
        let mut context = Context::new();
        for (name, value) in &self.0 {
            context.insert_value(*name, value.clone());
        }
        context
    }

    /// Those of a kernel variant.
    pub(super) fn of(variant: &Variant) -> Self {
        // Exhaustive on purpose: a field, operation or layout that the template does not see would make two
        // variants one kernel.
        let KernelSpec {
            operation: Operation::Decode,
            head_dim,
            group,
            block_size,
            query,
            kv,
            // The strides are launch parameters.
            layout: KvLayout::DimContiguous,
            table,
            lse,
        } = variant.spec();
        let Tuning {
            engine,
            warps,
            tile_tokens,
            stages,
            head_tile,
            ctas_per_sm,
        } = variant.tuning();
        let mut variables = Variables::default();
        variables.set("head_dim", head_dim);
        variables.set("group", group);
        variables.set("block_size", block_size);
        variables.set("query", query.name());
        variables.set("kv", kv.token());
        variables.set("table", table.token());
        variables.set("lse", *lse == Lse::Written);
        variables.set("engine", engine.name());
        variables.set("warps", warps);
        variables.set("tile_tokens", tile_tokens);
        variables.set("stages", stages);
        variables.set("head_tile", head_tile);
        variables.set("min_ctas", ctas_per_sm);
        variables.set("shared_bytes", variant.shared_bytes());
        variables
    }

    /// Those of the echo kernels: each ABI struct with its entry and fields.
    pub(super) fn of_echo() -> Self {
        let mut variables = Variables::default();
        variables.set(
            "structs",
            [
                Struct::of::<DecodeParams>(ECHO_ENTRIES[0]),
                Struct::of::<MergeParams>(ECHO_ENTRIES[1]),
                Struct::of::<WorkItem>(ECHO_ENTRIES[2]),
                Struct::of::<MergeItem>(ECHO_ENTRIES[3]),
            ],
        );
        variables
    }
}

/// The kernels of the echo source, in the order of its structs.
pub(super) const ECHO_ENTRIES: [&str; 4] = [
    "pagesmith_echo_decode",
    "pagesmith_echo_merge",
    "pagesmith_echo_work_item",
    "pagesmith_echo_merge_item",
];

#[derive(Serialize)]
struct Struct {
    name: &'static str,
    entry: &'static str,
    fields: Vec<StructField>,
}

#[derive(Serialize)]
struct StructField {
    name: &'static str,
    cuda: &'static str,
    offset: usize,
    size: usize,
}

impl Struct {
    fn of<Params: KernelParams>(entry: &'static str) -> Self {
        let fields = Params::FIELDS.iter();
        Struct {
            name: Params::NAME,
            entry,
            fields: fields
                .map(
                    |&Field {
                         name,
                         cuda,
                         offset,
                         size,
                     }| StructField {
                        name,
                        cuda,
                        offset,
                        size,
                    },
                )
                .collect(),
        }
    }
}
