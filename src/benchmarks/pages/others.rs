//! The runs to compare a run with: of the same model and quantization, then of the same hardware.

use askama::Template;

use super::{
    super::{
        matrix::comparison_cell,
        model::{RelatedRun, RunView, RunWithRelated},
        quantization::Quantization,
    },
    marks::LevelMark,
};
use crate::{
    catalog::Catalog,
    web::html::{Messages, Reader},
};

/// The section "Other runs".
#[derive(Template)]
#[template(path = "parts/others.html")]
pub struct OtherRuns {
    t: Messages,
    /// The cell that the runs are compared by: `16K × 8`.
    cell: Option<String>,
    this: OtherRun,
    of_model: Vec<OtherRun>,
    of_hardware: Vec<OtherRun>,
}

struct OtherRun {
    name: String,
    /// Of the row's run; empty for the one of the page.
    path: String,
    engine: String,
    single: String,
    at_cell: String,
    /// Its cell, where that is another one.
    cell: String,
    prefill: String,
    level: LevelMark,
}

impl OtherRuns {
    pub fn of(reader: &Reader, shown: &RunWithRelated) -> Self {
        let t = reader.t;
        let runs_path = reader.path_of("runs");
        let (of_model, of_hardware): (Vec<&RelatedRun>, Vec<&RelatedRun>) = shown.related.iter().partition(|run| run.is_of_model);
        let cell = comparison_cell(&shown.run.decode);
        Self {
            t,
            cell: cell.map(|cell| cell_name(t, cell.context_tokens, cell.concurrency)),
            this: this(t, &shown.run),
            of_model: of_model.into_iter().map(|run| other(t, run, &runs_path, hardware_name(run))).collect(),
            of_hardware: of_hardware.into_iter().map(|run| other(t, run, &runs_path, model_name(run))).collect(),
        }
    }
}

/// `16K × 8`.
pub fn cell_name(t: Messages, context_tokens: u64, concurrency: u32) -> String {
    format!("{} × {}", t.context(context_tokens), t.count(Some(concurrency.into())))
}

fn this(t: Messages, run: &RunView) -> OtherRun {
    let single = run.decode.iter().find(|cell| cell.context_tokens == 0 && cell.concurrency == 1 && cell.status.is_measured());
    let prefill = run.prefill.iter().filter_map(|row| row.tokens_per_second).fold(f64::NEG_INFINITY, f64::max);
    OtherRun {
        name: counted(run.hardware.gpu.as_deref().unwrap_or("—"), run.hardware.gpu_count),
        path: String::new(),
        engine: run.engine.name.clone().unwrap_or_else(|| t.count(None)),
        single: t.figure(single.and_then(|cell| cell.total_tokens_per_second), 1),
        at_cell: t.figure(comparison_cell(&run.decode).and_then(|cell| cell.total_tokens_per_second), 1),
        cell: String::new(),
        prefill: t.figure(Some(prefill), 0),
        level: LevelMark::of(t, &run.evidence_level),
    }
}

fn other(t: Messages, run: &RelatedRun, runs_path: &str, name: String) -> OtherRun {
    OtherRun {
        name,
        path: format!("{runs_path}/{}", run.id),
        engine: run.engine_name.clone().unwrap_or_else(|| t.count(None)),
        single: t.figure(run.decode_single_tokens_per_second, 1),
        at_cell: t.figure(run.cell.map(|cell| cell.total_tokens_per_second), 1),
        cell: run.cell.map(|cell| cell_name(t, cell.context_tokens, cell.concurrency)).unwrap_or_default(),
        prefill: t.figure(run.prefill_peak_tokens_per_second, 0),
        level: LevelMark::of(t, &run.evidence_level),
    }
}

fn hardware_name(run: &RelatedRun) -> String {
    let slug = run.hardware_slug.as_deref().unwrap_or("—");
    let name = Catalog::builtin().hardware(slug).map_or(slug, |row| &row.name);
    counted(name, run.gpu_count)
}

fn counted(name: &str, count: Option<i32>) -> String {
    match count {
        Some(count) if count > 1 => format!("{name} × {count}"),
        _ => name.to_owned(),
    }
}

fn model_name(run: &RelatedRun) -> String {
    let name = Catalog::builtin().model(&run.model).map_or(run.model.as_str(), |row| &row.name);
    match &run.quantization {
        Some(quantization) => format!("{name} · {}", Quantization::parse(quantization).name()),
        None => name.to_owned(),
    }
}
