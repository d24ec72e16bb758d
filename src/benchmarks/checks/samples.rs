//! I3, I4: averages, percentiles and counts are those of the cell's own request samples, and no stream is another's copy.

use std::collections::BTreeMap;

use super::{CellRef, Finding, Input, Row, Severity, near};
use crate::benchmarks::document::{Sample, Stats};
use crate::benchmarks::matrix::CellStatus;

const TOLERANCE: f64 = 1e-9;
/// Latency is computed from clock readings; its parts sum within this share.
const LATENCY_TOLERANCE: f64 = 1e-6;
/// Streams may outlive the cell's own clock by the time that joining them takes.
const LIFE_SLACK_SECONDS: f64 = 2.0;
/// Streams with another's time between tokens: coarse clocks give a few, a generator without jitter gives all.
const PACES_SHARED_MIN: usize = 3;
const PACES_SHARED_SHARE: usize = 4;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in input.measured() {
        let Some(samples) = row.raw.samples.as_deref().filter(|samples| !samples.is_empty()) else { continue };
        findings.extend(percentiles(input, row, samples));
        findings.extend(lengths(row, samples));
        findings.extend(counts(input, row, samples));
        findings.extend(speeds(input, row, samples));
        findings.extend(lives(row, samples));
        findings.extend(window_within_lives(row, samples));
        findings.extend(streams_missing(input, row, samples));
    }
    findings.extend(repeated(input));
    findings
}

/// Linear-interpolated percentile of a sorted list, as the tool computes it.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "a list has far fewer than 2^52 items")]
    let position = last as f64 * share;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "position lies within the list")]
    let below = position.floor() as usize;
    let low = sorted.get(below).copied().unwrap_or_default();
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * (position - position.floor())
}

fn mean(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a list has far fewer than 2^52 items")]
    let count = values.len().max(1) as f64;
    values.iter().sum::<f64>() / count
}

/// A quantity's name, its stated statistics, and where it stands in a sample.
type Quantity<'a> = (&'a str, &'a Stats, fn(&Sample) -> f64);

fn percentiles(input: &Input<'_>, row: Row<'_>, samples: &[Sample]) -> Vec<Finding> {
    let raw = row.raw;
    let quantities: [Quantity<'_>; 7] = [
        ("ttft", &raw.ttft, |s| s.ttft),
        ("time_to_second_token", &raw.time_to_second_token, |s| s.time_to_second_token),
        ("request_latency", &raw.request_latency, |s| s.latency),
        ("inter_token_latency", &raw.inter_token_latency, |s| s.inter_token_latency),
        ("chunk_inter_token_latency", &raw.chunk_inter_token_latency, |s| s.chunk_inter_token_latency),
        ("output_tps_per_user", &raw.output_tps_per_user, |s| s.output_tps_per_user),
        ("e2e_output_tps_per_user", &raw.e2e_output_tps_per_user, |s| s.e2e_output_tps_per_user),
    ];
    let mut findings = Vec::new();
    for (name, stats, pick) in quantities {
        let mut values: Vec<f64> = samples.iter().map(pick).filter(|v| *v > 0.0).collect();
        values.sort_by(f64::total_cmp);
        let shares = [("p50", stats.p50, 0.5), ("p90", stats.p90, 0.9), ("p99", stats.p99, 0.99)];
        for (suffix, stated, share) in shares {
            let expected = percentile(&values, share);
            if stated.is_some_and(|stated| !near(stated, expected, TOLERANCE)) {
                let message = format!("{name}_{suffix} is not the percentile of the request samples.");
                let observed = stated.unwrap_or_default();
                findings.push(Finding::new("percentile_mismatch", input.exact, message).at(row.at).values(expected, observed));
            }
        }
        let expected = mean(&values);
        if stats.avg.is_some_and(|stated| !near(stated, expected, TOLERANCE)) {
            let message = format!("{name}_avg is not the mean of the request samples.");
            let observed = stats.avg.unwrap_or_default();
            findings.push(Finding::suspicious("average_mismatch", message).at(row.at).values(expected, observed));
        }
    }
    findings
}

/// Input and output lengths are taken over completed requests, or over all when none completed.
fn lengths(row: Row<'_>, samples: &[Sample]) -> Vec<Finding> {
    let completed: Vec<&Sample> = samples.iter().filter(|s| s.completed).collect();
    let chosen: Vec<&Sample> = if completed.is_empty() { samples.iter().collect() } else { completed };
    let mut outputs: Vec<f64> = chosen.iter().map(|s| s.output_tokens).collect();
    outputs.sort_by(f64::total_cmp);
    let inputs: Vec<f64> = chosen.iter().map(|s| s.input_tokens).collect();
    let raw = row.raw;
    let pairs = [
        ("input_seq_len_avg", raw.input_seq_len_avg, mean(&inputs)),
        ("output_seq_len_avg", raw.output_seq_len.avg, mean(&outputs)),
        ("output_seq_len_p50", raw.output_seq_len.p50, percentile(&outputs, 0.5)),
        ("output_seq_len_p90", raw.output_seq_len.p90, percentile(&outputs, 0.9)),
        ("output_seq_len_p99", raw.output_seq_len.p99, percentile(&outputs, 0.99)),
    ];
    let wrong = pairs.into_iter().filter(|(_, stated, expected)| stated.is_some_and(|stated| !near(stated, *expected, TOLERANCE)));
    let finding = |(name, stated, expected): (&str, Option<f64>, f64)| {
        let message = format!("{name} is not that of the request samples.");
        Finding::suspicious("average_mismatch", message).at(row.at).values(expected, stated.unwrap_or_default())
    };
    wrong.map(finding).collect()
}

fn counts(input: &Input<'_>, row: Row<'_>, samples: &[Sample]) -> Vec<Finding> {
    #[expect(clippy::cast_precision_loss, reason = "a list has far fewer than 2^52 items")]
    let count = |n: usize| n as f64;
    let all = count(samples.len());
    let completed = count(samples.iter().filter(|s| s.completed).count());
    let pairs = [("request_count", row.raw.request_count, all), ("completed_request_count", row.raw.completed_request_count, completed)];
    let wrong = pairs.into_iter().filter(|(_, stated, expected)| stated.is_some_and(|stated| stated != *expected));
    let finding = |(name, stated, expected): (&str, Option<f64>, f64)| {
        let message = format!("{name} is not the number of request samples.");
        Finding::new("request_count_mismatch", input.exact, message).at(row.at).values(expected, stated.unwrap_or_default())
    };
    wrong.map(finding).collect()
}

/// A stream's speed is one over its time between tokens; a completed one's latency is TTFT plus the times between its tokens.
fn speeds(input: &Input<'_>, row: Row<'_>, samples: &[Sample]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let report = |severity: Severity, what: &str| Finding::new("sample_inconsistent", severity, what).at(row.at);
    for sample in samples {
        let itl = sample.inter_token_latency;
        if itl > 0.0 && !near(sample.output_tps_per_user * itl, 1.0, TOLERANCE) {
            findings.push(report(input.exact, "A stream's speed is not one over its time between tokens."));
        }
        if sample.completed != (sample.latency > 0.0) {
            findings.push(report(Severity::Suspicious, "A stream has a latency and is not completed, or the reverse."));
        }
        if sample.latency > 0.0 {
            if !near(sample.e2e_output_tps_per_user * sample.latency, sample.output_tokens, TOLERANCE) {
                findings.push(report(Severity::Suspicious, "A completed stream's speed is not its tokens over its latency."));
            }
            let parts = sample.ttft + itl * (sample.output_tokens - 1.0).max(0.0);
            if itl > 0.0 && !near(parts, sample.latency, LATENCY_TOLERANCE) {
                findings.push(report(Severity::Suspicious, "A completed stream's latency is not the sum of its parts."));
            }
        }
        let negative = [sample.ttft, sample.latency, itl, sample.output_tokens, sample.input_tokens].iter().any(|v| *v < 0.0);
        if negative || (sample.output_tokens > 0.0 && sample.ttft <= 0.0) {
            findings.push(report(Severity::Suspicious, "A stream has tokens before its first, or a negative time."));
        }
    }
    findings
}

/// No stream lives longer than its cell.
fn lives(row: Row<'_>, samples: &[Sample]) -> Option<Finding> {
    let wall = row.raw.wall_time.filter(|wall| *wall > 0.0 && row.is_window())?;
    let life = |s: &Sample| s.ttft + s.inter_token_latency * (s.output_tokens - 1.0).max(0.0);
    let longest = samples.iter().map(life).fold(0.0, f64::max);
    (longest > wall + LIFE_SLACK_SECONDS).then(|| {
        let message = "A stream's tokens took longer than the whole cell.";
        Finding::suspicious("stream_outlives_cell", message).at(row.at).values(format!("at most {wall}"), longest)
    })
}

/// The window is a part of the streams' lives, so it holds no more tokens than they have.
fn window_within_lives(row: Row<'_>, samples: &[Sample]) -> Option<Finding> {
    let tokens = row.raw.client_output_tokens.filter(|_| row.counted_by_usage())?;
    let lives: f64 = samples.iter().map(|s| s.output_tokens).sum();
    (tokens > lives + f64::from(row.at.concurrency)).then(|| {
        let message = "The window has more tokens than all streams together.";
        Finding::suspicious("window_exceeds_streams", message).at(row.at).values(format!("at most {lives}"), tokens)
    })
}

/// A cell whose streams all ran has a sample of each; one without says that a request waited.
fn streams_missing(input: &Input<'_>, row: Row<'_>, samples: &[Sample]) -> Option<Finding> {
    let all_ran = row.status == CellStatus::Valid && row.is_window() && input.has_metrics();
    let streams = samples.iter().filter(|sample| sample.ttft > 0.0).count();
    let requests = usize::try_from(row.at.concurrency).unwrap_or(usize::MAX);
    (all_ran && streams < requests).then(|| {
        let message = "A cell that is called valid has fewer streams with tokens than requests.";
        Finding::suspicious("streams_missing", message).at(row.at).values(format!("at least {requests}"), streams)
    })
}

/// Clock readings have many digits: no two streams have the same first token and the same pace, and few the same pace.
fn repeated(input: &Input<'_>) -> Option<Finding> {
    let mut streams: BTreeMap<(u64, u64), Vec<CellRef>> = BTreeMap::new();
    let mut paces: BTreeMap<u64, Vec<CellRef>> = BTreeMap::new();
    let mut total = 0;
    for row in input.measured() {
        for sample in row.raw.samples.iter().flatten().filter(|sample| sample.inter_token_latency > 0.0 && sample.ttft > 0.0) {
            let pace = sample.inter_token_latency.to_bits();
            streams.entry((sample.ttft.to_bits(), pace)).or_default().push(row.at);
            paces.entry(pace).or_default().push(row.at);
            total += 1;
        }
    }
    let mut copies: Vec<CellRef> = streams.into_values().filter(|places| places.len() > 1).flatten().collect();
    let shared: Vec<CellRef> = paces.into_values().flat_map(|places| places.into_iter().skip(1)).collect();
    if shared.len() >= PACES_SHARED_MIN && shared.len() * PACES_SHARED_SHARE >= total {
        copies.extend(shared);
    }
    if copies.is_empty() {
        return None;
    }
    let message = "Streams have exactly the times of other streams, as no clock gives them: samples were copied or generated.";
    let finding = Finding::suspicious("samples_repeated", message).values("no stream twice", copies.len());
    Some(copies.into_iter().fold(finding, Finding::at))
}
