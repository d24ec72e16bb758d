//! The endpoint over HTTP: who reaches which model, what passes through, and how answers end.

mod errors;
mod reach;
mod streams;

use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};
use serde_json::{Value, json};

use crate::support::http::Http;
use crate::support::renting::Stage;

/// A request for so many tokens.
fn ask(model: &str, max_tokens: u64) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "count" }], "max_tokens": max_tokens, "ignore_eos": true })
}

fn streamed(model: &str, max_tokens: u64) -> Value {
    let mut form = ask(model, max_tokens);
    form["stream"] = json!(true);
    form
}

/// An engine that takes a second for fifty tokens.
fn slow_engine(model: &str) -> SimulatedEngine {
    simulated::start(SimulatedConfig::at_speed(model, 50.0, 50_000.0).unwrap(), "127.0.0.1:0").unwrap()
}

/// A key of this caller's with these scopes, and its id.
async fn key(http: &Http, scopes: &[&str]) -> (Http, String) {
    let body = http.post("/api/v1/api-keys").json(&json!({ "name": "a key", "scopes": scopes })).expect(201).await;
    (http.with_bearer(body["key"].as_str().unwrap()), body["id"].as_str().unwrap().to_owned())
}

async fn model_ids(http: &Http) -> Vec<String> {
    let body = http.get("/v1/models").expect(200).await;
    assert_eq!(body["object"], "list");
    body["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

/// The stage with an active rental.
async fn rented(funds: &str) -> (Stage, Value) {
    let stage = Stage::new(funds).await;
    let rental = stage.rent_active(json!({})).await;
    (stage, rental)
}
