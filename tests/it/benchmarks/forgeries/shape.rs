//! Cells, contexts, levels and evidence that vanish or are called something else.

use serde_json::{Value, json};

use super::Outcome::{Caught, OnlyRemeasuring};
use super::{Forgery, K, RUN, WHOLE, WRAPPED};
use crate::benchmarks::forge::*;

/// Which cells there are.
pub const STRUCTURE: &[Forgery] = &[
    ("a cell removed", RUN, |case| remove_cell(&mut case.document, 64 * K, 8), Caught("cell_missing")),
    ("a cell removed with its lines", RUN, |case| hide_cell(&mut case.document, 64 * K, 4, true), Caught("cell_missing")),
    (
        "a slow cell called over capacity",
        RUN,
        |case| {
            cell(&mut case.document, 64 * K, 8)["aggregate_tps"] = json!(-1.0);
            case.document["summary_table"]["65536"]["8"] = Value::Null;
        },
        Caught("over_capacity_unexplained"),
    ),
    (
        "a slow cell over a budget made smaller than another's need",
        RUN,
        |case| {
            hide_cell(&mut case.document, 64 * K, 4, true);
            case.document["metadata"]["max_total_tokens"] = json!(290_000);
        },
        Caught("ran_over_capacity"),
    ),
    (
        "the largest cell over a budget made to fit, its lines cut out",
        RUN,
        |case| {
            hide_cell(&mut case.document, 64 * K, 8, false);
            case.document["metadata"]["max_total_tokens"] = json!(580_000);
        },
        Caught("log_gap"),
    ),
    (
        "the largest cell over a budget made to fit, the cut log closed up",
        RUN,
        |case| {
            hide_cell(&mut case.document, 64 * K, 8, true);
            case.document["metadata"]["max_total_tokens"] = json!(580_000);
        },
        Caught("cell_not_in_log"),
    ),
    (
        "the largest cell over a budget made to fit, the whole log rewritten",
        WHOLE,
        |case| {
            hide_cell(&mut case.document, 64 * K, 8, true);
            case.document["metadata"]["max_total_tokens"] = json!(580_000);
            edit_log(&mut case.document, |line| line.replace("622,592 tokens (38912 blocks", "580,000 tokens (36250 blocks"));
        },
        OnlyRemeasuring("a smaller cache would leave the same file; a challenge asks the engine for its cache, a probe runs the cell"),
    ),
    (
        "the budget of the log left as it was",
        WHOLE,
        |case| {
            hide_cell(&mut case.document, 64 * K, 8, true);
            case.document["metadata"]["max_total_tokens"] = json!(580_000);
        },
        Caught("kv_budget_mismatch"),
    ),
    (
        "a context dropped with its arguments and lines",
        WHOLE,
        |case| hide_context(&mut case.document, 248 * K),
        OnlyRemeasuring("a run may ask for what it likes; a challenge asks for what we like"),
    ),
    (
        "a context dropped under a longest context made to fit",
        WHOLE,
        |case| {
            for level in [1, 2] {
                hide_cell(&mut case.document, 248 * K, level, true);
            }
            edit_log(&mut case.document, |line| line.replace("model context length: 262,144", "model context length: 140,000"));
        },
        OnlyRemeasuring("the engine's own word in a challenge stands above the log's; a probe of a long context tells"),
    ),
    (
        "slow levels dropped for slots that this engine does not tell",
        WHOLE,
        |case| {
            hide_cell(&mut case.document, 0, 32, true);
            hide_cell(&mut case.document, 0, 64, true);
            case.document["event_log"].as_array_mut().unwrap().insert(6, json!("20:41:08 startup max running requests: 16"));
        },
        Caught("levels_dropped"),
    ),
    ("a run ended before its slow cells", RUN, |case| hide_cell(&mut case.document, 248 * K, 2, true), Caught("run_interrupted")),
    (
        "a slow cell that the wrapper's plan leaves out",
        WRAPPED,
        |case| {
            hide_cell(case.plain(), 4 * K, 8, true);
            for step in case.document["plan"].as_array_mut().unwrap() {
                if step["concurrency"] == 8 && step["context"] == 4 * K {
                    step["status"] = json!("skipped");
                }
            }
        },
        Caught("plan_skip_unexplained"),
    ),
    (
        "the better of two rows",
        RUN,
        |case| {
            let better = cell(&mut case.document, 0, 8).clone();
            rows(&mut case.document).push(better);
        },
        Caught("cell_doubled"),
    ),
    (
        "a cell nobody asked for",
        RUN,
        |case| {
            let mut row = cell(&mut case.document, 0, 8).clone();
            row["concurrency"] = json!(9);
            rows(&mut case.document).push(row);
        },
        Caught("cell_not_declared"),
    ),
    ("a queued flag", RUN, |case| cell(&mut case.document, 0, 32)["capacity_limited"] = json!(false), Caught("flag_mismatch")),
    ("queueing, with gauges and lines", RUN, |case| unqueue(&mut case.document, true), Caught("streams_missing")),
    ("queueing, with gauges only", RUN, |case| unqueue(&mut case.document, false), Caught("log_time_mismatch")),
    ("no log", RUN, |case| case.document["event_log"] = json!([]), Caught("log_missing")),
    ("a log in another order", RUN, |case| case.document["event_log"].as_array_mut().unwrap().swap(10, 40), Caught("log_clock")),
    (
        "no samples",
        RUN,
        |case| rows(&mut case.document).iter_mut().for_each(|row| row["request_samples"] = json!([])),
        Caught("cell_incomplete"),
    ),
    ("no tables", RUN, |case| drop(case.document.as_object_mut().unwrap().remove("summary_table")), Caught("summary_mismatch")),
];

/// The cells with 32 and 64 requests, of which 21 ran, as if all had.
pub fn unqueue(document: &mut Value, log: bool) {
    for level in [32, 64] {
        let row = cell(document, 0, level);
        for (key, value) in [
            ("capacity_limited", json!(false)),
            ("underfilled", json!(false)),
            ("warmup_timed_out", json!(false)),
            ("queue_fraction", json!(0.0)),
            ("max_queue_reqs", json!(0)),
            ("avg_queue_reqs", json!(0)),
            ("avg_running_reqs", json!(level)),
            ("max_running_reqs", json!(level)),
            ("effective_concurrency", json!(level)),
        ] {
            row[key] = value;
        }
        if log {
            let (from, to) = (format!("warmup timeout C={level} ctx=0 "), format!("ready C={level} ctx=0 "));
            edit_log(document, |line| line.replace(&from, &to));
        }
    }
}
