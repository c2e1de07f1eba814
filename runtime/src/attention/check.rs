//! Whether the arguments of a decode suit its plan, and the parameters they become.

use super::step::{PlanAddresses, Planned};
use super::{AttentionError, DecodeArgs, KvCache, Rows, Scales, TablePlace};
use crate::device::Region;
use pagesmith_spec::abi::{DecodeParams, DevicePtr, MergeParams};
use pagesmith_spec::{KernelSpec, Lse, TableForm};
use std::f32::consts::LOG2_E;
use std::fmt::Display;

/// The parameters of both launches.
///
/// Everything that the kernels rely on is checked here or was when the tensors were made.
pub(super) fn params(
    planned: &Planned,
    plan: PlanAddresses,
    args: &DecodeArgs<Region<'_>>,
) -> Result<(DecodeParams, MergeParams), AttentionError> {
    let spec = planned.variant.spec();
    // Both are at most 65536: `Plan` and `KernelSpec::check` bound them.
    let q_heads = planned.kv_heads * spec.group;
    check_rows("query", &args.query, planned, q_heads)?;
    check_rows("out", &args.out, planned, q_heads)?;
    check_cache("key", &args.key, planned)?;
    check_cache("value", &args.value, planned)?;
    check_scales(spec, args.scales)?;
    let lse = lse_address(planned, args, q_heads)?;
    let (table, table_indptr) = table_addresses(planned, plan, args)?;

    let (key, value) = (args.key.strides(), args.value.strides());
    let decode = DecodeParams {
        q: args.query.memory().start(),
        k: args.key.memory().start(),
        v: args.value.memory().start(),
        out: args.out.memory().start(),
        lse,
        table,
        table_indptr,
        work: plan.work,
        partial_out: plan.partial_out,
        partial_lse: plan.partial_lse,
        q_token_stride: args.query.token_stride(),
        q_head_stride: args.query.head_stride(),
        out_token_stride: args.out.token_stride(),
        out_head_stride: args.out.head_stride(),
        k_block_stride: key.block,
        k_token_stride: key.token,
        k_head_stride: key.head,
        v_block_stride: value.block,
        v_token_stride: value.token,
        v_head_stride: value.head,
        table_stride: planned.table_row,
        scale_log2: args.scales.softmax * LOG2_E,
        k_scale: args.scales.key,
        v_scale: args.scales.value,
        q_heads,
    };
    let merge = MergeParams {
        partial_out: plan.partial_out,
        partial_lse: plan.partial_lse,
        out: decode.out,
        lse,
        items: plan.merge,
        out_token_stride: decode.out_token_stride,
        out_head_stride: decode.out_head_stride,
        q_heads,
        reserved: 0,
    };
    Ok((decode, merge))
}

fn same<T: PartialEq + Display>(
    field: &'static str,
    found: T,
    expected: T,
    fix: &'static str,
) -> Result<(), AttentionError> {
    if found == expected {
        return Ok(());
    }
    Err(AttentionError::Mismatch {
        field,
        found: found.to_string(),
        expected: expected.to_string(),
        fix,
    })
}

fn at_least(
    field: &'static str,
    found: u64,
    least: u64,
    fix: &'static str,
) -> Result<(), AttentionError> {
    if found >= least {
        return Ok(());
    }
    Err(AttentionError::Mismatch {
        field,
        found: found.to_string(),
        expected: format!("at least {least}"),
        fix,
    })
}

fn check_rows(
    name: &'static str,
    rows: &Rows<Region<'_>>,
    planned: &Planned,
    q_heads: u32,
) -> Result<(), AttentionError> {
    let spec = planned.variant.spec();
    let [tokens, heads, head_dim] = rows.shape();
    // One literal each, so that an error names the field without a string being built per call.
    let [dtype, tokens_field, heads_field, dim] = match name {
        "query" => [
            "query.dtype",
            "query.tokens",
            "query.heads",
            "query.head_dim",
        ],
        _ => ["out.dtype", "out.tokens", "out.heads", "out.head_dim"],
    };
    same(
        dtype,
        rows.dtype(),
        spec.query,
        "use a kernel of that dtype",
    )?;
    same(
        dim,
        head_dim,
        spec.head_dim,
        "use a kernel of that head dim",
    )?;
    same(heads_field, heads, q_heads, "plan with the model's heads")?;
    at_least(
        tokens_field,
        u64::from(tokens),
        u64::from(planned.sequences),
        "pass a row for each sequence",
    )
}

fn check_cache(
    name: &'static str,
    cache: &KvCache<Region<'_>>,
    planned: &Planned,
) -> Result<(), AttentionError> {
    let spec = planned.variant.spec();
    let [blocks, block_size, heads, head_dim] = cache.shape();
    let [dtype, blocks_field, size, heads_field, dim] = match name {
        "key" => [
            "key.dtype",
            "key.blocks",
            "key.block_size",
            "key.heads",
            "key.head_dim",
        ],
        _ => [
            "value.dtype",
            "value.blocks",
            "value.block_size",
            "value.heads",
            "value.head_dim",
        ],
    };
    same(dtype, cache.dtype(), spec.kv, "use a kernel of that dtype")?;
    same(
        dim,
        head_dim,
        spec.head_dim,
        "use a kernel of that head dim",
    )?;
    same(
        size,
        block_size,
        spec.block_size,
        "use a kernel of that block size",
    )?;
    same(
        heads_field,
        heads,
        planned.kv_heads,
        "plan with the model's heads",
    )?;
    at_least(
        blocks_field,
        u64::from(blocks),
        u64::from(planned.blocks),
        "pass the cache whose blocks the batch's table names",
    )
}

fn check_scales(spec: &KernelSpec, scales: Scales) -> Result<(), AttentionError> {
    let fields = [
        ("scales.softmax", scales.softmax),
        ("scales.key", scales.key),
        ("scales.value", scales.value),
    ];
    for (field, value) in fields {
        if !value.is_finite() {
            return Err(AttentionError::Mismatch {
                field,
                found: value.to_string(),
                expected: String::from("a finite number"),
                fix: "pass the scale the cache was written with",
            });
        }
    }
    // Kernels take the maximum of raw scores: a factor below 0 would make it the minimum.
    for (field, value, fix) in [
        (
            "scales.softmax",
            scales.softmax,
            "negate the queries instead",
        ),
        ("scales.key", scales.key, "negate the queries instead"),
    ] {
        if value < 0.0 {
            return Err(AttentionError::Mismatch {
                field,
                found: value.to_string(),
                expected: String::from("at least 0"),
                fix,
            });
        }
    }
    if !(scales.softmax * scales.key).is_finite() {
        return Err(AttentionError::Mismatch {
            field: "scales.key",
            found: scales.key.to_string(),
            expected: format!("a finite product with scales.softmax = {}", scales.softmax),
            fix: "scale the keys by less when they are written",
        });
    }
    if !spec.kv.is_scaled() {
        same(
            "scales.key",
            scales.key,
            1.0,
            "16-bit caches hold true keys: pass 1",
        )?;
        same(
            "scales.value",
            scales.value,
            1.0,
            "16-bit caches hold true values: pass 1",
        )?;
    }
    Ok(())
}

fn lse_address(
    planned: &Planned,
    args: &DecodeArgs<Region<'_>>,
    q_heads: u32,
) -> Result<DevicePtr, AttentionError> {
    let missing = |found: &str, expected: &str, fix| AttentionError::Mismatch {
        field: "lse",
        found: found.to_owned(),
        expected: expected.to_owned(),
        fix,
    };
    match (planned.variant.spec().lse, &args.lse) {
        (Lse::Omitted, None) => Ok(DevicePtr::NULL),
        (Lse::Written, Some(lse)) => {
            let [tokens, heads] = lse.shape();
            same("lse.heads", heads, q_heads, "plan with the model's heads")?;
            at_least(
                "lse.tokens",
                u64::from(tokens),
                u64::from(planned.sequences),
                "pass a row for each sequence",
            )?;
            Ok(lse.memory().start())
        }
        (Lse::Omitted, Some(_)) => Err(missing(
            "present",
            "a kernel that does not write it",
            "use the kernel of a spec with Lse::Written",
        )),
        (Lse::Written, None) => Err(missing("absent", "a kernel that writes it", "pass lse")),
    }
}

fn table_addresses(
    planned: &Planned,
    plan: PlanAddresses,
    args: &DecodeArgs<Region<'_>>,
) -> Result<(DevicePtr, DevicePtr), AttentionError> {
    let wrong = |found: &str, expected: &str, fix| AttentionError::Mismatch {
        field: "table",
        found: found.to_owned(),
        expected: expected.to_owned(),
        fix,
    };
    let resident = match (planned.table, &args.table) {
        (TablePlace::Planned, None) => return Ok((plan.table, plan.indptr)),
        (TablePlace::Resident, Some(resident)) => resident,
        (TablePlace::Planned, Some(_)) => {
            return Err(wrong(
                "present",
                "TablePlace::Planned",
                "plan with TablePlace::Resident",
            ));
        }
        (TablePlace::Resident, None) => {
            return Err(wrong(
                "absent",
                "TablePlace::Resident",
                "pass the table's memory",
            ));
        }
    };
    let csr = planned.variant.spec().table == TableForm::Csr;
    at_least(
        "table.entries bytes",
        resident.entries().bytes(),
        planned.table_entries * 4,
        "pass the table that was planned",
    )?;
    let indptr = match (csr, resident.indptr()) {
        (false, None) => DevicePtr::NULL,
        (true, Some(indptr)) => {
            at_least(
                "table.indptr bytes",
                indptr.bytes(),
                (u64::from(planned.sequences) + 1) * 4,
                "pass the table that was planned",
            )?;
            indptr.start()
        }
        (true, None) => return Err(wrong("without indptr", "CSR", "pass indptr too")),
        (false, Some(_)) => return Err(wrong("with indptr", "dense", "pass the entries alone")),
    };
    for address in [resident.entries().start(), indptr] {
        if address.0 % 4 != 0 {
            return Err(wrong("misaligned", "4-byte alignment", "align the table"));
        }
    }
    Ok((resident.entries().start(), indptr))
}
