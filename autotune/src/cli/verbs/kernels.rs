//! The table of kernels that several verbs print.

use crate::cli::page::{Column, Page, thousands};
use pagesmith_autotune::KernelReport;
use pagesmith_spec::Workload;
use std::io;

const COLUMNS: [Column; 8] = [
    Column::id("kernel"),
    Column::text("tuning"),
    Column::number("time"),
    Column::text(""),
    Column::number("of HBM"),
    Column::number("regs"),
    Column::number("spills"),
    Column::number("error"),
];

/// One row a kernel.
pub(crate) fn table(page: &mut Page<'_>, kernels: &[KernelReport]) -> io::Result<()> {
    page.table(&COLUMNS, kernels.iter().map(row).collect())
}

fn row(kernel: &KernelReport) -> Vec<String> {
    vec![
        kernel.id.clone(),
        kernel.tuning.to_string(),
        format!("{:.1} µs", kernel.time_us),
        kernel.provenance.kind().to_owned(),
        format!("{:.0} %", 100.0 * kernel.roofline_fraction),
        kernel.registers.to_string(),
        format!("{} B", kernel.spill_bytes),
        format!("{:.1e}", kernel.max_relative_l2),
    ]
}

/// `batch 4 x 4,096 tokens, 8 KV heads`.
pub(crate) fn workload(shape: Workload) -> String {
    format!(
        "batch {} x {} tokens, {} KV heads",
        shape.batch,
        thousands(shape.tokens.into()),
        shape.kv_heads
    )
}
