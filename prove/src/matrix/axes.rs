//! The axes of the decode family.

use pagesmith_spec::{
    Engine, KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm,
};

/// The groups that are tested; kernels take any.
pub const GROUPS: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32];

/// The KV dtype relative to the query's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvChoice {
    /// That of the queries.
    AsQuery,
    /// fp8 e4m3 with scales.
    Fp8E4M3,
}

impl KvChoice {
    /// Both choices.
    pub const ALL: [KvChoice; 2] = [KvChoice::AsQuery, KvChoice::Fp8E4M3];
}

/// One axis: its name and how many values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// For reports.
    pub name: &'static str,
    /// Number of values.
    pub values: usize,
}

/// One point of the product of all axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// What to compute.
    pub spec: KernelSpec,
    /// By which arithmetic.
    pub engine: Engine,
}

/// The axes, in the order of a row's indices.
pub fn axes() -> [Axis; 8] {
    let axis = |name, values| Axis { name, values };
    [
        axis("head dim", KernelSpec::HEAD_DIMS.len()),
        axis("group", GROUPS.len()),
        axis("block size", KernelSpec::BLOCK_SIZES.len()),
        axis("query dtype", QueryDtype::ALL.len()),
        axis("KV dtype", KvChoice::ALL.len()),
        axis("engine", Engine::ALL.len()),
        axis("table form", TableForm::ALL.len()),
        axis("LSE", Lse::ALL.len()),
    ]
}

impl Cell {
    /// The cell of one index for each axis; `None` for an index that its axis does not have.
    pub fn from_indices(row: &[usize]) -> Option<Self> {
        let &[head_dim, group, block_size, query, kv, engine, table, lse] = row else {
            return None;
        };
        let query = *QueryDtype::ALL.get(query)?;
        Some(Cell {
            spec: KernelSpec {
                operation: Operation::Decode,
                head_dim: *KernelSpec::HEAD_DIMS.get(head_dim)?,
                group: *GROUPS.get(group)?,
                block_size: *KernelSpec::BLOCK_SIZES.get(block_size)?,
                query,
                kv: match KvChoice::ALL.get(kv)? {
                    KvChoice::AsQuery => query.as_kv(),
                    KvChoice::Fp8E4M3 => KvDtype::Fp8E4M3,
                },
                layout: KvLayout::DimContiguous,
                table: *TableForm::ALL.get(table)?,
                lse: *Lse::ALL.get(lse)?,
            },
            engine: *Engine::ALL.get(engine)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_point_of_the_product_is_a_legal_spec_of_its_own() {
        let sizes = axes().map(|axis| axis.values);
        let total: usize = sizes.iter().product();
        let mut cells = HashSet::new();
        for mut index in 0..total {
            let row: Vec<usize> = sizes
                .iter()
                .map(|size| {
                    let value = index % size;
                    index /= size;
                    value
                })
                .collect();
            let cell = Cell::from_indices(&row).unwrap();
            assert_eq!(cell.spec.check(), Ok(()));
            cells.insert(cell);
        }
        assert_eq!(cells.len(), total);
        assert_eq!(Cell::from_indices(&[7, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Cell::from_indices(&[0]), None);
    }
}
