//! Engines that are no vLLM: loading, refusing, caching, cutting off, silent.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rigmark::engines::{EngineAddress, EngineClient, Target};
use rigmark::measure::matrix::{MatrixOutcome, MatrixPlan, Progress, run_matrix};
use rigmark::measure::stream::{request_body, run_request};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::client::rigmark;
use crate::engines::raw::{RawServer, json_answer};
use crate::support::{TempDir, wait_for};

const MODELS: &str = r#"{"object":"list","data":[{"id":"m","object":"model","owned_by":"test"}]}"#;

fn target(url: &str) -> Target {
    let key = rigmark::base::secret::Secret::new("sk-engine-secret".to_owned());
    Target { address: EngineAddress::parse(url).unwrap(), api_key: Some(key), allow_private: true }
}

/// An event stream in pieces of `size` bytes, that ends or is left open.
fn stream(text: &str, size: usize, ends: bool) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in text.as_bytes().chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    if ends {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    out
}

fn words(count: usize) -> String {
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" é\"},\"finish_reason\":null}]}\n\n".repeat(count)
}

/// One token, with what the engine says of its prompt.
fn one(prompt_tokens: u64, cached_tokens: u64) -> String {
    format!(
        "{}data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt_tokens},\"completion_tokens\":1,\"prompt_tokens_details\":{{\"cached_tokens\":{cached_tokens}}}}}}}\n\ndata: [DONE]\n\n",
        words(1)
    )
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap_or(Value::Null)
}

/// Whether the request wants a single token.
fn is_scout(request: &str) -> bool {
    body(request)["max_tokens"] == 1
}

fn plan() -> MatrixPlan {
    MatrixPlan {
        contexts: vec![0],
        concurrency_levels: vec![2],
        prefill_contexts: vec![],
        duration: Duration::from_millis(500),
        max_tokens: 64,
    }
}

/// The outcome, and the lines that were told.
async fn measure(server: &RawServer, plan: &MatrixPlan) -> (rigmark::base::Result<MatrixOutcome>, String) {
    let lines = Mutex::new(String::new());
    let see = |progress: Progress<'_>| {
        if let Progress::Line(line) = progress {
            *lines.lock().unwrap() += &format!("{line}\n");
        }
    };
    let client = EngineClient::new().unwrap();
    let outcome = run_matrix(&client, &target(&server.url), None, plan, &see, &CancellationToken::new()).await;
    (outcome, lines.into_inner().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_token_of_many_streams_is_counted_once() {
    let server = RawServer::start(|request| {
        let count = usize::try_from(body(request)["max_tokens"].as_u64()?).ok()?;
        Some(stream(&(words(count) + "data: [DONE]\n\n"), 1 + count % 97, true))
    })
    .await;
    let (client, target, never) = (EngineClient::new().unwrap(), target(&server.url), CancellationToken::new());
    let mut streams = tokio::task::JoinSet::new();
    for count in 1..=128 {
        let (client, target, never) = (client.clone(), target.clone(), never.clone());
        streams.spawn(async move {
            let mut told = 0;
            let record = run_request(&client, &target, request_body("m", "hello", count), &never, |tokens| told += tokens).await;
            (count, told, record)
        });
    }
    for (count, told, record) in streams.join_all().await {
        assert_eq!((record.tokens(), told, record.text_chunks, &record.error), (count, count, count, &None));
        assert!(record.completed.is_some());
    }
}

#[tokio::test]
async fn a_connection_whose_stream_has_ended_serves_the_next_request() {
    let server = RawServer::start(|_| Some(stream(&one(5, 0), 50, true))).await;
    let (client, target) = (EngineClient::new().unwrap(), target(&server.url));
    for _ in 0..3 {
        let record = run_request(&client, &target, request_body("m", "hello", 1), &CancellationToken::new(), |_| ()).await;
        assert_eq!((record.tokens(), record.error), (1, None));
    }
    assert_eq!(server.connections.load(SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_without_a_word_costs_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = target(&format!("http://{}", listener.local_addr().unwrap()));
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move {
        let mut bytes = [0; 4_096];
        while let Ok((mut socket, _)) = listener.accept().await {
            // One answer a connection; the next request on it is read and dropped.
            if matches!(socket.read(&mut bytes).await, Ok(1..)) && socket.write_all(&stream(&one(5, 0), 1_000, true)).await.is_ok() {
                let _dropped = socket.read(&mut bytes).await;
            }
        }
    });
    let client = EngineClient::new().unwrap();
    for _ in 0..3 {
        let record = run_request(&client, &target, request_body("m", "hello", 1), &CancellationToken::new(), |_| ()).await;
        assert_eq!((record.tokens(), record.error), (1, None));
    }
}

#[tokio::test]
async fn a_loading_engine_is_waited_for_and_a_prefix_of_its_path_kept() {
    let (looks, asks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = RawServer::start(move |request| {
        assert!(request.starts_with("GET /gpu/7/") || request.starts_with("POST /gpu/7/v1/chat/completions "), "{request}");
        let loading = |status: &str| Some(json_answer(status, r#"{"error":{"message":"Loading model","type":"unavailable_error"}}"#));
        if request.starts_with("GET /gpu/7/v1/models ") {
            return if looks.fetch_add(1, SeqCst) == 0 { loading("503 Wait") } else { Some(json_answer("200 OK", MODELS)) };
        }
        if request.starts_with("GET") {
            return Some(json_answer("404 No", "{}"));
        }
        match asks.fetch_add(1, SeqCst) {
            0 => loading("503 Wait\r\nretry-after: 0"),
            1 => loading("429 Wait\r\nretry-after: 0"),
            _ => Some(stream(&one(900, 0), 1_000, true)),
        }
    })
    .await;
    let lines = Mutex::new(String::new());
    let see = |progress: Progress<'_>| {
        if let Progress::Line(line) = progress {
            *lines.lock().unwrap() += line;
        }
    };
    let plan = MatrixPlan { concurrency_levels: vec![], prefill_contexts: vec![1_000], ..plan() };
    let client = EngineClient::new().unwrap();
    let outcome =
        run_matrix(&client, &target(&format!("{}/gpu/7/", server.url)), None, &plan, &see, &CancellationToken::new()).await.unwrap();
    assert!(lines.into_inner().unwrap().contains("loading or busy"));
    assert_eq!(outcome.document["prefill"]["1000"]["prompt_tokens"], 900);
}

#[tokio::test]
async fn an_api_that_knows_no_engine_options_is_asked_without_them() {
    let server = RawServer::start(|request| {
        Some(match request.split(' ').next() {
            Some("GET") if request.contains("/v1/models ") => json_answer("200 OK", MODELS),
            Some("POST") if request.contains("ignore_eos") || request.contains("continuous_usage_stats") => {
                json_answer("400 Bad", r#"{"error":{"message":"Unrecognized request argument supplied: ignore_eos"}}"#)
            }
            Some("POST") => stream(&one(900, 0), 1_000, true),
            _ => json_answer("404 No", "{}"),
        })
    })
    .await;
    let plan = MatrixPlan { concurrency_levels: vec![], prefill_contexts: vec![1_000], ..plan() };
    let (outcome, lines) = measure(&server, &plan).await;
    let document = outcome.unwrap().document;
    assert!(lines.contains("takes no ignore_eos"), "{lines}");
    assert_eq!((&document["metadata"]["ignore_eos"], &document["prefill"]["1000"]["samples"]), (&json!(false), &json!(1)));
}

#[tokio::test]
async fn a_refusal_is_told_in_the_engines_words_but_without_the_key() {
    let server = RawServer::start(|request| {
        Some(match request.contains("/v1/models ") {
            true => json_answer("200 OK", MODELS),
            false => json_answer("401 No", r#"{"error":{"message":"Incorrect API key provided: sk-engine-secret"}}"#),
        })
    })
    .await;
    let (outcome, lines) = measure(&server, &plan()).await;
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("status 401") && error.contains("provided: [key]") && !lines.contains("sk-engine"), "{error} {lines}");
}

#[tokio::test]
async fn streams_that_break_make_a_failed_cell_that_says_why() {
    let ends = [
        // An error between the tokens, a stream that ends without its mark, one that is cut off, and one that falls silent.
        (stream(&(words(3) + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n"), 400, true), "out of memory"),
        (stream(&words(3), 400, true), "ended without [DONE]"),
        (json_answer("429 Slow down", r#"{"error":{"message":"too many requests"}}"#), "status 429"),
        (stream(&words(3), 400, false), "no token came within the window"),
    ];
    for (answer, reason) in ends {
        let server = RawServer::start(move |request| {
            Some(match request.split(' ').next() {
                Some("GET") if request.contains("/v1/models ") => json_answer("200 OK", MODELS),
                Some("GET") => json_answer("404 No", "{}"),
                _ if is_scout(request) || request.contains("warm-up") => stream(&one(5, 0), 1_000, true),
                _ => answer.clone(),
            })
        })
        .await;
        let (outcome, lines) = measure(&server, &plan()).await;
        let cell = &outcome.unwrap().document["results"][0];
        assert_eq!((cell["aggregate_tps"].as_f64(), cell["aggregate_source"].as_str()), (Some(-4.0), Some("invalid_stream_failure")));
        assert!(cell["failure_reason"].as_str().unwrap().contains(reason), "{reason}: {cell}");
        assert!(lines.contains("cell failed C=2 ctx=0"), "{lines}");
    }
}

#[tokio::test]
async fn a_prompt_that_was_cached_is_told_and_found_by_the_checks() {
    let server = RawServer::start(|request| {
        Some(match request.split(' ').next() {
            Some("GET") if request.contains("/v1/models ") => json_answer("200 OK", MODELS),
            Some("GET") => json_answer("404 No", "{}"),
            _ => stream(
                &one(1_000, if body(request)["messages"][0]["content"].as_str().map_or(0, str::len) > 2_000 { 900 } else { 0 }),
                1_000,
                true,
            ),
        })
    })
    .await;
    let plan = MatrixPlan { concurrency_levels: vec![], prefill_contexts: vec![1_000], ..plan() };
    let (outcome, lines) = measure(&server, &plan).await;
    assert!(lines.contains("900 of 1,000 prompt tokens came from the engine's cache"), "{lines}");
    assert_eq!(outcome.unwrap().document["prefill"]["1000"]["server_validation"]["cached_tokens"], 900);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_never_answers_can_be_left() {
    let server = RawServer::start(|request| match request.contains("/v1/models ") {
        true => Some(json_answer("200 OK", MODELS)),
        false => (!request.starts_with("POST")).then(|| json_answer("404 No", "{}")),
    })
    .await;
    let folder = TempDir::new();
    let mut command = rigmark(&["measure", "--url", &server.url, "--contexts", "0", "--concurrency", "1"], folder.path());
    let child = command.env("RIGMARK_ENGINE_KEY", "sk-engine-secret").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_asked = || server.requests.lock().unwrap().iter().any(|request| request.starts_with(b"POST"));
    wait_for("the first request", Duration::from_secs(20), async || is_asked()).await;
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    // SAFETY: a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let output = child.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("before anything was measured") && !errors.contains("sk-engine") && !errors.contains("rmk_test"), "{errors}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file of nothing");
}
