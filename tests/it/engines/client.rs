//! The client against good, bad and hostile engines.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use rigmark::base::secret::Secret;
use rigmark::base::{Code, clock};
use rigmark::engines::{EngineAddress, EngineClient, Target};
use rigmark::measure::simulated::{self, SimulatedConfig};
use serde_json::json;

use super::raw::{RawServer, json_answer};
use crate::support::wait_for;

pub fn target(url: &str) -> Target {
    Target { address: EngineAddress::parse(url).unwrap(), api_key: None, allow_private: true }
}

fn chat_body(model: &str, max_tokens: u64, stream: bool) -> Bytes {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": max_tokens, "stream": stream, "ignore_eos": true});
    Bytes::from(body.to_string())
}

#[tokio::test]
async fn a_simulated_engine_is_described_probed_and_known_as_simulated() {
    let engine = simulated::start(SimulatedConfig::at_speed("org/model", 500.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap();
    let (client, target) = (EngineClient::new().unwrap(), target(engine.url()));
    assert_eq!(client.models(&target).await.unwrap(), ["org/model"]);
    assert!(client.describe(&target).await.unwrap().is_simulated());
    assert!(client.is_alive(&target).await);
    let answer = client.one_token_probe(&target, "org/model").await.unwrap();
    assert_eq!((answer.model.as_str(), answer.completion_tokens), ("org/model", 1));
    assert!(!answer.text.is_empty());
    let error = client.one_token_probe(&target, "other").await.unwrap_err();
    assert_eq!(error.code(), Code::EngineError);
    engine.stop().await;
    wait_for("the engine's last connection is closed", Duration::from_secs(10), async || !client.is_alive(&target).await).await;
    assert_eq!(client.models(&target).await.unwrap_err().code(), Code::EngineUnreachable);
}

#[tokio::test]
async fn the_key_is_sent_and_never_printed() {
    let config = SimulatedConfig::at_speed("m", 500.0, 50_000.0).unwrap().with_api_key("sesame");
    let engine = simulated::start(config, "127.0.0.1:0").unwrap();
    let client = EngineClient::new().unwrap();
    let without = target(engine.url());
    assert_eq!(client.models(&without).await.unwrap_err().code(), Code::EngineError);
    let with = Target { api_key: Some(Secret::new("sesame".to_owned())), ..without };
    assert_eq!(client.models(&with).await.unwrap(), ["m"]);
    assert!(!format!("{with:?}").contains("sesame"));
}

#[tokio::test]
async fn names_and_literals_of_private_addresses_are_not_reached() {
    let server = RawServer::start(|_| Some(json_answer("200 OK", r#"{"data":[]}"#))).await;
    let client = EngineClient::new().unwrap();
    let port = server.url.rsplit(':').next().unwrap();
    for host in ["localhost", "127.0.0.1", "127.1", "[::ffff:127.0.0.1]"] {
        let private = target(&format!("http://{host}:{port}"));
        let refused = Target { allow_private: false, ..private.clone() };
        assert_eq!(client.models(&refused).await.unwrap_err().code(), Code::ForbiddenAddress, "{host}");
        assert_eq!(client.check(&refused).await.unwrap_err().code(), Code::ForbiddenAddress, "{host}");
        assert_eq!(server.connections.load(SeqCst), 0, "{host}");
    }
    assert!(client.models(&target(&format!("http://localhost:{port}"))).await.unwrap().is_empty());
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let goal = RawServer::start(|_| Some(json_answer("200 OK", r#"{"data":[]}"#))).await;
    let to = goal.url.clone();
    let from =
        RawServer::start(move |_| Some(format!("HTTP/1.1 307 Go\r\nlocation: {to}/v1/models\r\ncontent-length: 0\r\n\r\n").into_bytes()))
            .await;
    let client = EngineClient::new().unwrap();
    assert_eq!(client.models(&target(&from.url)).await.unwrap_err().code(), Code::EngineError);
    assert_eq!(client.chat(&target(&from.url), chat_body("m", 1, false), false).await.unwrap_err().code(), Code::EngineError);
    assert_eq!(goal.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn sizes_and_times_are_bounded() {
    let large = RawServer::start(|_| {
        let size = 5 << 20;
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + size, b' ');
        Some(answer)
    })
    .await;
    let client = EngineClient::new().unwrap();
    assert_eq!(client.models(&target(&large.url)).await.unwrap_err().code(), Code::EngineError);
    let silent = RawServer::start(|_| None).await;
    let started = clock::monotonic();
    assert_eq!(client.get(&target(&silent.url), "/v1/models", 1).await.unwrap_err().code(), Code::EngineUnreachable);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn answers_that_are_no_answers_are_engine_errors() {
    for body in ["", "{}", "[]", r#"{"data":{}}"#, "<html>", r#"{"data":[{"id":7}]}"#] {
        let server = RawServer::start(move |_| Some(json_answer("200 OK", body))).await;
        let error = EngineClient::new().unwrap().models(&target(&server.url)).await.unwrap_err();
        assert_eq!(error.code(), Code::EngineError, "{body}");
    }
    let empty =
        RawServer::start(|_| Some(json_answer("200 OK", r#"{"choices":[{"message":{"content":""}}],"usage":{"completion_tokens":0}}"#)))
            .await;
    assert_eq!(EngineClient::new().unwrap().one_token_probe(&target(&empty.url), "m").await.unwrap_err().code(), Code::EngineError);
    let reasoning =
        RawServer::start(|_| Some(json_answer("200 OK", r#"{"choices":[{"message":{"content":null,"reasoning_content":"Hm"}}]}"#))).await;
    assert_eq!(EngineClient::new().unwrap().one_token_probe(&target(&reasoning.url), "m").await.unwrap().text, "Hm");
}

#[tokio::test]
async fn connections_are_reused() {
    let server = RawServer::start(|_| Some(json_answer("200 OK", r#"{"data":[]}"#))).await;
    let client = EngineClient::new().unwrap();
    for _ in 0..5 {
        client.clone().models(&target(&server.url)).await.unwrap();
    }
    assert_eq!(server.connections.load(SeqCst), 1);
}

#[tokio::test]
async fn dropping_an_answer_stops_the_engine_at_once() {
    let config = SimulatedConfig::at_speed("m", 200.0, 5_000.0).unwrap().with_max_running(1);
    let engine = simulated::start(config, "127.0.0.1:0").unwrap();
    let (client, target) = (EngineClient::new().unwrap(), target(engine.url()));
    let mut streamed = client.chat(&target, chat_body("m", 100_000, true), true).await.unwrap();
    streamed.body.next().await.unwrap().unwrap();
    // Waits behind the first, so that it has no headers when it is dropped.
    let (waiting_client, waiting_target) = (client.clone(), target.clone());
    let waiting =
        tokio::spawn(async move { waiting_client.chat(&waiting_target, chat_body("m", 1, false), false).await.map(|r| r.status) });
    wait_for("the second request", Duration::from_secs(1), async || engine.load() == (1, 1)).await;
    waiting.abort();
    wait_for("the end of the waiting request", Duration::from_secs(1), async || engine.load() == (1, 0)).await;
    drop(streamed);
    wait_for("the end of the running request", Duration::from_secs(1), async || engine.load() == (0, 0)).await;
    let sent = engine.generated_tokens();
    client.one_token_probe(&target, "m").await.unwrap();
    assert_eq!(engine.generated_tokens(), sent + 1);
}
