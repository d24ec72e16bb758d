//! Forged speeds and forged prefill.

use serde_json::{Value, json};

use super::Outcome::{Caught, OnlyRemeasuring};
use super::{Forgery, K, RUN, SMALL, WHOLE};
use crate::benchmarks::forge::*;
use crate::benchmarks::reference_claim;

/// Speeds, with more and more of the document kept consistent.
pub const SPEEDS: &[Forgery] = &[
    ("a total", RUN, |case| cell(&mut case.document, 16 * K, 8)["aggregate_tps"] = json!(739.329_481_23), Caught("total_mismatch")),
    ("tokens", RUN, |case| scale(cell(&mut case.document, 16 * K, 8), "client_output_tokens", 1.5), Caught("total_mismatch")),
    (
        "tokens, total and every copy of it but the streams",
        RUN,
        |case| recount(&mut case.document, 16 * K, 8, 27_720.0),
        Caught("window_exceeds_streams"),
    ),
    (
        "a total typed round",
        RUN,
        |case| {
            let row = cell(&mut case.document, 16 * K, 8);
            (row["client_output_tokens"], row["measurement_seconds"]) = (json!(18_600), json!(30.0));
            retotal(&mut case.document, 16 * K, 8);
        },
        Caught("total_rounded"),
    ),
    (
        "half the seconds",
        RUN,
        |case| {
            scale(cell(&mut case.document, 16 * K, 8), "measurement_seconds", 0.5);
            retotal(&mut case.document, 16 * K, 8);
        },
        Caught("window_cut_short"),
    ),
    (
        "twice the window",
        RUN,
        |case| {
            let row = cell(&mut case.document, 16 * K, 8);
            for key in ["measurement_seconds", "measurement_wall_seconds", "client_output_tokens"] {
                scale(row, key, 2.0);
            }
            retotal(&mut case.document, 16 * K, 8);
        },
        Caught("window_length"),
    ),
    ("a median", RUN, |case| scale(cell(&mut case.document, 0, 8), "ttft_p50", 0.5), Caught("percentile_mismatch")),
    ("a stream", RUN, |case| pace(&mut samples(cell(&mut case.document, 0, 8))[3], 0.008_123_4), Caught("percentile_mismatch")),
    (
        "the slowest stream, statistics too",
        RUN,
        |case| {
            let row = cell(&mut case.document, 16 * K, 16);
            samples(row).pop();
            restate(row);
        },
        Caught("streams_missing"),
    ),
    (
        "the first token of every stream, statistics too",
        RUN,
        |case| {
            for row in rows(&mut case.document) {
                samples(row).iter_mut().for_each(|sample| scale(sample, "ttft", 0.8));
                restate(row);
            }
        },
        OnlyRemeasuring("a decode TTFT may come from a cached prefix, so nothing else in the file bounds it"),
    ),
    (
        "one cell by half, everything rewritten",
        RUN,
        |case| speed_up(&mut case.document, |context, level| if (context, level) == (16 * K, 8) { 1.5 } else { 1.0 }),
        Caught("total_rises_with_context"),
    ),
    (
        "one cell without context by seven tenths, everything rewritten",
        RUN,
        |case| speed_up(&mut case.document, |context, level| if (context, level) == (0, 8) { 1.7 } else { 1.0 }),
        Caught("speed_rises_with_concurrency"),
    ),
    (
        "one cell by a tenth, everything rewritten",
        RUN,
        |case| speed_up(&mut case.document, |context, level| if (context, level) == (16 * K, 8) { 1.1 } else { 1.0 }),
        OnlyRemeasuring("engines differ by as much between neighbouring cells"),
    ),
    (
        "the whole matrix by a fifth, everything rewritten",
        RUN,
        |case| speed_up(&mut case.document, |_, _| 1.2),
        OnlyRemeasuring("a machine a fifth faster writes exactly this"),
    ),
    (
        "the whole matrix by five on the same hardware",
        RUN,
        |case| {
            case.claim = reference_claim();
            speed_up(&mut case.document, |_, _| 5.0);
        },
        Caught("decode_above_bandwidth"),
    ),
    ("the whole matrix by sixty, no hardware named", RUN, |case| speed_up(&mut case.document, |_, _| 60.0), Caught("too_fast")),
    (
        "totals of two levels swapped, everything rewritten",
        RUN,
        |case| {
            speed_up(&mut case.document, |context, level| match (context, level) {
                (16_384, 8) => 918.9 / 616.1,
                (16_384, 16) => 616.1 / 918.9,
                _ => 1.0,
            });
        },
        Caught("total_rises_with_context"),
    ),
    (
        "rows of two levels swapped",
        RUN,
        |case| {
            cell(&mut case.document, 16 * K, 8)["concurrency"] = json!(99);
            cell(&mut case.document, 16 * K, 16)["concurrency"] = json!(8);
            cell(&mut case.document, 16 * K, 99)["concurrency"] = json!(16);
        },
        Caught("per_request_average_mismatch"),
    ),
    ("a level renamed", RUN, |case| rename_level(&mut case.document, 16, 24), Caught("streams_missing")),
    (
        "a level renamed and its streams filled up with copies",
        SMALL,
        |case| {
            rename_level(&mut case.document, 8, 12);
            for row in rows(&mut case.document).iter_mut().filter(|row| row["concurrency"] == 12) {
                let more = samples(row)[..4].to_vec();
                samples(row).extend(more);
                restate(row);
            }
        },
        Caught("samples_repeated"),
    ),
    (
        "an echo: one speed everywhere",
        RUN,
        |case| {
            let totals = case.document["summary_table"].clone();
            speed_up(&mut case.document, |context, level| {
                100.0 * level as f64 / totals[context.to_string()][level.to_string()].as_f64().unwrap()
            });
        },
        Caught("speed_flat"),
    ),
    ("a fitted model without jitter", RUN, |case| regenerate(&mut case.document, 0.0), Caught("samples_repeated")),
    (
        "a fitted model with jitter of its own",
        RUN,
        |case| regenerate(&mut case.document, 0.01),
        OnlyRemeasuring("noise that is drawn well is noise: only the machine itself tells a model from a measurement"),
    ),
    (
        "a proxy that doubles the usage",
        RUN,
        |case| {
            let server = rows(&mut case.document).iter().map(|row| row["server_output_tokens"].clone()).collect::<Vec<_>>();
            speed_up(&mut case.document, |_, _| 2.0);
            for (row, tokens) in rows(&mut case.document).iter_mut().zip(server) {
                row["server_output_tokens"] = tokens;
            }
        },
        Caught("server_tokens_differ"),
    ),
    (
        "a proxy that doubles the usage and the metrics",
        RUN,
        |case| {
            speed_up(&mut case.document, |_, _| 2.0);
            for row in rows(&mut case.document) {
                samples(row).iter_mut().for_each(|sample| scale(sample, "chunk_inter_token_latency_avg", 2.0));
                restate(row);
            }
        },
        OnlyRemeasuring("two tokens in a chunk is what speculation does; our own count of the text tells"),
    ),
    (
        "answers counted whole by a proxy",
        "real_llamacpp_cpu_completed.json",
        |case| case.document["metadata"]["engine"] = json!("vllm"),
        Caught("usage_overreported"),
    ),
    ("forced tokens", RUN, |case| case.document["metadata"]["forced_token_id"] = json!(42), Caught("forced_tokens")),
];

/// Every stream at the pace of a formula, with noise of this share.
fn regenerate(document: &mut Value, jitter: f64) {
    let mut seed = 7;
    for row in rows(document) {
        let (context, active) = (number(row, "context_tokens"), number(row, "effective_concurrency"));
        let step = 0.005_9 + 0.000_9 * active.powf(0.85) + 44e-9 * context * (1.0 + 0.2 * active);
        for sample in samples(row) {
            let itl = step * (1.0 + jitter * noise(&mut seed));
            pace(sample, itl);
            let ttft = number(sample, "ttft") * (1.0 + jitter * noise(&mut seed));
            sample["ttft"] = json!(if jitter > 0.0 { ttft } else { 0.512_345_678 });
        }
        restate(row);
        let tokens = ((number(row, "measurement_seconds") / step).round() * active.round().max(1.0)).min(lives(row));
        row["server_output_tokens"] = json!(tokens as u64);
        row["server_gen_throughput"] = json!(tokens / number(row, "measurement_wall_seconds"));
        row["client_output_tokens"] = json!(tokens as u64);
    }
    let places: Vec<(u64, u64)> =
        rows(document).iter().map(|row| (row["context_tokens"].as_u64().unwrap(), row["concurrency"].as_u64().unwrap())).collect();
    places.into_iter().for_each(|(context, level)| retotal(document, context, level));
}

/// Prefill, and the contexts it stands for.
pub const PREFILL: &[Forgery] = &[
    ("a rate", RUN, |case| case.document["prefill"]["65536"]["tok_per_sec"] = json!(5_000.0), Caught("prefill_rate_mismatch")),
    ("a row with its copies and its line", RUN, |case| prefill(&mut case.document, 64 * K, 9.4, false), Caught("log_time_mismatch")),
    (
        "a long row from a cache, clock and cell too",
        RUN,
        |case| prefill(&mut case.document, 128 * K, 10.0, true),
        Caught("prefill_faster_when_longer"),
    ),
    (
        "all rows from a cache, on named hardware",
        RUN,
        |case| {
            case.claim = reference_claim();
            for context in [8, 16, 32, 64, 128] {
                let seconds = number(&case.document["prefill"][(context * K).to_string()], "ttft_seconds");
                prefill(&mut case.document, context * K, seconds / 20.0, true);
            }
        },
        Caught("prefill_above_compute"),
    ),
    (
        "all rows by half, clocks too",
        RUN,
        |case| {
            for context in [8, 16, 32, 64, 128] {
                let seconds = number(&case.document["prefill"][(context * K).to_string()], "ttft_seconds");
                prefill(&mut case.document, context * K, seconds / 1.5, true);
            }
        },
        OnlyRemeasuring("a partly cached prompt looks like a faster machine; a probe's prompt is in no cache"),
    ),
    (
        "a cache that the engine owns up to",
        RUN,
        |case| case.document["prefill"]["16384"]["server_validation"]["cached_tokens"] = json!(16_000),
        Caught("prefill_cached"),
    ),
    (
        "a slow row removed",
        RUN,
        |case| drop(case.document["prefill"].as_object_mut().unwrap().remove("131072")),
        Caught("prefill_row_missing"),
    ),
    ("a context called half as long again", RUN, |case| rename_context(&mut case.document, 32 * K, 48 * K), Caught("prompt_length")),
    ("a context called a little longer", WHOLE, |case| rename_context(&mut case.document, 16 * K, 17_000), Caught("log_context_differs")),
    (
        "a prompt of a tenth more tokens than its text",
        RUN,
        |case| {
            for row in rows(&mut case.document).iter_mut().filter(|row| row["context_tokens"] == 64 * K) {
                samples(row).iter_mut().for_each(|sample| scale(sample, "input_tokens", 1.1));
                restate(row);
            }
        },
        Caught("prompt_length"),
    ),
];
