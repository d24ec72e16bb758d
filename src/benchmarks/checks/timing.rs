//! I8, I9: the window is as long as asked, the measured part lies inside it, and the cell's times add up.

use super::{Finding, Input, Row, Severity, near};

/// A window may be opened late by a scheduler, never early.
const WINDOW_EARLY_SECONDS: f64 = 0.05;
const WINDOW_LATE_SECONDS: f64 = 0.6;
const ROUNDING_SECONDS: f64 = 0.001;
/// A token that arrives while the window closes is still counted: 3 ms on a quiet client, more on a busy one.
const OVERRUN_SECONDS: f64 = 0.25;
const OVERRUN_MAX_SECONDS: f64 = 1.0;
/// The last token may come this long before the window's end.
const TAIL_SECONDS: f64 = 0.5;
const TAIL_TOKENS: f64 = 3.0;
const JOIN_SECONDS_MAX: f64 = 40.0;
/// The server's own window is a poll or two longer than the client's.
const SERVER_WINDOW_SECONDS: f64 = 1.0;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in input.measured() {
        if row.is_window() {
            findings.extend(window_length(input, row));
            findings.extend(measured_part(input, row));
            findings.extend(cell_sum(input, row));
        } else {
            findings.extend(whole_request_sum(input, row));
        }
        findings.extend(server_throughput(row));
        findings.extend(steps(row));
    }
    findings
}

fn window_length(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (wall, asked) = (row.raw.measurement_wall_seconds?, input.document.metadata.duration_per_test?);
    let late = wall - asked;
    if (-WINDOW_EARLY_SECONDS..=WINDOW_LATE_SECONDS).contains(&late) {
        return None;
    }
    // Somebody may have pressed the key that ends a run, so it is never more than suspicious.
    let message = "The window is not as long as the run's time per measurement.";
    Some(Finding::suspicious("window_length", message).at(row.at).values(asked, wall))
}

fn measured_part(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let raw = row.raw;
    let (wall, measured) = (raw.measurement_wall_seconds?, raw.measurement_seconds?);
    let tail = wall - measured;
    let slowest = [raw.inter_token_latency.p99, raw.chunk_inter_token_latency.p99].into_iter().flatten().fold(0.0, f64::max);
    if tail < -OVERRUN_SECONDS {
        let severity = if tail < -OVERRUN_MAX_SECONDS { input.exact } else { Severity::Suspicious };
        let message = "More seconds were measured than the window had.";
        return Some(Finding::new("window_overrun", severity, message).at(row.at).values(format!("at most {wall}"), measured));
    }
    (tail > TAIL_SECONDS.max(TAIL_TOKENS * slowest)).then(|| {
        let message = "The last token came long before the window ended; the speed is over a part of the window only.";
        Finding::suspicious("window_cut_short", message).at(row.at).values(wall, measured)
    })
}

/// Warm-up and window make the cell's wall time, with some seconds for joining streams.
fn cell_sum(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (wall, warmup, window) = (row.raw.wall_time?, row.raw.warmup_duration?, row.raw.measurement_wall_seconds?);
    let rest = wall - warmup - window;
    if (-WINDOW_EARLY_SECONDS..=JOIN_SECONDS_MAX).contains(&rest) {
        return None;
    }
    let severity = if rest < 0.0 { input.exact } else { Severity::Suspicious };
    let message = "Warm-up and window do not add up to the cell's wall time.";
    Some(Finding::new("cell_time_sum", severity, message).at(row.at).values(warmup + window, wall))
}

fn whole_request_sum(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (wall, measured) = (row.raw.wall_time?, row.raw.measurement_seconds?);
    let off = (wall - measured).abs() > ROUNDING_SECONDS || row.raw.warmup_duration.unwrap_or_default() != 0.0;
    let message = "The measured seconds are not the cell's wall time, which has no warm-up here.";
    off.then(|| Finding::new("cell_time_sum", input.exact, message).at(row.at).values(wall, measured))
}

/// The server's throughput is its tokens over its window.
fn server_throughput(row: Row<'_>) -> Option<Finding> {
    let (tokens, throughput) = (row.raw.server_output_tokens?, row.raw.server_gen_throughput?);
    if tokens <= 0.0 {
        return None;
    }
    let window = if throughput > 0.0 { tokens / throughput } else { 0.0 };
    let expected = row.raw.measurement_wall_seconds.filter(|w| *w > 0.0).or(row.raw.wall_time)?;
    (!near(window, expected, 0.02) && (window - expected).abs() > SERVER_WINDOW_SECONDS.min(0.05 * expected)).then(|| {
        let message = "The server's throughput is not its tokens over the window.";
        Finding::suspicious("server_throughput_mismatch", message).at(row.at).values(tokens / expected, throughput)
    })
}

/// Since 0.4.3x: total = engine steps per second × tokens accepted per step.
fn steps(row: Row<'_>) -> Option<Finding> {
    let (steps, accepted, total) = (row.raw.server_steps_per_s?, row.raw.server_accept_len_effective?, row.raw.aggregate_tps?);
    let product = steps * accepted;
    (product > 0.0 && !near(product, total, 0.05)).then(|| {
        let message = "Engine steps per second and tokens per step do not give the total.";
        Finding::note("steps_mismatch", message).at(row.at).values(product, total)
    })
}
