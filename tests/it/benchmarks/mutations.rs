//! Every single number of the reference run, changed by itself. What stays verified is listed here with the reason; a new survivor fails.

use std::collections::BTreeMap;

use rigmark::benchmarks::Verdict;
use rigmark::benchmarks::redact;
use serde_json::{Value, json};

use super::{findings, value, verdict};

/// Blocks that hold no measurement.
const NO_MEASUREMENT: &[&str] = &["_reconstructed", "methodology", "nvidia_p2p_override", "startup_diagnostics", "p2pmark", "amd_fabric"];
/// The samples of one stream stand for those of all.
const SAMPLES_TRIED: usize = 2;

/// (path with `*` for indexes, which changes survive, why they may)
const SURVIVORS: &[(&str, &str, &str)] = &[];

fn leaves(value: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if path.is_empty() && NO_MEASUREMENT.contains(&key.as_str()) {
                    continue;
                }
                path.push(key.clone());
                leaves(value, path, out);
                path.pop();
            }
        }
        Value::Array(items) => {
            let tried = if path.last().is_some_and(|key| key == "request_samples") { SAMPLES_TRIED } else { items.len() };
            for (index, item) in items.iter().take(tried).enumerate() {
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
    path.iter().map(|part| if part.parse::<u64>().is_ok() { "*" } else { part }).collect::<Vec<_>>().join("/")
}

#[test]
fn numbers_changed_one_by_one_are_found_out() {
    let mut document = redact::document(value("reference-run.json")).value;
    assert_eq!(verdict(&document), Verdict::Verified);
    let mut paths = Vec::new();
    leaves(&document, &mut Vec::new(), &mut paths);
    let mut tried = 0;
    let mut survivors: BTreeMap<(String, &str), (usize, usize)> = BTreeMap::new();
    for path in &paths {
        let pointer = format!("/{}", path.join("/"));
        let before = document.pointer(&pointer).unwrap().clone();
        for (size, after) in changes(&before) {
            *document.pointer_mut(&pointer).unwrap() = after;
            let verified = rigmark::benchmarks::document::Document::of(&document).is_ok() && verdict(&document) == Verdict::Verified;
            let entry = survivors.entry((general(path), size)).or_default();
            entry.1 += 1;
            entry.0 += usize::from(verified);
            tried += 1;
        }
        *document.pointer_mut(&pointer).unwrap() = before;
    }
    println!("{} numbers, {tried} changes; still verified:", paths.len());
    let mut unexpected = Vec::new();
    for ((path, size), (verified, all)) in survivors.iter().filter(|(_, (verified, _))| *verified > 0) {
        let known = SURVIVORS.iter().find(|(known, sizes, _)| known == path && sizes.contains(size));
        println!("{verified:>4} of {all:>4}  {size:<6} {path}: {}", known.map_or("NOT EXPECTED", |(.., why)| why));
        if known.is_none() {
            unexpected.push(path);
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:?}");
    let gone: Vec<_> = SURVIVORS.iter().filter(|(path, ..)| !survivors.keys().any(|(known, _)| known == path)).collect();
    assert!(gone.is_empty(), "listed but not in the document: {gone:?}");
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
