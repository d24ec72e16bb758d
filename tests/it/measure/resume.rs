//! A run that was broken off is gone on with, and only by a run of the same kind.

use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use rigmark::engines::EngineClient;
use rigmark::measure::matrix::{MatrixPlan, Progress, go_on, run_matrix};
use rigmark::measure::resume::Earlier;
use rigmark::measure::simulated::{self, SimulatedConfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::rigmark;
use super::matrix::{check_cell, plan};
use super::simulated::target;
use crate::support::{TempDir, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_missing_is_measured() {
    let engine = simulated::start(SimulatedConfig::at_speed("m", 300.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap();
    let (client, target, cancel) = (EngineClient::new().unwrap(), target(&engine), CancellationToken::new());
    let saved = Mutex::new(Vec::new());
    let stop_at_second = |progress: Progress<'_>| match progress {
        Progress::Line(line) if line.contains("cell start C=3") => cancel.cancel(),
        Progress::Document(document) => saved.lock().unwrap().push(document.clone()),
        _ => {}
    };
    let first = run_matrix(&client, &target, None, &plan(), &stop_at_second, &cancel).await.unwrap().document;
    assert_eq!(first["results"].as_array().unwrap().len(), 2);
    // Whoever pulls the plug has the same but the line of the cell that began.
    let last = saved.into_inner().unwrap().pop().unwrap();
    assert_eq!((&last["results"], &last["prefill"]), (&first["results"], &first["prefill"]));

    let mut broken = first.clone();
    broken["results"][1]["aggregate_tps"] = json!(-4.0);
    let earlier = Earlier::parse(broken.to_string().as_bytes()).unwrap();
    let lines = Mutex::new(Vec::new());
    let see = |progress: Progress<'_>| {
        if let Progress::Line(line) = progress {
            lines.lock().unwrap().push(line.to_owned());
        }
    };
    let outcome = go_on(&client, &target, None, &plan(), Some(&earlier), &see, &CancellationToken::new()).await.unwrap();
    assert!(outcome.is_complete);
    assert_eq!((outcome.kept_cells, outcome.cells.len()), (1, 3), "the failed one is measured again");
    let second = outcome.document;
    assert_eq!(second["results"][0], first["results"][0]);
    assert_eq!(second["prefill"], first["prefill"]);
    assert_eq!(second["metadata"]["chars_per_token"], first["metadata"]["chars_per_token"]);
    for cell in second["results"].as_array().unwrap() {
        check_cell(&second, cell);
    }
    assert!(lines.lock().unwrap().iter().all(|line| !line.contains("prefill start")), "the rows were there");

    let other = MatrixPlan { max_tokens: 41, ..plan() };
    let refused = go_on(&client, &target, None, &other, Some(&earlier), &|_| (), &CancellationToken::new()).await;
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("max_tokens was 40, now 41"), "{error}");
    for foreign in ["{", "{}", r#"{"metadata":{"client":"other"},"results":[]}"#, r#"{"metadata":{"client":"rigmark-measure 0.1.0"}}"#] {
        assert!(Earlier::parse(foreign.as_bytes()).is_err(), "{foreign}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_keeps_the_file_and_the_same_command_goes_on() {
    let engine = simulated::start(SimulatedConfig::at_speed("m", 300.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap();
    let folder = TempDir::new();
    let url = engine.url().to_owned();
    let arguments =
        ["measure", "--url", &url, "--contexts", "0,600", "--concurrency", "1,2", "--prefill-contexts", "900", "--duration", "0.5"];
    let mut command = rigmark(&[&arguments[..], &["--output", "mine.json"]].concat(), folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let cells = || {
        let text = std::fs::read(folder.path().join("mine.json")).unwrap_or_default();
        let document: Value = serde_json::from_slice(&text).unwrap_or_default();
        document["results"].as_array().map_or(0, Vec::len)
    };
    wait_for("the first cell", Duration::from_secs(30), async || cells() > 0).await;
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    // SAFETY: a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let output = child.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("--resume mine.json") && errors.contains("step 1 of 5") && errors.contains(" left"), "{errors}");
    let kept = cells();
    assert!((1..4).contains(&kept), "{kept} cells");

    let output = rigmark(&[&arguments[..], &["--resume", "mine.json"]].concat(), folder.path()).output().await.unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(text.contains(&format!("{} cells measured, {kept} kept, 0 failed", 4 - kept)), "{text}");
    let output = rigmark(&["verify", "mine.json"], folder.path()).output().await.unwrap();
    // A busy computer may bring it before a person; nothing may be wrong in it.
    let verdict = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)) && !verdict.contains("  error"), "{verdict}");
    assert!(verdict.contains("2 prefill rows; 4 decode cells"), "{verdict}");
}
