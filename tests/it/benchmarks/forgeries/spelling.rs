//! Versions to hide behind, and JSON that two readers might read differently.

use serde_json::{Value, json};

use super::Outcome::{Caught, OnlyRemeasuring, Refused};
use super::shape::unqueue;
use super::{Forgery, K, RUN, SMALL};
use crate::benchmarks::forge::*;

/// Versions to hide behind.
pub const VERSIONS: &[Forgery] = &[
    (
        "a version with a made-up ending",
        RUN,
        |case| case.document["metadata"]["version"] = json!("0.8.0-evil"),
        Caught("version_implausible"),
    ),
    ("an older version", RUN, |case| case.document["metadata"]["version"] = json!("0.3.0"), Caught("version_implausible")),
    ("no version", RUN, |case| drop(case.document["metadata"].as_object_mut().unwrap().remove("version")), Caught("version_missing")),
    (
        "a newer version over an edited total",
        RUN,
        |case| {
            case.document["metadata"]["version"] = json!("0.9.0");
            recount(&mut case.document, 16 * K, 8, 27_720.0);
        },
        Caught("window_exceeds_streams"),
    ),
    (
        "the first version with windows, without the flags it did not write",
        RUN,
        |case| {
            case.document["metadata"]["version"] = json!("0.4.0");
            unqueue(&mut case.document, false);
            for row in rows(&mut case.document) {
                for key in ["measurement_wall_seconds", "capacity_limited", "underfilled", "warmup_timed_out"] {
                    row.as_object_mut().unwrap().remove(key);
                }
            }
        },
        Caught("log_time_mismatch"),
    ),
    ("stripped to the oldest shape", RUN, |case| strip(&mut case.document, "2026-11-27T21:11:41.402917"), Caught("version_uncheckable")),
    (
        "stripped to the oldest shape and dated back to it",
        RUN,
        |case| strip(&mut case.document, "2026-03-27T21:11:41.402917"),
        OnlyRemeasuring("documents of that age hold nothing to recompute; the page says so, and no challenge takes them"),
    ),
];

fn strip(document: &mut Value, saved: &str) {
    document["metadata"].as_object_mut().unwrap().remove("version");
    document["metadata"]["timestamp"] = json!(saved);
    document["event_log"] = json!([]);
    document["prefill"] = json!({});
    let kept = ["concurrency", "context_tokens", "aggregate_tps", "ttft_p50", "wall_time", "num_completed", "num_errors"];
    for row in rows(document) {
        row.as_object_mut().unwrap().retain(|key, _| kept.contains(&key.as_str()));
        scale(row, "aggregate_tps", 2.0);
    }
    for entry in document["summary_table"].as_object_mut().unwrap().values_mut().flat_map(|row| row.as_object_mut().unwrap().values_mut()) {
        *entry = json!(entry.as_f64().unwrap() * 2.0);
    }
}

/// Spellings that two readers might read differently.
pub const SPELLINGS: &[Forgery] = &[
    (
        "a key twice",
        SMALL,
        |case| case.spell("\"aggregate_tps\":", "\"aggregate_tps\":999.1234567,\"aggregate_tps\":"),
        Refused("duplicate_key"),
    ),
    (
        "a key twice, once in escapes",
        SMALL,
        |case| case.spell("\"aggregate_tps\":", "\"\\u0061ggregate_tps\":999.1234567,\"aggregate_tps\":"),
        Refused("duplicate_key"),
    ),
    ("a number as text", SMALL, |case| cell(&mut case.document, 0, 8)["aggregate_tps"] = json!("999.1"), Refused("wrong_type")),
    ("a huge exponent", SMALL, |case| case.spell("\"aggregate_tps\":", "\"aggregate_tps\":1e999,\"x\":"), Refused("non_finite_number")),
    ("no number", SMALL, |case| case.spell("\"aggregate_tps\":", "\"aggregate_tps\":NaN,\"x\":"), Refused("non_finite_number")),
    ("the largest number", SMALL, |case| cell(&mut case.document, 0, 8)["aggregate_tps"] = json!(1e308), Caught("total_mismatch")),
    ("minus zero", SMALL, |case| cell(&mut case.document, 4 * K, 8)["aggregate_tps"] = json!(-0.0), Caught("log_contradicts_status")),
    (
        "a key that looks alike",
        SMALL,
        |case| {
            let row = cell(&mut case.document, 4 * K, 8).as_object_mut().unwrap();
            let total = row.remove("aggregate_tps").unwrap();
            row.insert("aggregate_t\u{440}s".to_owned(), total);
        },
        Caught("log_contradicts_status"),
    ),
    ("a context in another spelling", SMALL, |case| case.spell("\"prefill\":{\"1024\"", "\"prefill\":{\"01024\""), Refused("wrong_type")),
    ("a level that is no whole number", SMALL, |case| cell(&mut case.document, 0, 8)["concurrency"] = json!(8.5), Refused("out_of_range")),
    (
        "digits of another script in the log",
        SMALL,
        |case| edit_log(&mut case.document, |line| line.replace(" 312.2 tok/s", " \u{ff13}12.2 tok/s")),
        Caught("log_total_mismatch"),
    ),
    (
        "a second document behind the first",
        SMALL,
        |case| {
            let mut text = serde_json::to_vec(&case.document).unwrap();
            text.extend(b"{}");
            case.bytes = Some(text);
        },
        Refused("not_json"),
    ),
];
