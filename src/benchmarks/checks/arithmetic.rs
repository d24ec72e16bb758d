//! I1, I2: the headline is tokens ÷ seconds, its copies equal it, and the fields that prove it are there.

use super::{Finding, Input, Phase, Row, Severity, near};
use crate::benchmarks::document::SummaryEntry;

/// Seconds are rounded to six decimals.
const SECONDS_ROUNDING: f64 = 1e-6;
const TOTAL_TOLERANCE: f64 = 1e-6;
const COPY_TOLERANCE: f64 = 1e-12;
/// The oldest tool read the clock twice.
const OLD_CLOCK_TOLERANCE: f64 = 1e-3;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in input.measured() {
        findings.extend(total(input, row));
        findings.extend(per_request_average(input, row));
        findings.extend(total_tokens(row));
        findings.extend(source(row));
        findings.extend(complete(input, row));
        findings.extend(gauge(input, row));
    }
    findings.extend(summary(input, Phase::Decode));
    findings.extend(summary(input, Phase::Burst));
    findings
}

fn total(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (tps, seconds, tokens) = (row.raw.aggregate_tps?, row.raw.measurement_seconds?, row.raw.client_output_tokens?);
    // The server's own counter replaced the client's count: the client's tokens need not explain it.
    if row.raw.aggregate_source.as_deref() == Some("prometheus_fallback") {
        return None;
    }
    let tolerance = TOTAL_TOLERANCE + if seconds > 0.0 { SECONDS_ROUNDING / seconds } else { 0.0 };
    if seconds > 0.0 && near(tps * seconds, tokens, tolerance) {
        return None;
    }
    let message = "The total is not the output tokens divided by the measured seconds.";
    let expected = if seconds > 0.0 { tokens / seconds } else { 0.0 };
    Some(Finding::new("total_mismatch", input.exact, message).at(row.at).values(expected, tps))
}

fn per_request_average(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (tps, average) = (row.raw.aggregate_tps?, row.raw.per_request_avg_tps?);
    let expected = tps / f64::from(row.at.concurrency.max(1));
    // The oldest tool averaged something else here; its documents have no window either.
    if !input.era.must_have_window() || near(expected, average, COPY_TOLERANCE) {
        return None;
    }
    let message = "The average per request is not the total divided by the concurrency.";
    Some(Finding::new("per_request_average_mismatch", input.exact, message).at(row.at).values(expected, average))
}

/// The oldest documents take their total from the server's gauge and keep the gauge beside it.
fn gauge(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    if input.era.must_have_window() {
        return None;
    }
    let (tps, gauge) = (row.raw.aggregate_tps?, row.raw.server_gen_throughput?);
    let requests = f64::from(row.at.concurrency.max(1));
    let client = row.raw.total_tokens.zip(row.raw.wall_time).filter(|(_, wall)| *wall > 0.0).map(|(tokens, wall)| tokens / wall / requests);
    let average = row.raw.per_request_avg_tps?;
    let average_fits =
        near(average, tps / requests, COPY_TOLERANCE) || client.is_some_and(|client| near(average, client, OLD_CLOCK_TOLERANCE));
    if (gauge <= 0.0 || near(tps, gauge, COPY_TOLERANCE)) && average_fits {
        return None;
    }
    let message = "The total is not the server's gauge that it was taken from.";
    Some(Finding::suspicious("total_mismatch", message).at(row.at).values(gauge, tps))
}

fn total_tokens(row: Row<'_>) -> Option<Finding> {
    let (total, client) = (row.raw.total_tokens?, row.raw.client_output_tokens?);
    if !row.counted_by_usage() || total == client {
        return None;
    }
    let message = "The cell's two counts of output tokens differ.";
    Some(Finding::suspicious("token_counts_differ", message).at(row.at).values(client, total))
}

/// Where the headline comes from decides how far it can be trusted.
fn source(row: Row<'_>) -> Option<Finding> {
    match row.raw.aggregate_source.as_deref()? {
        "openai_continuous_usage" | "openai_completed_usage" => None,
        "openai_stream_chunks_fallback" => {
            let message = "The engine reported no usage while streaming; chunks were counted as tokens, too few under speculation.";
            Some(Finding::note("chunks_counted", message).at(row.at))
        }
        "prometheus_fallback" => {
            let message = "The speed comes from the server's own counter, not from what the client received.";
            Some(Finding::suspicious("server_counter_only", message).at(row.at))
        }
        _ => Some(Finding::suspicious("unknown_token_source", "The source of the token count is none of the tool's.").at(row.at)),
    }
}

/// A measured cell of a checkable version has every field that proves it.
fn complete(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let raw = row.raw;
    let window = raw.measurement_seconds.is_some() && raw.client_output_tokens.is_some() && raw.aggregate_source.is_some();
    // Where only the server's counter saw tokens, no stream has a sample.
    let counted = raw.aggregate_source.as_deref() != Some("prometheus_fallback");
    let samples = !counted || raw.samples.as_ref().is_some_and(|samples| !samples.is_empty());
    let speeds = raw.per_request_avg_tps.is_some() && raw.output_tps_per_user.p50.is_some() && raw.ttft.p50.is_some();
    let everything = raw.measurement_wall_seconds.is_some()
        && raw.wall_time.is_some()
        && raw.capacity_limited.is_some()
        && raw.request_count.is_some()
        && raw.completed_request_count.is_some()
        && raw.effective_concurrency.is_some()
        && raw.avg_running_reqs.is_some();
    let missing = input.era.must_have_window() && !(window && samples && speeds) || input.era.must_have_everything() && !everything;
    missing.then(|| {
        let message = "A measured cell lacks fields that this version always writes; its numbers cannot be recomputed.";
        Finding::new("cell_incomplete", input.exact, message).at(row.at)
    })
}

/// The summary table repeats the cells' totals exactly: null for failed ones, nothing for those that were dropped.
fn summary(input: &Input<'_>, phase: Phase) -> Vec<Finding> {
    let (entries, name) = match phase {
        Phase::Burst => (&input.document.burst_summary, "burst summary table"),
        _ => (&input.document.summary, "summary table"),
    };
    let rows: Vec<Row<'_>> = input.rows().filter(|row| row.at.phase == phase).collect();
    let Some(entries) = entries else {
        let missing = !rows.is_empty() && phase == Phase::Decode;
        let finding = || Finding::new("summary_mismatch", Severity::Suspicious, format!("The {name} is missing."));
        return missing.then(finding).into_iter().collect();
    };
    let mut findings = Vec::new();
    let mut report = |row: Option<Row<'_>>, expected: String, observed: String| {
        let finding =
            Finding::new("summary_mismatch", input.exact, format!("The {name} does not repeat the cells.")).values(expected, observed);
        findings.push(row.into_iter().fold(finding, |finding, row| finding.at(row.at)));
    };
    let same =
        |entry: &SummaryEntry, row: &Row<'_>| entry.context_tokens == row.at.context_tokens && entry.concurrency == row.raw.concurrency;
    for row in &rows {
        let tps = row.raw.aggregate_tps.unwrap_or_default();
        match entries.iter().find(|entry| same(entry, row)) {
            Some(SummaryEntry { value: Some(value), .. }) if near(*value, tps, COPY_TOLERANCE) => {}
            Some(SummaryEntry { value: None, .. }) | None if tps <= 0.0 => {}
            Some(SummaryEntry { value: Some(value), .. }) => report(Some(*row), tps.to_string(), value.to_string()),
            Some(SummaryEntry { value: None, .. }) => report(Some(*row), tps.to_string(), "null".to_owned()),
            None => report(Some(*row), tps.to_string(), "no entry".to_owned()),
        }
    }
    let foreign = |entry: &&SummaryEntry| entry.value.is_some_and(|v| v > 0.0) && !rows.iter().any(|row| same(entry, row));
    for entry in entries.iter().filter(foreign) {
        let place = format!("context {} × {}", entry.context_tokens, entry.concurrency);
        report(None, format!("no entry for {place}, which is no cell"), entry.value.unwrap_or_default().to_string());
    }
    findings
}
