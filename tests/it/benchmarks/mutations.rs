//! Every single number of the reference run, changed by itself. What stays verified is listed here with the reason; a new survivor fails.

use std::collections::BTreeMap;

use rigmark::benchmarks::Verdict;
use rigmark::benchmarks::document::Document;
use rigmark::benchmarks::redact;
use serde_json::{Value, json};

use super::{findings, value, verdict};

/// Blocks that hold no measurement.
const NO_MEASUREMENT: &[&str] =
    &["_reconstructed", "methodology", "nvidia_p2p_override", "startup_diagnostics", "p2pmark", "amd_fabric", "loop_detection"];
/// The samples of one stream stand for those of all.
const SAMPLES_TRIED: usize = 1;
/// Every second cell: queued and valid ones, first and last of a context are among them.
const CELL_STEP: usize = 2;

/// (path with `*` for indexes, which changes survive, why they may)
const SURVIVORS: &[(&str, &str, &str)] = &[
    ("results/*/server_output_tokens", "small", "within the three per cent by which two counters may differ; not shown"),
    (
        "results/*/server_gen_throughput",
        "small large",
        "the server polls its window; without its token counter nothing bounds it; not shown",
    ),
    ("results/*/total_tokens", "large", "where chunks are counted: another count of theirs; not shown"),
    ("results/*/server_utilization", "small", "a gauge after the cell, any share is possible; not shown"),
    ("results/*/wall_time", "small large", "the log's clock has whole seconds, and the first line is cut off; not shown"),
    ("results/*/warmup_duration", "small", "the log's clock has whole seconds; not shown"),
    ("results/*/max_running_reqs", "small large", "any peak of a queued cell, and before 0.4.33 streams still winding down; not shown"),
    ("results/*/max_queue_reqs", "small large", "of a queued cell: any length; not shown"),
    ("results/*/server_spec_accept_rate", SETTING, SPECULATION),
    ("results/*/server_spec_accept_length", SETTING, SPECULATION),
    ("results/*/server_spec_accepted_tokens", SETTING, SPECULATION),
    ("results/*/server_spec_draft_tokens", SETTING, SPECULATION),
    ("results/*/server_spec_drafts", SETTING, SPECULATION),
    ("results/*/server_engine_steps", SETTING, SPECULATION),
    ("results/*/server_steps_per_s", SETTING, SPECULATION),
    ("results/*/server_accept_len_effective", SETTING, SPECULATION),
    ("results/*/accept_norm_tps", SETTING, SPECULATION),
    ("results/*/accept_norm_ref_len", SETTING, SPECULATION),
    ("results/*/loop_diagnostics_omitted", SETTING, UNREAD),
    ("results/*/warmup_request_count", SETTING, UNREAD),
    ("prefill/*/server_validation/cached_tokens", "small large", "less than a tenth of the prompt"),
    ("prefill/*/server_validation/prefill_seconds", SETTING, UNREAD),
    ("prefill/*/server_validation/prompt_tokens", SETTING, UNREAD),
    ("prefill/*/server_validation/request_prompt_tokens", SETTING, UNREAD),
    ("prefill/*/server_validation/samples", SETTING, UNREAD),
    ("prefill/*/server_validation/tok_per_sec", SETTING, UNREAD),
    ("prefill/*/prompt_tokens", "small", "within the rounding of rate and time"),
    ("metadata/max_total_tokens", "small", "any budget that skips the same cells; the capacity shown comes from the cells"),
    ("metadata/burst_request_count", SETTING, UNREAD),
    ("metadata/burst_requests_per_concurrency", SETTING, UNREAD),
    ("metadata/burst_warmup_request_count", SETTING, UNREAD),
    ("metadata/cell_warmup_timeout_seconds", SETTING, UNREAD),
    ("metadata/dcp_size", SETTING, UNREAD),
    ("metadata/decode_warmup_concurrency", SETTING, UNREAD),
    ("metadata/decode_warmup_context", SETTING, UNREAD),
    ("metadata/decode_warmup_seconds", SETTING, UNREAD),
    ("metadata/warmup_request_count", SETTING, UNREAD),
];
const SETTING: &str = "small large";
const UNREAD: &str = "a setting or the server's own word: no number shown or checked depends on it";
const SPECULATION: &str = "the server's counters of speculation: never shown, no speed comes from them";

fn leaves(value: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if path.len() < 2 && NO_MEASUREMENT.contains(&key.as_str()) {
                    continue;
                }
                path.push(key.clone());
                leaves(value, path, out);
                path.pop();
            }
        }
        Value::Array(items) => {
            let tried = if path.last().is_some_and(|key| key == "request_samples") { SAMPLES_TRIED } else { items.len() };
            let step = if path.last().is_some_and(|key| key == "results") { CELL_STEP } else { 1 };
            for (index, item) in items.iter().enumerate().take(tried).step_by(step) {
                path.push(index.to_string());
                leaves(item, path, out);
                path.pop();
            }
        }
        Value::Number(_) => out.push(path.clone()),
        _ => {}
    }
}

/// A change by a hundredth (or by one, for a whole number below a hundred), and one by half.
fn changes(number: &Value) -> Vec<(&'static str, Value)> {
    let n = number.as_f64().unwrap();
    let whole = number.is_u64() || number.is_i64();
    let make = |n: f64| if whole { json!(n.round() as i64) } else { json!(n) };
    let small = if n == 0.0 || (whole && n.abs() < 100.0) { n + 1.0 } else { n * 1.01 };
    let large = if n == 0.0 { 50.0 } else { n * 1.5 + if whole { 1.0 } else { 0.0 } };
    vec![("small", make(small)), ("large", make(large))]
}

fn general(path: &[String]) -> String {
    path.iter()
        .map(|part| if part.parse::<u64>().is_ok() { "*" } else { part })
        .collect::<Vec<_>>()
        .join("/")
        .replace("burst_results", "results")
}

/// (path, size) → (verified, tried), over the changes of one document.
fn survivors(name: &str, sizes: &[&str]) -> BTreeMap<(String, &'static str), (usize, usize)> {
    let mut document = redact::document(value(name)).value;
    assert_eq!(verdict(&document), Verdict::Verified);
    let mut paths = Vec::new();
    leaves(&document, &mut Vec::new(), &mut paths);
    let mut survivors: BTreeMap<(String, &str), (usize, usize)> = BTreeMap::new();
    for path in &paths {
        let pointer = format!("/{}", path.join("/"));
        let before = document.pointer(&pointer).unwrap().clone();
        for (size, after) in changes(&before).into_iter().filter(|(size, _)| sizes.contains(size)) {
            *document.pointer_mut(&pointer).unwrap() = after;
            let verified = Document::of(&document).is_ok() && verdict(&document) == Verdict::Verified;
            let entry = survivors.entry((general(path), size)).or_default();
            entry.1 += 1;
            entry.0 += usize::from(verified);
        }
        *document.pointer_mut(&pointer).unwrap() = before;
    }
    survivors
}

fn unknown(name: &str, survivors: &BTreeMap<(String, &'static str), (usize, usize)>) -> Vec<String> {
    println!("{name}: {} changes; still verified:", survivors.values().map(|(_, tried)| tried).sum::<usize>());
    let mut unexpected = Vec::new();
    for ((path, size), (verified, tried)) in survivors.iter().filter(|(_, (verified, _))| *verified > 0) {
        let known = SURVIVORS.iter().find(|(known, sizes, _)| known == path && sizes.contains(size));
        println!("{verified:>4} of {tried:>4}  {size:<6} {path}: {}", known.map_or("NOT EXPECTED", |(.., why)| why));
        if known.is_none() {
            unexpected.push(format!("{name}: {path}"));
        }
    }
    unexpected
}

#[test]
fn numbers_of_the_reference_run_changed_one_by_one_are_found_out() {
    let survivors = survivors("reference-run.json", &["small", "large"]);
    assert_eq!(unknown("reference-run.json", &survivors), Vec::<String>::new());
    let gone: Vec<_> = SURVIVORS.iter().filter(|(path, ..)| !survivors.keys().any(|(known, _)| known == path)).collect();
    assert!(gone.is_empty(), "listed but not in the document: {gone:?}");
}

#[test]
fn numbers_of_genuine_documents_changed_one_by_one_are_found_out() {
    let names =
        ["v04_over_capacity.json", "v04_request_count.json", "v04_burst.json", "v04_spec_multi_token.json", "real_llamacpp_cpu.json"];
    let unknown: Vec<String> = names.iter().flat_map(|name| unknown(name, &survivors(name, &["large"]))).collect();
    assert_eq!(unknown, Vec::<String>::new());
}

/// The lines of the log, one number at a time.
#[test]
fn numbers_of_the_log_changed_one_by_one_are_found_out() {
    let mut document = redact::document(value("reference-run.json")).value;
    let lines = document["event_log"].as_array().unwrap().len();
    for line in 0..lines {
        let before = document["event_log"][line].as_str().unwrap().to_owned();
        let edits: Vec<String> = [("cell done", "tok/s"), ("integrated prefill done", "tok/s")]
            .iter()
            .filter(|(start, _)| before[9..].starts_with(start))
            .map(|_| {
                let words: Vec<&str> = before.split(' ').collect();
                let at = words.iter().position(|word| *word == "tok/s").unwrap() - 1;
                let faster = words[at].replace(',', "").parse::<f64>().unwrap() * 1.1;
                before.replace(&format!(" {} tok/s", words[at]), &format!(" {faster:.1} tok/s"))
            })
            .chain(before[9..].starts_with("cell done").then(|| before.replace("cell done", "cell gone")))
            .collect();
        for edit in edits {
            document["event_log"][line] = json!(edit);
            assert_ne!(verdict(&document), Verdict::Verified, "{edit}: {:?}", findings(&document));
        }
        document["event_log"][line] = json!(before);
    }
    assert_eq!(verdict(&document), Verdict::Verified);
}
