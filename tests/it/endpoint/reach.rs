//! Who reaches what: renters their machines, owners their own, by names that mean one of them.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{ask, key, model_ids, rented};
use crate::support::hosts::{RunRow, engine, machine, person, published};
use crate::support::http::Http;
use crate::support::renting::{Stage, rental_id, request, start};
use crate::support::scripted::{Manner, Scripted, model_list};

async fn chat(http: &Http, model: &str) -> (u16, Value) {
    let answer = http.post("/v1/chat/completions").json(&ask(model, 2)).answer().await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn only_an_active_rental_gives_access() {
    let stage = Stage::new("100").await;
    let stranger = person(&stage.app, "stranger").await;
    assert_eq!(model_ids(&stage.renter.http).await, Vec::<String>::new());
    assert_eq!(chat(&stage.renter.http, "org/model").await.0, 404);
    let rental = stage.rent(json!({})).await;
    assert_eq!(model_ids(&stage.renter.http).await, Vec::<String>::new(), "accepted is not active");
    start(&stage.app, &stage.renter, rental_id(&rental)).await;
    assert_eq!(model_ids(&stage.renter.http).await, ["org/model", "@host/garage/org/model"]);
    for name in ["org/model".to_owned(), "@host/garage/org/model".to_owned(), format!("@host/{}/org/model", stage.offer.machine)] {
        let (status, body) = chat(&stage.renter.http, &name).await;
        assert_eq!((status, &body["usage"]["completion_tokens"]), (200, &json!(2)), "{body}");
    }
    assert_eq!(model_ids(&stranger.http).await, Vec::<String>::new());
    assert_eq!(chat(&stranger.http, "@host/garage/org/model").await.0, 404);
    let reserved = stage.rent_elsewhere().await;
    assert_eq!(model_ids(&stage.renter.http).await.len(), 2, "reserved is not active");
    stage.stop(&reserved).await;
    stage.stop(&rental).await;
    assert_eq!(model_ids(&stage.renter.http).await, Vec::<String>::new());
    assert_eq!(chat(&stage.renter.http, "org/model").await.0, 404);
}

impl Stage {
    /// A reservation of another machine.
    async fn rent_elsewhere(&self) -> Value {
        let other = published(&self.app, &self.host, self.engine.url(), "1", &RunRow::default()).await;
        let later = self.now().await + TimeDelta::hours(1);
        self.rent(json!({ "listing_id": other.listing, "starts_at": later })).await
    }
}

#[tokio::test]
async fn owners_reach_their_own_machines_without_renting_and_without_charge() {
    let stage = Stage::new("100").await;
    assert_eq!(model_ids(&stage.host.http).await, ["org/model", "@host/garage/org/model"]);
    assert_eq!(chat(&stage.host.http, "org/model").await.0, 200);
    // Also while somebody rents it, and a machine that is not on the market at all.
    stage.rent_active(json!({})).await;
    assert_eq!(chat(&stage.host.http, "org/model").await.0, 200);
    let private = person(&stage.app, "private").await;
    machine(&private, Some(stage.engine.url())).await;
    machine(&private, None).await;
    assert_eq!(model_ids(&private.http).await, ["org/model", "@private/garage/org/model"]);
    assert_eq!(chat(&private.http, "org/model").await.0, 200);
    assert_eq!(private.http.get("/api/v1/balance").expect(200).await["available"], "0.00");
}

#[tokio::test]
async fn a_name_that_means_several_machines_is_refused_with_the_full_ones() {
    let stage = Stage::new("100").await;
    let engine = engine();
    let form = json!({ "name": "attic / left", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 }, "endpoint": { "url": engine.url() } });
    let attic = crate::support::hosts::id(&stage.host.http.post("/api/v1/machines").json(&form).expect(201).await["id"]);
    crate::support::hosts::run(&stage.app, attic, &RunRow::default()).await;
    let listing = crate::support::hosts::draft(&stage.host, attic, "1").await;
    stage.host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    stage.rent_active(json!({})).await;
    stage.rent_active(json!({ "listing_id": listing })).await;
    assert_eq!(model_ids(&stage.renter.http).await, ["@host/attic---left/org/model", "@host/garage/org/model"]);
    let (status, body) = chat(&stage.renter.http, "org/model").await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("ambiguous_name")), "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("@host/attic---left/org/model") && message.contains("@host/garage/org/model"), "{message}");
    let before = engine.generated_tokens();
    assert_eq!(chat(&stage.renter.http, "@host/attic---left/org/model").await.0, 200);
    assert_eq!(engine.generated_tokens(), before + 2, "on the machine that was named");
}

#[tokio::test]
async fn machines_of_one_name_are_told_apart_by_their_ids() {
    let stage = Stage::new("100").await;
    let engine = engine();
    let other = published(&stage.app, &stage.host, engine.url(), "1", &RunRow::default()).await;
    stage.rent_active(json!({})).await;
    stage.rent_active(json!({ "listing_id": other.listing })).await;
    let mut ids = model_ids(&stage.renter.http).await;
    ids.sort();
    let mut expected = [stage.offer.machine, other.machine].map(|machine| format!("@host/{machine}/org/model"));
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(chat(&stage.renter.http, "@host/garage/org/model").await.0, 400);
    let before = engine.generated_tokens();
    assert_eq!(chat(&stage.renter.http, &format!("@host/{}/org/model", other.machine)).await.0, 200);
    assert_eq!(engine.generated_tokens(), before + 2);
}

#[tokio::test]
async fn a_wrong_name_is_answered_with_the_right_ones() {
    let (stage, _) = rented("100").await;
    let (status, body) = chat(&stage.renter.http, "gpt-4o").await;
    assert_eq!((status, &body["error"]["code"], &body["error"]["type"]), (404, &json!("not_found"), &json!("not_found_error")));
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("'gpt-4o'") && message.contains("org/model") && message.contains("@host/garage/org/model"), "{message}");
    let nobody = person(&stage.app, "lonely").await;
    let (_, body) = chat(&nobody.http, "gpt-4o").await;
    assert!(body["error"]["message"].as_str().unwrap().contains("no active rental"), "{body}");
}

/// Everything the engine serves is within reach, also what it began to serve after the rental.
#[tokio::test]
async fn an_engine_with_several_models_gives_them_all() {
    let stage = Stage::new("100").await;
    let engine = Scripted::start(&["a", "b/c"]).await;
    let offer = published(&stage.app, &stage.host, &engine.url, "1", &RunRow::default()).await;
    let rental = stage.rent_active(json!({ "listing_id": offer.listing })).await;
    assert_eq!(rental["access"]["model"], "a");
    assert_eq!(model_ids(&stage.renter.http).await, ["a", "@host/garage/a", "b/c", "@host/garage/b/c"]);
    assert_eq!(chat(&stage.renter.http, "b/c").await.0, 200);
    engine.models(Manner::Answer(200, model_list(&["d"])));
    assert_eq!(chat(&stage.renter.http, "d").await.0, 200, "asked again before it is called unknown");
    let sent: Value = serde_json::from_str(engine.bodies().last().unwrap()).unwrap();
    assert_eq!(sent["model"], "d");
    // An engine that does not answer is still the rental's.
    engine.models(Manner::Answer(500, "{}".to_owned()));
    assert_eq!(model_ids(&stage.renter.http).await, ["a", "@host/garage/a"]);
}

#[tokio::test]
async fn a_key_needs_the_scope_and_serves_its_own_account() {
    let (stage, rental) = rented("100").await;
    let (infers, _) = key(&stage.renter.http, &["inference"]).await;
    assert_eq!(chat(&infers, "org/model").await.0, 200);
    for scopes in [vec![], vec!["rentals:write", "account:read", "machines:write", "billing:write", "runs:write", "listings:write"]] {
        let (other, _) = key(&stage.renter.http, &scopes).await;
        let (status, body) = chat(&other, "org/model").await;
        assert_eq!((status, &body["error"]["type"]), (403, &json!("permission_error")), "{scopes:?}");
        assert_eq!(other.get("/v1/models").answer().await.status, 403);
    }
    infers.get("/api/v1/rentals").expect_problem(403, "insufficient_scope").await;
    // A rental of the organization is the organization's.
    let organization = json!({ "handle": "team" });
    stage.renter.http.post("/api/v1/organizations").json(&organization).expect(201).await;
    let team = stage.renter.http.get("/v1/models").header("Rigmark-Account", "@team").expect(200).await;
    assert_eq!(team["data"], json!([]));
    stage.stop(&rental).await;
    let credit = stage.renter.http.post("/api/v1/sandbox/credits").idempotency_key("team").header("Rigmark-Account", "@team");
    credit.json(&json!({ "amount": "10" })).expect(201).await;
    let rented = request(&stage.renter.http, stage.with_listing(json!({}))).header("Rigmark-Account", "@team").expect(201).await;
    crate::support::wait_for("the team's rental", std::time::Duration::from_secs(30), async || {
        stage.app.work().await;
        let path = format!("/api/v1/rentals/{}", rental_id(&rented));
        stage.renter.http.get(&path).header("Rigmark-Account", "@team").expect(200).await["status"] == "active"
    })
    .await;
    assert_eq!(model_ids(&stage.renter.http).await, Vec::<String>::new());
    let team = stage.renter.http.get("/v1/models").header("Rigmark-Account", "@team").expect(200).await;
    assert_eq!(team["data"][0]["id"], "org/model");
}

/// A machine of one's own that is down costs one look, not each request a time-out.
#[tokio::test]
async fn a_dead_machine_of_ones_own_does_not_slow_the_others() {
    let (stage, _) = rented("100").await;
    let dead = Scripted::start(&["org/other"]).await;
    machine(&stage.renter, Some(&dead.url)).await;
    dead.models(Manner::Wait);
    assert_eq!(chat(&stage.renter.http, "org/model").await.0, 200);
    let begun = rigmark::base::clock::monotonic();
    for _ in 0..5 {
        assert_eq!(chat(&stage.renter.http, "org/model").await.0, 200);
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?}", begun.elapsed());
}
