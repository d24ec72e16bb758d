//! I21, I23 and the shape of the matrix: which cells there are, which should be, and what explains the rest.

use std::collections::BTreeSet;

use super::event_log;
use super::{CellRef, Finding, Input, Phase, Severity};
use crate::benchmarks::log;
use crate::benchmarks::matrix::build::execution_order;
use crate::benchmarks::matrix::{CellStatus, NotRunReason, needed_tokens};

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = coordinates(input);
    findings.extend(absences(input));
    findings.extend(capacity(input));
    findings.extend(model_length(input));
    findings.extend(arguments(input));
    findings
}

fn decode_at(context_tokens: u64, concurrency: u32) -> CellRef {
    CellRef { phase: Phase::Decode, context_tokens, concurrency }
}

/// Every cell once, and only where the run's levels and contexts have one.
fn coordinates(input: &Input<'_>) -> Vec<Finding> {
    let metadata = &input.document.metadata;
    let levels: BTreeSet<u64> = metadata.concurrency_levels.iter().copied().collect();
    let contexts: BTreeSet<u64> = metadata.context_lengths.iter().copied().collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for row in input.rows() {
        if !seen.insert(row.at) {
            findings.push(Finding::new("cell_doubled", input.exact, "A cell stands in the results twice.").at(row.at));
        }
        let listed = contexts.contains(&row.at.context_tokens) && levels.contains(&row.raw.concurrency);
        let nothing_listed = levels.is_empty() && contexts.is_empty();
        if !listed && !nothing_listed {
            let message = "A cell lies outside the run's own contexts and concurrency levels.";
            findings.push(Finding::suspicious("cell_not_declared", message).at(row.at));
        }
    }
    if levels.len() != metadata.concurrency_levels.len() || contexts.len() != metadata.context_lengths.len() {
        findings.push(Finding::suspicious("cell_doubled", "A concurrency level or context is listed twice."));
    }
    findings
}

/// Cells that are not there: explained by a limit, by an end before their turn, or by nothing.
fn absences(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let droppable = dropped_levels(input);
    let untold = untold_cells(input);
    for cell in &input.matrix.decode {
        let at = decode_at(cell.context_tokens, cell.concurrency);
        match cell.reason {
            Some(NotRunReason::Unexplained) if droppable.contains(&cell.concurrency) => {
                let message = "Whole concurrency levels are missing: the engine may have had too few slots, but nothing says so.";
                findings.push(Finding::suspicious("levels_dropped", message).at(at));
            }
            Some(NotRunReason::Unexplained) => {
                // A cell skipped by hand leaves a line only; that line may be lost with the start of the log.
                let severity = if untold.contains(&(cell.context_tokens, cell.concurrency)) { Severity::Suspicious } else { input.exact };
                let message = "A cell is missing, and neither the KV cache nor any limit of the engine explains it.";
                findings.push(Finding::new("cell_missing", severity, message).at(at));
            }
            Some(NotRunReason::Interrupted) if !input.document.cells.is_empty() => {
                let message = "The run ended before these cells had their turn.";
                findings.push(Finding::suspicious("run_interrupted", message).at(at));
            }
            Some(NotRunReason::MaxRunning) if !knows_slots(input) => {
                let message = "Levels are left out for the engine's slots, which the tool cannot know of this engine.";
                findings.push(Finding::suspicious("levels_dropped", message).at(at));
            }
            Some(NotRunReason::Planned) if !plan_is_explained(input, cell.context_tokens, cell.concurrency) => {
                let message = "The wrapper's plan left cells out that fit every limit of the engine.";
                findings.push(Finding::suspicious("plan_skip_unexplained", message).at(at));
            }
            Some(NotRunReason::MaxModelLen | NotRunReason::MaxRunning | NotRunReason::Planned) => {
                findings.push(Finding::note("cells_not_run", "Limits of the engine or the run's plan left cells out.").at(at));
            }
            _ => {}
        }
        match cell.status {
            CellStatus::Error => findings.push(Finding::note("cells_failed", "Cells ended in an error and have no speed.").at(at)),
            CellStatus::Loop => findings.push(Finding::note("cells_looped", "The model repeated itself; the cells have no speed.").at(at)),
            CellStatus::Skipped if cell.reason.is_none() => {
                findings.push(Finding::suspicious("cells_skipped", "Cells were skipped by hand.").at(at));
            }
            _ => {}
        }
    }
    findings
}

/// The stock tool reads the number of slots from SGLang only; wrappers and other clients ask the engine.
fn knows_slots(input: &Input<'_>) -> bool {
    let metadata = &input.document.metadata;
    metadata.engine.as_deref() != Some("vllm") || metadata.client.is_some() || input.document.wrapper.is_some()
}

/// A wrapper leaves a cell out in advance when it exceeds the engine's cache; its other limits are looked at before (evidence.md 1.6).
fn plan_is_explained(input: &Input<'_>, context: u64, concurrency: u32) -> bool {
    let kv_tokens = input.document.wrapper.as_ref().and_then(|wrapper| wrapper.kv_tokens).filter(|tokens| *tokens > 0);
    let max_tokens = input.document.metadata.max_tokens.unwrap_or_default();
    kv_tokens.is_some_and(|tokens| needed_tokens(context, concurrency, max_tokens) > tokens)
}

/// Cells whose turn came before the log's first line.
fn untold_cells(input: &Input<'_>) -> BTreeSet<(u64, u32)> {
    let Some(first) = event_log::first_logged(&log::Log::of(input.document)) else { return BTreeSet::new() };
    let order = execution_order(input.document);
    let turn = order.iter().position(|(context, concurrency)| (log::printed(*context), *concurrency) == first);
    order.into_iter().take(turn.unwrap_or_default()).collect()
}

/// The highest levels, when an engine that drops levels beyond its slots has none of their cells (evidence.md 1.6).
fn dropped_levels(input: &Input<'_>) -> BTreeSet<u32> {
    if input.document.metadata.engine.as_deref() != Some("sglang") {
        return BTreeSet::new();
    }
    let present: BTreeSet<u64> = input.document.cells.iter().map(|cell| cell.concurrency).collect();
    let highest = present.last().copied().unwrap_or_default();
    let levels = input.document.metadata.concurrency_levels.iter().filter(|level| **level > highest && !present.contains(level));
    levels.filter_map(|level| u32::try_from(*level).ok()).collect()
}

/// One capacity explains every cell, and it is the one that the tool was skipping by.
fn capacity(input: &Input<'_>) -> Vec<Finding> {
    let metadata = &input.document.metadata;
    let Some(max_tokens) = metadata.max_tokens else { return Vec::new() };
    let mut findings = Vec::new();
    let bounds = input.matrix.kv_capacity;
    if let (Some(at_least), Some(below)) = (bounds.at_least_tokens, bounds.below_tokens)
        && at_least >= below
    {
        let message = "No one KV capacity explains which cells ran and which did not.";
        findings.push(Finding::new("kv_capacity_inconsistent", input.exact, message).values(format!("above {at_least}"), below));
    }
    for row in input.rows().filter(|row| row.at.phase == Phase::Decode) {
        let need = needed_tokens(row.at.context_tokens, row.at.concurrency, max_tokens);
        match metadata.max_total_tokens {
            Some(budget) if budget > 0 && row.status.is_measured() && need > budget => {
                // Engines with a known number of slots run context 0 whatever the rule says.
                let free = row.at.context_tokens == 0;
                let sglang = metadata.engine.as_deref() == Some("sglang");
                let severity = if free && sglang {
                    Severity::Note
                } else if free {
                    Severity::Suspicious
                } else {
                    input.exact
                };
                let message = "A cell ran that the tool would have skipped as over capacity.";
                findings.push(Finding::new("ran_over_capacity", severity, message).at(row.at).values(format!("at most {budget}"), need));
            }
            Some(budget) if budget > 0 && row.status == CellStatus::OverCapacity && need <= budget => {
                let message = "A cell is called over capacity, but it would have fitted.";
                let finding = Finding::new("over_capacity_unexplained", input.exact, message);
                findings.push(finding.at(row.at).values(format!("above {budget}"), need));
            }
            None | Some(0) if row.status == CellStatus::OverCapacity => {
                let message = "A cell is called over capacity, but the document names no capacity.";
                findings.push(Finding::suspicious("over_capacity_unexplained", message).at(row.at));
            }
            _ => {}
        }
    }
    findings
}

/// A measured cell fits into the engine's longest context.
fn model_length(input: &Input<'_>) -> Vec<Finding> {
    let (Some(length), Some(max_tokens)) = (log::max_model_len(input.document), input.document.metadata.max_tokens) else {
        return Vec::new();
    };
    let long = input.measured().filter(|row| row.at.context_tokens.saturating_add(max_tokens) > length);
    let finding = |row: super::Row<'_>| {
        let message = "A cell ran that does not fit into the engine's longest context.";
        Finding::suspicious("longer_than_model", message).at(row.at).values(format!("at most {length}"), row.at.context_tokens + max_tokens)
    };
    long.map(finding).collect()
}

/// What the tool was started with is what its metadata says.
fn arguments(input: &Input<'_>) -> Vec<Finding> {
    let (args, metadata) = (&input.document.args, &input.document.metadata);
    let set = |list: &[u64]| list.iter().copied().collect::<BTreeSet<u64>>();
    let lists = |asked: &Option<Vec<u64>>, listed: &[u64]| asked.as_ref().is_some_and(|asked| set(asked) != set(listed));
    let numbers = |asked: Option<u64>, stated: Option<u64>| asked.is_some() && stated.is_some() && asked != stated;
    let mut wrong = Vec::new();
    if lists(&args.concurrency, &metadata.concurrency_levels) {
        wrong.push("concurrency levels");
    }
    if lists(&args.contexts, &metadata.context_lengths) {
        wrong.push("contexts");
    }
    if numbers(args.max_tokens, metadata.max_tokens) {
        wrong.push("maximum output");
    }
    if numbers(args.request_count, metadata.request_count) {
        wrong.push("request count");
    }
    if args.duration.is_some() && metadata.duration_per_test.is_some() && args.duration != metadata.duration_per_test {
        wrong.push("time per measurement");
    }
    if args.kv_budget.is_some_and(|budget| budget > 0 && Some(budget) != metadata.max_total_tokens) {
        wrong.push("KV budget");
    }
    let finding = |what| {
        let message = format!("The tool was started with other {what} than the document states.");
        Finding::suspicious("arguments_differ", message)
    };
    let mut findings: Vec<Finding> = wrong.into_iter().map(finding).collect();
    if !args.present && input.era.must_have_everything() && !input.document.cells.is_empty() {
        findings.push(Finding::note("arguments_missing", "The document does not say what the tool was started with."));
    }
    findings
}
