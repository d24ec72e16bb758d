//! I5, I22: the scheduler's gauges agree with each other and with the flags the tool derives from them.

use super::{Finding, Input, Row, Severity};
use crate::benchmarks::matrix::CellStatus;

/// Gauges are means rounded to one decimal.
const GAUGE_ROUNDING: f64 = 0.05;
const LIMITED_BELOW: f64 = 0.95;
const UNDERFILLED_BELOW: f64 = 0.98;
/// First version that waits for the scheduler to drain between cells.
const DRAINED_SINCE: (u32, u32, u32) = (0, 4, 33);
/// First version that discards a cell when a stream of it fails.
const STRICT_SINCE: (u32, u32, u32) = (0, 6, 0);

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let measured = input.measured().flat_map(|row| gauges(input, row).into_iter().chain(flags(input, row)));
    let all = input.rows().flat_map(|row| workers(row).into_iter().chain(failed_with_total(input, row)));
    measured.chain(all).collect()
}

fn gauges(input: &Input<'_>, row: Row<'_>) -> Vec<Finding> {
    let raw = row.raw;
    let (average, maximum) = (raw.avg_running_reqs.unwrap_or_default(), raw.max_running_reqs.unwrap_or_default());
    let mut faults = Vec::new();
    if raw.effective_concurrency.is_some_and(|effective| Some(effective) != raw.avg_running_reqs) {
        faults.push((input.exact, "The average of active requests has two values."));
    }
    if average > maximum + GAUGE_ROUNDING && raw.max_running_reqs.is_some() {
        faults.push((input.exact, "More requests were active on average than at most."));
    }
    if maximum > running_max(input, row) {
        faults.push((Severity::Suspicious, "More requests were active at once than were sent."));
    }
    if average > f64::from(row.at.concurrency) + GAUGE_ROUNDING {
        faults.push((Severity::Suspicious, "More requests were active on average than were sent."));
    }
    if raw.queue_fraction.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        faults.push((input.exact, "The share of time with a queue lies outside 0 to 1."));
    }
    if raw.queue_fraction.is_some_and(|share| (share > 0.0) != (raw.max_queue_reqs.unwrap_or_default() > 0.0)) {
        faults.push((Severity::Suspicious, "There was a queue at no time, or none of any length."));
    }
    if raw.avg_queue_reqs.unwrap_or_default() > raw.max_queue_reqs.unwrap_or_default() + GAUGE_ROUNDING {
        faults.push((Severity::Suspicious, "The queue was longer on average than at most."));
    }
    if raw.server_utilization.is_some_and(|share| !(0.0..=1.05).contains(&share)) {
        faults.push((Severity::Suspicious, "The share of KV cache in use lies outside 0 to 1."));
    }
    if !input.has_metrics() && (average > 0.0 || raw.server_output_tokens.unwrap_or_default() > 0.0) {
        faults.push((Severity::Suspicious, "There are gauges of a server that had no metrics."));
    }
    faults.into_iter().map(|(severity, message)| Finding::new("gauges_inconsistent", severity, message).at(row.at)).collect()
}

/// Requests in flight; before 0.4.33 also those of the cell before, cut off and still winding down.
fn running_max(input: &Input<'_>, row: Row<'_>) -> f64 {
    let drained = input.era.parts.is_none_or(|parts| parts >= DRAINED_SINCE);
    let before = input.rows().map(|other| other.at.concurrency).max().filter(|_| !drained).unwrap_or_default();
    f64::from(row.at.concurrency) + f64::from(before)
}

/// What the flag must be, or `None` where rounding leaves it open.
fn below(average: f64, limit: f64) -> Option<bool> {
    if average + GAUGE_ROUNDING < limit {
        Some(true)
    } else if average - GAUGE_ROUNDING >= limit {
        Some(false)
    } else {
        None
    }
}

fn flags(input: &Input<'_>, row: Row<'_>) -> Vec<Finding> {
    let raw = row.raw;
    let requests = f64::from(row.at.concurrency);
    let queue = raw.queue_fraction.unwrap_or_default() > 0.0;
    let gauged = input.has_metrics() && [raw.max_running_reqs, raw.max_queue_reqs].into_iter().flatten().any(|max| max > 0.0);
    let several = row.at.concurrency > 1 && gauged;
    let average = raw.avg_running_reqs.unwrap_or_default();
    let limited = if !row.is_window() {
        Some(queue)
    } else if raw.warmup_timed_out == Some(true) || queue || (several && raw.max_running_reqs.unwrap_or_default() < requests) {
        Some(true)
    } else if several {
        below(average, LIMITED_BELOW * requests)
    } else {
        Some(false)
    };
    let underfilled = if several && row.is_window() { below(average, UNDERFILLED_BELOW * requests) } else { Some(false) };
    let pairs = [("capacity_limited", raw.capacity_limited, limited), ("underfilled", raw.underfilled, underfilled)];
    let differ = pairs.into_iter().filter(|(_, stated, expected)| stated.is_some() && expected.is_some() && stated != expected);
    let finding = |(name, stated, expected): (&str, Option<bool>, Option<bool>)| {
        let message = format!("The flag {name} does not follow from the gauges.");
        let (expected, observed) = (expected.unwrap_or_default(), stated.unwrap_or_default());
        Finding::new("flag_mismatch", input.exact, message).at(row.at).values(expected, observed)
    };
    differ.map(finding).collect()
}

/// A failed or looped cell keeps no total, but for 0.4, which kept that of the streams that went on.
fn failed_with_total(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let failed = matches!(row.status, CellStatus::Error | CellStatus::Loop) && row.raw.aggregate_tps.is_some_and(|tps| tps > 0.0);
    let partial = input.era.parts.is_some_and(|parts| parts < STRICT_SINCE) && row.raw.num_errors.unwrap_or_default() > 0.0;
    (failed && !partial).then(|| {
        let message = "A cell that is called failed has a total.";
        Finding::suspicious("failed_cell_has_total", message).at(row.at)
    })
}

/// Each request in flight has one worker; in whole-request modes each request has.
fn workers(row: Row<'_>) -> Option<Finding> {
    row.raw.aggregate_tps.filter(|tps| *tps > 0.0)?;
    let (done, failed) = (row.raw.num_completed?, row.raw.num_errors.unwrap_or_default());
    let target = row.raw.request_count_target.unwrap_or_default();
    let expected = if row.is_window() { f64::from(row.at.concurrency) } else { row.raw.request_count? };
    let target_fits = target == if row.is_window() { 0.0 } else { expected };
    (done + failed != expected || !(target_fits || failed > 0.0)).then(|| {
        let message = "The number of workers is not the number of requests.";
        Finding::suspicious("worker_count_mismatch", message).at(row.at).values(expected, done + failed)
    })
}
