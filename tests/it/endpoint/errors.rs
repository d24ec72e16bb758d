//! Every fault under `/v1` has OpenAI's shape, whoever finds it.

use serde_json::{Value, json};

use super::{ask, rented, streamed};
use crate::support::hosts::{RunRow, machine, person, published};
use crate::support::http::Answer;
use crate::support::renting::Stage;
use crate::support::scripted::{Manner, Scripted};
use crate::support::{Gone, TestApp};

#[track_caller]
fn assert_shape(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), &body["error"]["code"]), (status, &json!(code)), "{}", answer.body);
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    let error = body["error"].as_object().unwrap();
    let mut names: Vec<&str> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "message", "param", "type"]);
    assert!(!error["message"].as_str().unwrap().is_empty() && error["type"].as_str().unwrap().ends_with("_error"));
    assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()));
    body
}

#[tokio::test]
async fn faults_of_the_request() {
    let (stage, _) = rented("100").await;
    let (http, stranger) = (&stage.renter.http, &stage.app.http);
    let post = |body: &str| http.post("/v1/chat/completions").header("content-type", "application/json").body(body.to_owned()).answer();
    assert_shape(&stranger.get("/v1/models").answer().await, 401, "unauthenticated");
    assert_shape(&stranger.with_bearer("rmk_nonsense").get("/v1/models").answer().await, 401, "unauthenticated");
    assert_shape(&stranger.post("/v1/chat/completions").json(&ask("m", 1)).answer().await, 401, "unauthenticated");
    assert_shape(&http.get("/v1/nothing").answer().await, 404, "not_found");
    assert_shape(&http.get("/v1").answer().await, 404, "not_found");
    let wrong = http.put("/v1/chat/completions").answer().await;
    assert_shape(&wrong, 405, "method_not_allowed");
    assert_eq!(wrong.header("allow").as_deref(), Some("POST"));
    assert_shape(&http.delete("/v1/models").answer().await, 405, "method_not_allowed");
    assert_shape(&post("{\"model\":").await, 400, "malformed_request");
    assert_shape(&post("[]").await, 400, "invalid_input");
    let body = assert_shape(&post("{}").await, 400, "invalid_input");
    assert_eq!(body["error"]["param"], "model");
    assert_shape(&post("{\"model\": 5}").await, 400, "invalid_input");
    assert_shape(&post("").await, 400, "invalid_input");
    assert_shape(&post(&format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "x".repeat(20_000_001))).await, 413, "payload_too_large");
    let text = http.post("/v1/chat/completions").header("content-type", "text/plain").body("{}").answer().await;
    assert_shape(&text, 415, "unsupported_media_type");
    assert_shape(&post("{\"model\":\"no such\"}").await, 404, "not_found");
}

#[tokio::test]
async fn what_the_engine_refuses_is_the_engines_to_say() {
    let stage = Stage::new("100").await;
    let engine = Scripted::start(&["m"]).await;
    let offer = published(&stage.app, &stage.host, &engine.url, "1", &RunRow::default()).await;
    stage.rent_active(json!({ "listing_id": offer.listing })).await;
    let said = r#"{"error":{"message":"max_tokens is too large","type":"BadRequestError","param":null,"code":400}}"#;
    for status in [400, 404, 422, 429, 500, 503] {
        engine.chat(Manner::With(status, "retry-after: 7", said.to_owned()));
        for form in [ask("m", 1), streamed("m", 1)] {
            let answer = stage.renter.http.post("/v1/chat/completions").json(&form).answer().await;
            assert_eq!((answer.status.as_u16(), answer.body.as_str()), (status, said));
            assert_eq!(answer.header("retry-after").as_deref(), Some("7"));
        }
    }
    // The host's key is the host's business: the caller's own is fine.
    for status in [401, 403] {
        engine.chat(Manner::Answer(status, said.to_owned()));
        let answer = stage.renter.http.post("/v1/chat/completions").json(&ask("m", 1)).answer().await;
        assert_shape(&answer, 502, "engine_error");
    }
    engine.chat(Manner::With(302, "location: http://127.0.0.1:1/", String::new()));
    let answer = stage.renter.http.post("/v1/chat/completions").json(&ask("m", 1)).answer().await;
    assert_shape(&answer, 502, "engine_error");
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_a_bad_gateway() {
    let stage = Stage::new("100").await;
    let engine = Scripted::start(&["m"]).await;
    let url = engine.url.clone();
    let offer = published(&stage.app, &stage.host, &url, "1", &RunRow::default()).await;
    stage.rent_active(json!({ "listing_id": offer.listing })).await;
    drop(engine);
    let _gone = Gone::at(&url).await;
    for form in [ask("m", 1), streamed("m", 1)] {
        let answer = stage.renter.http.post("/v1/chat/completions").json(&form).answer().await;
        let body = assert_shape(&answer, 502, "engine_unreachable");
        assert!(!answer.body.contains("127.0.0.1"), "the address is the host's: {body}");
        assert_eq!(body["error"]["type"], "server_error");
    }
}

/// A simulated engine asks for its key; it is sent, and nobody else gets to know it.
#[tokio::test]
async fn the_hosts_engine_key_is_used_and_never_shown() {
    let app = TestApp::new().await;
    let host = person(&app, "host").await;
    let config = rigmark::measure::simulated::SimulatedConfig::at_speed("m", 500.0, 50_000.0).unwrap().with_api_key("sesame-key");
    let engine = rigmark::measure::simulated::start(config, "127.0.0.1:0").unwrap();
    let form = json!({ "name": "garage", "hardware": { "gpu": "RTX 3090" , "gpu_count": 1 }, "endpoint": { "url": engine.url(), "api_key": "sesame-key" } });
    host.http.post("/api/v1/machines").json(&form).expect(201).await;
    let answer = host.http.post("/v1/chat/completions").json(&ask("m", 2)).answer().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.body.contains("sesame") && !format!("{:?}", answer.headers).contains("sesame"));
    // The caller's own token goes to nobody.
    let spy = Scripted::start(&["n"]).await;
    machine(&host, Some(&spy.url)).await;
    let answer = host.http.post("/v1/chat/completions").json(&ask("n", 2)).answer().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(spy.heads().iter().all(|head| !head.to_lowercase().contains("authorization")), "{:?}", spy.heads());
}
