//! The answer of `--dry-run`: what would be tried, and why the rest would not.

use crate::cli::answer::Answer;
use crate::cli::page::{Column, Page, counted};
use pagesmith_autotune::{Group, Request, SpecPlan};
use pagesmith_spec::{Exclusion, Gpu, Tuning, Variant};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

pub(crate) struct Plan {
    pub(crate) request: Request,
    pub(crate) specs: Vec<SpecPlan>,
}

impl Answer for Plan {
    fn json(&self) -> Value {
        let specs: Vec<Value> = self
            .specs
            .iter()
            .map(|plan| {
                json!({
                    "spec": plan.spec,
                    "slug": plan.spec.slug(),
                    "legal": plan.legal,
                    "chosen": plan.variants.iter().map(|variant| json!({
                        "id": variant.id(),
                        "tuning": variant.tuning(),
                    })).collect::<Vec<_>>(),
                    "excluded": plan.excluded.iter().map(|(tuning, exclusion)| json!({
                        "tuning": tuning,
                        "exclusion": exclusion,
                        "reason": exclusion.to_string(),
                    })).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "model": self.request.shape.name(),
            "gpu": self.request.gpu.name,
            "effort": self.request.effort.name(),
            "rule": self.request.effort.rule(),
            "specs": specs,
        })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let Request {
            shape, gpu, effort, ..
        } = &self.request;
        page.line(format_args!(
            "{} on {}: {} query heads, {} KV heads, head dim {}",
            shape.name(),
            gpu.name,
            shape.query_heads(),
            shape.kv_heads(),
            shape.head_dim()
        ))?;
        page.line(format_args!("{effort}: {}", effort.rule()))?;
        for plan in &self.specs {
            page.blank()?;
            page.heading(&plan.spec)?;
            page.line(format_args!(
                "{} of {} would be tried; {} excluded",
                plan.variants.len(),
                counted(plan.legal, "legal tuning"),
                plan.excluded.len()
            ))?;
            page.blank()?;
            page.table(
                &[Column::id("variant"), Column::text("tuning")],
                plan.variants
                    .iter()
                    .map(|variant| vec![variant.id(), variant.tuning().to_string()])
                    .collect(),
            )?;
            page.blank()?;
            page.table(
                &[Column::number("excluded"), Column::text("for example")],
                reasons(&plan.excluded),
            )?;
        }
        page.blank()?;
        page.line("nothing was compiled or written; --json lists every exclusion")
    }
}

/// The exclusions by kind, the most frequent first, each with one in full.
fn reasons(excluded: &[(Tuning, Exclusion)]) -> Vec<Vec<String>> {
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (tuning, exclusion) in excluded {
        let example = || (0, format!("{tuning}: {exclusion}"));
        kinds.entry(kind(exclusion)).or_insert_with(example).0 += 1;
    }
    let mut rows: Vec<(usize, String)> = kinds.into_values().collect();
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    rows.into_iter()
        .map(|(count, example)| vec![count.to_string(), example])
        .collect()
}

/// The name that JSON gives an exclusion.
fn kind(exclusion: &Exclusion) -> String {
    match serde_json::to_value(exclusion) {
        Ok(Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        _ => exclusion.to_string(),
    }
}

/// The variants of a matrix.
pub(crate) struct MatrixPlan {
    pub(crate) gpu: Gpu,
    pub(crate) groups: Vec<Group>,
}

impl MatrixPlan {
    fn variants(&self) -> impl Iterator<Item = &Variant> {
        self.groups.iter().flat_map(|group| &group.variants)
    }
}

impl Answer for MatrixPlan {
    fn json(&self) -> Value {
        let chosen: Vec<Value> = self
            .variants()
            .map(|variant| json!({ "id": variant.id(), "tuning": variant.tuning() }))
            .collect();
        json!({ "gpu": self.gpu.name, "chosen": chosen })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.heading(format_args!(
            "{} for {}",
            counted(self.variants().count(), "variant"),
            self.gpu.name
        ))?;
        page.table(
            &[Column::id("variant"), Column::text("tuning")],
            self.variants()
                .map(|variant| vec![variant.id(), variant.tuning().to_string()])
                .collect(),
        )?;
        page.blank()?;
        page.line("nothing was compiled or written")
    }
}
