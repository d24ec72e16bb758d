//! What passes through, how soon, and how answers end.

use std::time::{Duration, Instant};

use futures::StreamExt;
use rigmark::base::clock;
use serde_json::{Value, json};

use super::{ask, key, rented, slow_engine, streamed};
use crate::support::hosts::{RunRow, published};
use crate::support::http::Http;
use crate::support::renting::Stage;
use crate::support::scripted::{Manner, Scripted, completion};
use crate::support::wait_for;

/// A rental of a machine with this engine.
async fn rented_at(url: &str) -> (Stage, Value) {
    let stage = Stage::new("100").await;
    let offer = published(&stage.app, &stage.host, url, "3.60", &RunRow::default()).await;
    let rental = stage.rent_active(json!({ "listing_id": offer.listing })).await;
    (stage, rental)
}

/// The whole stream as text, when it came, and whether it ended in order.
async fn read(http: &Http, form: &Value) -> (String, Duration, bool) {
    let begun = clock::monotonic();
    let response = http.post("/v1/chat/completions").json(form).send().await;
    assert_eq!(response.status(), 200);
    let mut body = response.bytes_stream();
    let mut text = String::new();
    while let Some(chunk) = body.next().await {
        let Ok(chunk) = chunk else { return (text, begun.elapsed(), false) };
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    (text, begun.elapsed(), true)
}

#[tokio::test]
async fn a_stream_passes_token_by_token_with_its_usage() {
    let engine = slow_engine("org/slow");
    let (stage, _) = rented_at(engine.url()).await;
    let mut form = streamed("org/slow", 50);
    form["stream_options"] = json!({ "include_usage": true });
    for encoding in ["identity", "gzip, deflate, br"] {
        let begun = clock::monotonic();
        let post = stage.renter.http.post("/v1/chat/completions").header("accept-encoding", encoding).json(&form);
        let response = post.send().await;
        assert_eq!(response.headers()["content-type"].to_str().unwrap(), "text/event-stream; charset=utf-8");
        assert!(response.headers().get("content-encoding").is_none(), "{:?}", response.headers());
        let mut body = response.bytes_stream();
        let (mut text, mut arrivals) = (String::new(), Vec::new());
        while let Some(chunk) = body.next().await {
            text.push_str(&String::from_utf8_lossy(&chunk.unwrap()));
            arrivals.push(begun.elapsed());
        }
        assert!(text.ends_with("data: [DONE]\n\n"));
        assert_eq!(text.matches("\"content\":\"").count(), 52, "50 tokens, a role and an end");
        let usage = text.lines().rev().find_map(|line| line.strip_prefix("data: {")).unwrap();
        let usage: Value = serde_json::from_str(&format!("{{{usage}")).unwrap();
        assert_eq!(usage["usage"]["completion_tokens"], 50);
        // Spread over the second that it takes, not held back to its end.
        assert!(arrivals.len() > 20, "{} pieces", arrivals.len());
        assert!(arrivals[0] + Duration::from_millis(400) < *arrivals.last().unwrap(), "{arrivals:?}");
    }
}

#[tokio::test]
async fn what_was_asked_reaches_the_engine_as_it_was_written() {
    let engine = Scripted::start(&["m"]).await;
    let (stage, _) = rented_at(&engine.url).await;
    let body = r#"{ "zeta":1.10, "model" : "@host/garage/m","seed":18446744073709551616 ,"messages":[{"role":"user","content":"h\u00e9 \"quoted\" 😀"}],"alpha":{"b":1e5,"a":[true,null]}}"#;
    let post = stage.renter.http.post("/v1/chat/completions").header("content-type", "application/json").body(body);
    let answer = post.answer().await;
    assert_eq!((answer.status.as_u16(), answer.body), (200, completion("yes")));
    let expected = r#"{"zeta":1.10,"model":"m","seed":18446744073709551616,"messages":[{"role":"user","content":"h\u00e9 \"quoted\" 😀"}],"alpha":{"b":1e5,"a":[true,null]}}"#;
    assert_eq!(engine.bodies().last().unwrap(), expected);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_engines_work() {
    let engine = slow_engine("org/slow");
    let (stage, _) = rented_at(engine.url()).await;
    for form in [streamed("org/slow", 5_000), ask("org/slow", 5_000)] {
        let http = stage.renter.http.clone();
        let request = tokio::spawn(async move {
            let mut body = http.post("/v1/chat/completions").json(&form).send().await.bytes_stream();
            while let Some(Ok(_)) = body.next().await {}
        });
        wait_for("the engine's work", Duration::from_secs(10), async || engine.load().0 == 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        request.abort();
        let left = clock::monotonic();
        wait_for("the engine to stop", Duration::from_secs(10), async || engine.load() == (0, 0)).await;
        assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    }
}

/// Large requests whose answers take long hold nothing that others need.
#[tokio::test]
async fn many_large_requests_wait_for_their_answers_at_once() {
    let engine = Scripted::start(&["m"]).await;
    let (stage, _) = rented_at(&engine.url).await;
    engine.chat(Manner::Wait);
    let mut form = ask("m", 1);
    form["messages"][0]["content"] = json!("x".repeat(1_200_000));
    let posts: Vec<_> = (0..12).map(|_| stage.renter.http.post("/v1/chat/completions").json(&form).answer()).collect();
    let all = tokio::spawn(futures::future::join_all(posts));
    wait_for("all requests at the engine", Duration::from_secs(60), async || engine.open() == 12).await;
    engine.chat(Manner::Answer(200, completion("yes")));
    assert!(all.await.unwrap().iter().all(|answer| answer.status == 200));
}

/// Starts a long answer, does something, and says how long the answer went on after it, with its text.
async fn interrupted(http: &Http, form: Value, act: impl Future<Output = ()>) -> (String, Duration) {
    let client = http.clone();
    let answer = tokio::spawn(async move {
        let response = client.post("/v1/chat/completions").json(&form).send().await;
        let status = response.status().as_u16();
        let mut body = response.bytes_stream();
        let mut text = format!("{status} ");
        while let Some(Ok(chunk)) = body.next().await {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        (text, clock::monotonic())
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!answer.is_finished());
    act.await;
    let acted: Instant = clock::monotonic();
    let (text, ended) = tokio::time::timeout(Duration::from_secs(20), answer).await.expect("the answer goes on").unwrap();
    (text, ended.saturating_duration_since(acted))
}

#[tokio::test]
async fn the_end_of_the_rental_ends_open_answers() {
    let engine = slow_engine("org/slow");
    let (stage, rental) = rented_at(engine.url()).await;
    let stop = async {
        stage.stop(&rental).await;
    };
    let (text, took) = interrupted(&stage.renter.http, streamed("org/slow", 5_000), stop).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let last = text.trim_end().lines().next_back().unwrap();
    let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&last["error"]["code"], &last["error"]["message"]), (&json!("forbidden"), &json!("The rental is over.")), "{text}");
    assert!(!text.contains("[DONE]"));
    wait_for("the engine to stop", Duration::from_secs(5), async || engine.load() == (0, 0)).await;
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_ends_with_the_rental_too() {
    let engine = slow_engine("org/slow");
    let (stage, rental) = rented_at(engine.url()).await;
    let stop = async {
        stage.stop(&rental).await;
    };
    let (text, took) = interrupted(&stage.renter.http, ask("org/slow", 5_000), stop).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(text.starts_with("403 ") && text.contains("The rental is over."), "{text}");
    wait_for("the engine to stop", Duration::from_secs(5), async || engine.load() == (0, 0)).await;
}

/// The money or the deadline ends them as well, without any worker.
#[tokio::test]
async fn the_end_of_the_money_ends_open_answers() {
    let engine = slow_engine("org/slow");
    let (stage, _) = rented_at(engine.url()).await;
    let run_out = async {
        stage.advance_without_workers(100_000).await;
        stage.app.work().await;
    };
    let (text, took) = interrupted(&stage.renter.http, streamed("org/slow", 5_000), run_out).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(text.contains("The rental is over."), "{text}");
}

/// Case 22.
#[tokio::test]
async fn a_revoked_key_ends_its_answers_and_no_others() {
    let engine = slow_engine("org/slow");
    let (stage, _) = rented_at(engine.url()).await;
    let ((mine, id), (other, _)) = (key(&stage.renter.http, &["inference"]).await, key(&stage.renter.http, &["inference"]).await);
    let survivor = tokio::spawn(async move { read(&other, &streamed("org/slow", 200)).await });
    let revoke = async {
        let answer = stage.renter.http.delete(&format!("/api/v1/api-keys/{id}")).answer().await;
        assert_eq!(answer.status, 204);
    };
    let (text, took) = interrupted(&mine, streamed("org/slow", 5_000), revoke).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(text.contains("\"code\":\"unauthenticated\""), "{text}");
    assert_eq!(mine.get("/v1/models").answer().await.status, 401);
    let (text, _, whole) = survivor.await.unwrap();
    assert!(whole && text.ends_with("data: [DONE]\n\n"));
}

/// A member who is removed loses the organization's answers.
#[tokio::test]
async fn a_removed_member_loses_open_answers() {
    let engine = slow_engine("org/slow");
    let stage = Stage::new("0").await;
    let owner = &stage.host;
    owner.http.post("/api/v1/organizations").json(&json!({ "handle": "team" })).expect(201).await;
    let invite = json!({ "handle": "renter", "role": "member" });
    let invitation = owner.http.post("/api/v1/organizations/team/invitations").json(&invite).expect(201).await;
    let path = format!("/api/v1/organizations/team/invitations/{}/accept", invitation["id"].as_str().unwrap());
    stage.renter.http.post(&path).expect(200).await;
    let form = json!({ "name": "garage", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 }, "endpoint": { "url": engine.url() } });
    owner.http.post("/api/v1/machines").header("Rigmark-Account", "@team").json(&form).expect(201).await;
    let request = stage.renter.http.post("/api/v1/api-keys").header("Rigmark-Account", "@team");
    let body = request.json(&json!({ "name": "a key", "scopes": ["inference"] })).expect(201).await;
    let member = stage.app.http.with_bearer(body["key"].as_str().unwrap());
    let remove = async {
        let answer = owner.http.delete("/api/v1/organizations/team/members/renter").answer().await;
        assert!(answer.status.is_success(), "{}", answer.body);
    };
    let (text, took) = interrupted(&member, streamed("org/slow", 5_000), remove).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(text.contains("\"error\""), "{text}");
}

/// gateway.md, finding 1: without it each answer but the first waits 40 ms for an acknowledgement.
#[tokio::test]
async fn the_second_short_answer_on_a_connection_comes_at_once() {
    let (stage, _) = rented("100").await;
    let (client, _) = key(&stage.renter.http, &["inference"]).await;
    let mut first_tokens = Vec::new();
    for _ in 0..12 {
        let begun = clock::monotonic();
        let mut body = client.post("/v1/chat/completions").json(&streamed("org/model", 16)).send().await.bytes_stream();
        body.next().await.unwrap().unwrap();
        first_tokens.push(begun.elapsed());
        while let Some(chunk) = body.next().await {
            chunk.unwrap();
        }
    }
    let mut later = first_tokens[1..].to_vec();
    later.sort();
    println!("first tokens: {first_tokens:?}");
    assert!(later[later.len() / 2] < Duration::from_millis(100), "{first_tokens:?}");
}

/// An engine that dies in the middle: the client is told, and does not take the half for the whole.
#[tokio::test]
async fn an_answer_that_breaks_off_is_no_whole_answer() {
    let engine = Scripted::start(&["m"]).await;
    let (stage, _) = rented_at(&engine.url).await;
    engine.chat(Manner::Cut(vec!["data: {\"choices\":[]}\n\n".to_owned()]));
    let (text, _, whole) = read(&stage.renter.http, &streamed("m", 5)).await;
    assert!(text.starts_with("data: {\"choices\":[]}\n\n"), "{text}");
    assert!(text.contains("\"code\":\"engine_error\"") && !whole, "{text}");
}
