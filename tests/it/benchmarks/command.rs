//! `rigmark verify`: the same verdict offline, by exit status, text and JSON.

use std::path::PathBuf;

use rigmark::cli::verify::{VerifyArgs, verify};
use serde_json::Value;

use super::path;

fn run(file: PathBuf, claim: Option<PathBuf>, json: bool) -> (u8, String, String) {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let status = verify(&VerifyArgs { file, claim, json }, &mut out, &mut errors);
    (status, String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap())
}

fn temporary(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

#[test]
fn exit_status_says_the_verdict() {
    for (name, status) in [
        ("reference-run.json", 0),
        ("synthetic_lil_bench_wrapped.json.gz", 0),
        ("real_llamacpp_cpu_completed.json", 1),
        ("page-transcribed.json", 2),
    ] {
        assert_eq!(run(path(name), None, false).0, status, "{name}");
        assert_eq!(run(path(name), None, true).0, status, "{name}");
    }
    let (status, out, errors) = run(temporary("{\"a\": 1").path().into(), None, false);
    assert_eq!((status, out.as_str()), (3, ""));
    assert!(errors.starts_with("unreadable: truncated"), "{errors}");
    let (status, _, errors) = run(path("no-such-file.json"), None, false);
    assert_eq!(status, 64);
    assert!(errors.contains("no-such-file.json"));
    let (status, _, errors) = run(path("reference-run.json"), Some(temporary("{\"model\": 3}").path().into()), false);
    assert_eq!(status, 64, "{errors}");
}

#[test]
fn json_has_verdict_rules_checks_and_matrix() {
    let (status, out, _) = run(path("reference-run.json"), Some(path("reference-run.meta.json")), true);
    let body: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status, 0);
    assert_eq!(body["verdict"], "verified");
    assert!(body["rules_version"].is_string() && body["checks"].as_array().unwrap().is_empty());
    assert_eq!(body["title"], "Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB");
    assert_eq!(body["matrix"]["decode"].as_array().unwrap().len(), 48);
    assert_eq!(body["matrix"]["kv_capacity"]["at_least_tokens"], 589_824);
    let first = &body["matrix"]["decode"][0];
    for key in ["status", "total_tokens_per_second", "per_request_tokens_per_second", "ttft_ms", "itl_ms", "average_active_requests"] {
        assert!(!first[key].is_null(), "{key}");
    }
    let (_, out, _) = run(path("page-transcribed.json"), None, true);
    let body: Value = serde_json::from_str(&out).unwrap();
    let check = &body["checks"][0];
    assert_eq!((check["code"].as_str(), check["severity"].as_str()), (Some("total_mismatch"), Some("error")));
    assert!(check["cells"].as_array().unwrap().len() > 10 && check["message"].is_string());
}

#[test]
fn text_says_what_was_found() {
    let (_, out, _) = run(path("reference-run.json"), Some(path("reference-run.meta.json")), false);
    assert!(out.starts_with("verified\n"), "{out}");
    assert!(out.contains("5 prefill rows; 48 decode cells: 21 valid, 4 queued, 23 over capacity"), "{out}");
    let (_, out, _) = run(path("real_llamacpp_cpu_completed.json"), None, false);
    assert!(out.contains("suspicious  usage_overreported"), "{out}");
}
