//! `rigmark measure` as a person runs it, against a simulated engine and a server that only looks like Rigmark.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rigmark::measure::simulated::{self, SimulatedConfig};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::engines::raw::{RawServer, json_answer};
use crate::support::TempDir;

pub fn rigmark(arguments: &[&str], folder: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rigmark"));
    command.args(arguments).current_dir(folder).env("RIGMARK_API_KEY", "rmk_test").kill_on_drop(true);
    command
}

/// The JSON body of a logged request, unpacked.
fn body_of(request: &[u8]) -> Value {
    let end = request.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&request[end..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_is_answered_and_a_failed_upload_can_be_repeated() {
    let engine = simulated::start(SimulatedConfig::at_speed("m", 300.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap();
    let is_up = Arc::new(AtomicUsize::new(0));
    let up = is_up.clone();
    let server = RawServer::start(move |request| {
        let challenge = json!({"id": "chl_1", "contexts": [0], "concurrency_levels": [2], "prefill_contexts": [700], "duration_seconds": 0.5, "max_tokens": 64,
            "machine_id": "mch_1", "model": "org/m", "expires_at": "2026-11-30T00:00:00Z"});
        let run = json!({"id": "run_1", "status": "verified", "label": "measured", "evidence_level": "challenged",
            "checks": [{"code": "hardware_unseen", "severity": "note", "message": "No GPU data.", "cells": []}]});
        let problem = json!({"code": "unavailable", "detail": "Down for a moment."}).to_string();
        Some(match request.split(' ').take(2).collect::<Vec<_>>().as_slice() {
            ["GET", "/api/v1/challenges/chl_1"] if request.contains("Bearer rmk_test") => json_answer("200 OK", &challenge.to_string()),
            ["POST", "/api/v1/matrix-runs"] if up.load(SeqCst) == 1 => json_answer("201 Created", &run.to_string()),
            ["POST", "/api/v1/matrix-runs"] => json_answer("503 Down\r\nretry-after: 0", &problem),
            _ => json_answer("404 No", "{}"),
        })
    })
    .await;
    let folder = TempDir::new();
    let output =
        rigmark(&["measure", "--url", &format!("{}/v1", engine.url()), "--challenge", "chl_1", "--server", &server.url], folder.path());
    let output = { output }.output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let again = format!("rigmark measure --upload-file rigmark-chl_1.json --server {} --challenge chl_1", server.url);
    assert!(errors.contains(&again) && errors.contains("Down for a moment"), "{errors}");
    assert!(!errors.contains("rmk_test"));

    is_up.store(1, SeqCst);
    let output = rigmark(&again.split(' ').skip(1).collect::<Vec<_>>(), folder.path()).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text} {}", String::from_utf8_lossy(&output.stderr));
    for part in ["Verdict: verified (evidence level challenged)", "hardware_unseen: No GPU data.", &format!("{}/en/runs/run_1", server.url)]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let requests = server.requests.lock().unwrap();
    let posts: Vec<Value> = requests.iter().filter(|r| r.starts_with(b"POST")).map(|r| body_of(r)).collect();
    assert_eq!(posts.len(), 4, "three tries, and the one by hand");
    assert!(posts.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!((posts[0]["machine_id"].as_str(), posts[0]["challenge_id"].as_str()), (Some("mch_1"), Some("chl_1")));
    let file: Value = serde_json::from_slice(&std::fs::read(folder.path().join("rigmark-chl_1.json")).unwrap()).unwrap();
    assert_eq!(posts[0]["document"], file);
    assert_eq!((file["results"][0]["concurrency"].as_u64(), file["metadata"]["max_tokens"].as_u64()), (Some(2), Some(64)));
    assert!(file["prefill"]["700"].is_object());
}

#[tokio::test]
async fn wrong_usage_is_told_before_anything_is_measured() {
    let folder = TempDir::new();
    for (arguments, part) in [
        (vec!["measure"], "--url"),
        (vec!["measure", "--url", "http://127.0.0.1:1", "--upload"], "--server"),
        (vec!["measure", "--url", "http://127.0.0.1:1", "--contexts", "many"], "no number of tokens"),
        (vec!["measure", "--url", "ftp://127.0.0.1", "--contexts", "0"], "http://"),
        (vec!["measure", "--url", "http://127.0.0.1:1", "--duration", "0"], "duration"),
        (vec!["simulate-engine", "--model", "m", "--decode-tps", "5"], "--prefill-tps"),
        (vec!["simulate-engine", "--model", "m", "--hardware", "abacus"], "abacus"),
    ] {
        let output = rigmark(&arguments, folder.path()).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(part), "{arguments:?}: {errors}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
