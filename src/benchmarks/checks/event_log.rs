//! I6: the log repeats every cell in its own words, with a clock.

use std::collections::BTreeMap;

use super::{CellRef, Finding, Input, Phase, Row, Severity};
use crate::benchmarks::log::{DAY_SECONDS, Event, Log, printed};
use crate::benchmarks::matrix::CellStatus;
use crate::benchmarks::matrix::build::execution_order;
use chrono::Timelike;

/// A speed is printed with one decimal.
const PRINTED: f64 = 0.05 + 1e-6;
const CLOCK_SLACK_SECONDS: f64 = 2.0;
const CELL_SLACK_SECONDS: f64 = 3.0;
/// The tool says what it aims at, to a token; room for other rounding.
const CONTEXT_MADE_TOKENS: f64 = 16.0;
const CONTEXT_MADE_SHARE: f64 = 0.005;
/// What a removed cell takes beside its window, at least.
const CELL_REST_SECONDS: f64 = 2.0;
/// The document is saved within moments of the last line.
const SAVE_SECONDS_MAX: i64 = 900;
const PAST_SHOWN: i64 = 2;

/// Context as printed, and concurrency.
type Place = (u64, u32);

/// A finished cell in the log.
struct Done {
    place: Place,
    order: usize,
    tps: Option<f64>,
    start: Option<i64>,
    opened: Option<i64>,
    timed_out: bool,
    end: i64,
}

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let document = input.document;
    if !input.era.must_have_window() {
        return Vec::new();
    }
    let rows: Vec<Row<'_>> = input.rows().collect();
    let measured = rows.iter().filter(|row| row.status.is_measured()).count();
    let log = Log::of(document);
    let (done, unfinished) = finished(&log);
    if measured > 0 && done.is_empty() {
        let message = "The event log does not show a single finished cell.";
        return vec![Finding::suspicious("log_missing", message)];
    }
    let mut findings = cells(input, &log, &rows, &done, &unfinished);
    findings.extend(prefill(input, &log));
    findings.extend(prefill_times(input, &log));
    findings.extend(gaps(input, &done));
    findings.extend(contexts_made(input, &log));
    findings.extend(clock(&log, document.metadata.timestamp.map(|t| t.time().num_seconds_from_midnight())));
    findings.extend(budget(input, &log));
    findings
}

/// The first cell that the log shows at all, as printed, when its start is lost; `None` for a complete log.
pub(super) fn first_logged(log: &Log) -> Option<Place> {
    if log.complete {
        return None;
    }
    let (done, _) = finished(log);
    done.first().map(|first| first.place)
}

/// A cell whose start, or at least whose open window, the log shows.
struct Begun {
    place: Place,
    start: Option<i64>,
    opened: Option<i64>,
    timed_out: bool,
}

/// The finished cells in the order of the log, without the hidden warm-up cell; and those that were started and have no end.
fn finished(log: &Log) -> (Vec<Done>, Vec<Place>) {
    let mut done = Vec::new();
    let mut unfinished = Vec::new();
    let mut current: Option<Begun> = None;
    // A log that starts inside the warm-up cell shows its end only.
    let first = log.events().find(|event| matches!(event, Event::WarmupStart | Event::WarmupDone));
    let mut warming = matches!(first, Some(Event::WarmupDone));
    for line in &log.lines {
        match line.event {
            Event::WarmupStart => warming = true,
            Event::WarmupDone => warming = false,
            _ if warming => {}
            Event::CellSkipped { .. } => current = None,
            Event::CellStart { context, concurrency } => {
                let begun = Begun { place: (context, concurrency), start: Some(line.seconds), opened: None, timed_out: false };
                unfinished.extend(current.replace(begun).map(|before| before.place));
            }
            Event::WindowOpens { context, concurrency, timed_out } => {
                let place = (context, concurrency);
                // Without a start of the same cell, that line is cut off.
                let start = current.take().filter(|begun| begun.place == place).and_then(|begun| begun.start);
                current = Some(Begun { place, start, opened: Some(line.seconds), timed_out });
            }
            Event::CellDone { context, concurrency, tps } => {
                let place = (context, concurrency);
                let begun = current.take().filter(|begun| begun.place == place);
                done.push(Done {
                    place,
                    order: done.len(),
                    tps,
                    start: begun.as_ref().and_then(|begun| begun.start),
                    opened: begun.as_ref().and_then(|begun| begun.opened),
                    timed_out: begun.is_some_and(|begun| begun.timed_out),
                    end: line.seconds,
                });
            }
            _ => {}
        }
    }
    unfinished.extend(current.map(|begun| begun.place));
    (done, unfinished)
}

/// Pairs lines and cells of the same coordinates from the end: only the start of a log can be lost.
fn cells(input: &Input<'_>, log: &Log, rows: &[Row<'_>], done: &[Done], unfinished: &[Place]) -> Vec<Finding> {
    let mut lines: BTreeMap<Place, Vec<&Done>> = BTreeMap::new();
    for line in done {
        lines.entry(line.place).or_default().push(line);
    }
    let mut findings = Vec::new();
    let mut unmatched: Vec<usize> = Vec::new();
    let mut first_matched = usize::MAX;
    for (index, row) in rows.iter().enumerate().rev() {
        match lines.get_mut(&(printed(row.at.context_tokens), row.at.concurrency)).and_then(Vec::pop) {
            Some(line) => {
                first_matched = index;
                findings.extend(line_of_cell(input, *row, line));
            }
            None => unmatched.push(index),
        }
    }
    let leftover = lines.into_values().flatten().map(|line| (line.order, line.place));
    for (_, (context_tokens, concurrency)) in leftover {
        // Extra measurements outside the matrix may log cells of their own.
        let severity = if input.document.has_extra_measurements { Severity::Suspicious } else { input.exact };
        let message = "The event log shows a finished cell that the results do not have.";
        let at = CellRef { phase: Phase::Decode, context_tokens, concurrency };
        findings.push(Finding::new("log_cell_not_in_results", severity, message).at(at));
    }
    let begun = |row: &Row<'_>| unfinished.contains(&(printed(row.at.context_tokens), row.at.concurrency));
    let lost = |row: &Row<'_>, index: usize| row.status.is_measured() && (log.complete || index > first_matched || begun(row));
    for row in unmatched.into_iter().filter_map(|index| rows.get(index).filter(|row| lost(row, index))) {
        let severity = if input.era.may_be_resumed() { Severity::Suspicious } else { input.exact };
        let message = "The event log has no line for a measured cell, though it has those before and after.";
        findings.push(Finding::new("cell_not_in_log", severity, message).at(row.at));
    }
    findings
}

fn line_of_cell(input: &Input<'_>, row: Row<'_>, line: &Done) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tps = row.raw.aggregate_tps.unwrap_or_default();
    let logged = line.tps.unwrap_or_default();
    if !row.status.is_measured() {
        findings.extend(line_of_failed_cell(input, row, logged));
        return findings;
    }
    if (logged - tps).abs() > PRINTED {
        let message = "The event log shows another total for the cell.";
        findings.push(Finding::new("log_total_mismatch", input.exact, message).at(row.at).values(format!("{tps:.1}"), logged));
    }
    findings.extend(times_of_cell(input, row, line));
    findings
}

/// A cell that did not run has no line with a total. From 0.6 on a run may be judged after its line was written, so that is only suspicious.
fn line_of_failed_cell(input: &Input<'_>, row: Row<'_>, logged: f64) -> Option<Finding> {
    if logged <= 0.0 {
        return None;
    }
    let judged_later = matches!(row.status, CellStatus::Loop | CellStatus::Error) && row.raw.aggregate_tps.is_some_and(|tps| tps < 0.0);
    let severity = if judged_later { Severity::Suspicious } else { input.exact };
    let message = "The event log shows a total for a cell that the results call failed or not run.";
    Some(Finding::new("log_contradicts_status", severity, message).at(row.at).values(row.status.as_str(), logged))
}

fn times_of_cell(input: &Input<'_>, row: Row<'_>, line: &Done) -> Vec<Finding> {
    let raw = row.raw;
    #[expect(clippy::cast_precision_loss, reason = "seconds of a few days")]
    let between = |from: Option<i64>, to: Option<i64>| Some((to? - from?) as f64);
    // The line is written when the streams have joined, so the window's time is what the cell took after its warm-up.
    let joined = raw.wall_time.zip(raw.warmup_duration).map(|(wall, warmup)| wall - warmup);
    let window = if row.is_window() { joined.or(input.document.metadata.duration_per_test) } else { raw.measurement_seconds };
    let mut pairs = vec![("the window", between(line.opened, Some(line.end)), window, CLOCK_SLACK_SECONDS, input.exact)];
    if row.is_window() {
        pairs.push(("the warm-up", between(line.start, line.opened), raw.warmup_duration, CLOCK_SLACK_SECONDS, Severity::Suspicious));
        pairs.push(("the cell", between(line.start, Some(line.end)), raw.wall_time, CELL_SLACK_SECONDS, Severity::Suspicious));
    }
    let mut findings = Vec::new();
    for (what, logged, stated, slack, severity) in pairs {
        let (Some(logged), Some(stated)) = (logged, stated) else { continue };
        if (logged - stated).abs() > slack {
            let message = format!("By the event log's clock {what} took another time.");
            findings.push(Finding::new("log_time_mismatch", severity, message).at(row.at).values(stated, logged));
        }
    }
    // A timed-out warm-up limits the cell, whatever flags it has left.
    let hidden = line.timed_out && row.status == CellStatus::Valid;
    if row.is_window() && line.opened.is_some() && (hidden || raw.warmup_timed_out.is_some_and(|flag| flag != line.timed_out)) {
        let message = "The event log and the flags disagree on whether the warm-up timed out.";
        findings.push(Finding::suspicious("log_time_mismatch", message).at(row.at));
    }
    findings
}

/// The last line of a prefill repeats its rate as a whole number.
fn prefill(input: &Input<'_>, log: &Log) -> Vec<Finding> {
    let mut lines: BTreeMap<u64, f64> = BTreeMap::new();
    for event in log.events() {
        if let Event::PrefillDone { context, tps } = event {
            lines.insert(*context, *tps);
        }
    }
    let mut findings = Vec::new();
    let alike = |context: u64| input.document.prefill.iter().filter(|row| printed(row.context_tokens) == printed(context)).count() > 1;
    for row in input.document.prefill.iter().filter(|row| row.samples != Some(0.0)) {
        let at = CellRef { phase: Phase::Prefill, context_tokens: row.context_tokens, concurrency: 1 };
        let scout = matches!(row.method.as_deref(), Some("integrated_scout" | "scout_only"));
        if alike(row.context_tokens) {
            lines.remove(&printed(row.context_tokens));
            continue;
        }
        match (lines.remove(&printed(row.context_tokens)), row.tok_per_sec) {
            (Some(logged), Some(rate)) if (logged - rate).abs() > 0.5 => {
                let message = "The event log shows another prefill rate.";
                findings.push(Finding::new("log_prefill_mismatch", input.exact, message).at(at).values(rate, logged));
            }
            (None, Some(_)) if scout && log.complete => {
                let message = "The event log has no line for a prefill row.";
                findings.push(Finding::suspicious("log_prefill_mismatch", message).at(at));
            }
            _ => {}
        }
    }
    for (context_tokens, rate) in lines {
        let at = CellRef { phase: Phase::Prefill, context_tokens, concurrency: 1 };
        let message = "The event log shows a prefill that the document does not have.";
        findings.push(Finding::new("log_prefill_mismatch", input.exact, message).at(at).values("a row", rate));
    }
    findings
}

/// A scout's lines are written when it is sent and when its first token comes.
fn prefill_times(input: &Input<'_>, log: &Log) -> Vec<Finding> {
    let mut started: BTreeMap<u64, i64> = BTreeMap::new();
    let mut took: BTreeMap<u64, i64> = BTreeMap::new();
    for line in &log.lines {
        match line.event {
            Event::PrefillStart { context } => drop(started.insert(context, line.seconds)),
            Event::PrefillDone { context, .. } => {
                took.extend(started.remove(&context).map(|start| (context, line.seconds - start)));
            }
            _ => {}
        }
    }
    let mut findings = Vec::new();
    let alike = |context: u64| input.document.prefill.iter().filter(|row| printed(row.context_tokens) == printed(context)).count() > 1;
    for row in &input.document.prefill {
        let scout = matches!(row.method.as_deref(), Some("integrated_scout" | "scout_only")) && !alike(row.context_tokens);
        let (Some(logged), Some(stated)) = (took.get(&printed(row.context_tokens)).filter(|_| scout), row.ttft_seconds) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "seconds of a few days")]
        let logged = *logged as f64;
        if (logged - stated).abs() > CLOCK_SLACK_SECONDS {
            let at = CellRef { phase: Phase::Prefill, context_tokens: row.context_tokens, concurrency: 1 };
            let message = "By the event log's clock the prefill took another time.";
            findings.push(Finding::suspicious("log_time_mismatch", message).at(at).values(stated, logged));
        }
    }
    findings
}

/// Before it starts the tool says how long a prompt it made for each context; a renamed context has another length.
fn contexts_made(input: &Input<'_>, log: &Log) -> Vec<Finding> {
    #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^52")]
    let close =
        |context: u64, tokens: u64| (context as f64 - tokens as f64).abs() <= CONTEXT_MADE_TOKENS + CONTEXT_MADE_SHARE * context as f64;
    let mut made: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in log.events() {
        if let Event::ContextMade { context, tokens } = event {
            made.entry(*context).or_default().push(*tokens);
        }
    }
    let cells = input.document.cells.iter().map(|cell| cell.context_tokens);
    let contexts: std::collections::BTreeSet<u64> = cells.chain(input.document.prefill.iter().map(|row| row.context_tokens)).collect();
    let mut findings = Vec::new();
    for context_tokens in contexts.into_iter().filter(|context| *context > 0) {
        let Some(tokens) = made.get(&printed(context_tokens)) else { continue };
        if !tokens.iter().any(|tokens| close(context_tokens, *tokens)) {
            let message = "The event log shows that the prompts were made for another context.";
            let at = CellRef { phase: Phase::Decode, context_tokens, concurrency: 1 };
            findings.push(Finding::suspicious("log_context_differs", message).at(at).values(context_tokens, format!("{tokens:?}")));
        }
    }
    findings
}

/// One cell starts when the one before it has drained. A hole as long as a cell, where the order has cells that are not there, held them.
fn gaps(input: &Input<'_>, done: &[Done]) -> Vec<Finding> {
    let Some(window) = input.document.metadata.duration_per_test.filter(|_| input.document.burst_cells.is_empty()) else {
        return Vec::new();
    };
    let order = execution_order(input.document);
    let turn = |place: Place| order.iter().position(|(context, concurrency)| (printed(*context), *concurrency) == place);
    // A failed cell took its time, too.
    let none = |status: CellStatus| matches!(status, CellStatus::OverCapacity | CellStatus::NotRun | CellStatus::Skipped);
    let absent = |context: u64, concurrency: u32| input.matrix.cell(context, concurrency).is_some_and(|cell| none(cell.status));
    let mut findings = Vec::new();
    for pair in done.windows(2) {
        let [before, after] = pair else { continue };
        let (Some(start), Some(from), Some(to)) = (after.start, turn(before.place), turn(after.place)) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "seconds of a few days")]
        let idle = (start - before.end) as f64;
        let between = order.get(from + 1..to).unwrap_or_default().iter().filter(|(context, concurrency)| absent(*context, *concurrency));
        let hidden: Vec<CellRef> = between
            .map(|(context, concurrency)| CellRef { phase: Phase::Decode, context_tokens: *context, concurrency: *concurrency })
            .collect();
        if idle >= window + CELL_REST_SECONDS && !hidden.is_empty() {
            let message = "The event log has a hole long enough for a cell, where the order has cells that the document does not.";
            let finding = Finding::suspicious("log_gap", message).values(format!("less than {window}"), idle);
            findings.push(hidden.into_iter().fold(finding, Finding::at));
        }
    }
    findings
}

/// The clock never runs backwards, and the document was saved soon after its last line. Its zone is unknown, its seconds are not.
fn clock(log: &Log, saved: Option<u32>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if log.backwards > PAST_SHOWN {
        let message = "The event log's clock runs backwards.";
        findings.push(Finding::suspicious("log_clock", message).values("0", log.backwards));
    }
    if let (Some(last), Some(saved)) = (log.lines.last(), saved) {
        let gap = (i64::from(saved) - last.seconds).rem_euclid(DAY_SECONDS);
        if gap > SAVE_SECONDS_MAX && gap < DAY_SECONDS - PAST_SHOWN {
            let message = "The document was not saved when its event log ends.";
            findings.push(Finding::suspicious("log_clock", message).values(format!("at most {SAVE_SECONDS_MAX} s"), gap));
        }
    }
    if log.unreadable > 0 {
        findings.push(Finding::suspicious("log_clock", "Lines of the event log have no clock.").values("0", log.unreadable));
    }
    findings
}

fn budget(input: &Input<'_>, log: &Log) -> Option<Finding> {
    let logged = log.events().find_map(|event| if let Event::KvBudget(tokens) = event { Some(*tokens) } else { None })?;
    let stated = input.document.metadata.max_total_tokens?;
    (logged != stated).then(|| {
        let message = "The event log shows another KV cache budget.";
        Finding::suspicious("kv_budget_mismatch", message).values(stated, logged)
    })
}
