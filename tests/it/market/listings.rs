//! Listings from draft to the market and back, through HTTP.

use rigmark::base::id::MachineId;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Person, RunRow, draft, engine, machine, person, published, run};

fn codes(problem: &Value) -> Vec<&str> {
    problem["unmet"].as_array().unwrap_or_else(|| panic!("{problem}")).iter().map(|unmet| unmet["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_listing_is_refused_with_everything_that_is_missing_until_it_holds() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = machine(&ann, None).await;
    let listing = draft(&ann, machine, "0.37").await;
    let publish = format!("/api/v1/listings/{listing}/publish");
    let problem = ann.http.post(&publish).expect_problem(409, "listing_not_measured").await;
    assert_eq!(codes(&problem), ["endpoint_missing", "run_missing"]);
    assert!(problem["unmet"].as_array().unwrap().iter().all(|unmet| unmet["detail"].as_str().unwrap().len() > 10), "{problem}");

    let engine = engine();
    let path = format!("/api/v1/machines/{machine}");
    let gone = "http://127.0.0.1:9";
    ann.http.patch(&path).json(&json!({ "endpoint": { "url": gone } })).expect(200).await;
    run(&app, machine, &RunRow { level: "document", visibility: "unlisted", ..RunRow::default() }).await;
    let problem = ann.http.post(&publish).expect_problem(409, "listing_not_measured").await;
    assert_eq!(codes(&problem), ["endpoint_unreachable", "run_unlisted", "evidence_too_low"]);

    ann.http.patch(&path).json(&json!({ "endpoint": { "url": engine.url() } })).expect(200).await;
    let backing = run(&app, machine, &RunRow::default()).await;
    let body = ann.http.post(&publish).expect(200).await;
    assert_eq!(
        (body["state"].as_str(), body["badge"].as_str(), body["available"].as_bool()),
        (Some("published"), Some("measured"), Some(true))
    );
    assert_eq!((body["run"]["id"].as_str(), body["by"].as_str()), (Some(backing.to_string().as_str()), Some("@ann")));
    assert_eq!((body["price_per_hour"].as_str(), body["currency"].as_str()), (Some("0.37"), Some("usd")));
    assert_eq!(body["machine"]["gpu"], "RTX 3090");
    assert!(!body.to_string().contains("127.0.0.1"), "the engine's address is private: {body}");
    // Anybody sees it now, and publishing again is the same.
    let shown = app.http.get(&format!("/api/v1/listings/{listing}")).expect(200).await;
    assert_eq!(shown, ann.http.post(&publish).expect(200).await);
    let list = app.http.get("/api/v1/listings").expect(200).await;
    assert_eq!(list["data"][0], shown);
    assert_eq!(ann.http.delete(&path).answer().await.status, 409, "a published machine cannot be deleted");
}

#[tokio::test]
async fn a_machine_has_one_listing_and_drafts_are_private() {
    let app = TestApp::new().await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    let machine = machine(&ann, None).await;
    let listing = draft(&ann, machine, "0.37").await;
    let form = json!({ "machine_id": machine, "price_per_hour": "0.40" });
    ann.http.post("/api/v1/listings").json(&form).expect_problem(409, "already_listed").await;
    bob.http.post("/api/v1/listings").json(&form).expect_problem(404, "not_found").await;
    let path = format!("/api/v1/listings/{listing}");
    for http in [&app.http, &bob.http] {
        http.get(&path).expect_problem(404, "not_found").await;
    }
    bob.http.patch(&path).json(&json!({ "price_per_hour": "0.01" })).expect_problem(404, "not_found").await;
    bob.http.post(&format!("{path}/publish")).expect_problem(404, "not_found").await;
    bob.http.post(&format!("{path}/pause")).expect_problem(404, "not_found").await;
    let body = ann.http.get(&path).expect(200).await;
    assert_eq!((body["state"].as_str(), &body["badge"], body["available"].as_bool()), (Some("draft"), &Value::Null, Some(false)));
    assert_eq!(ann.http.get("/api/v1/me/listings").expect(200).await["data"], json!([body]));
    assert_eq!(bob.http.get("/api/v1/me/listings").expect(200).await["data"], json!([]));
    assert_eq!(app.http.get("/api/v1/listings").expect(200).await["data"], json!([]));
    ann.http.post(&format!("{path}/pause")).expect_problem(409, "invalid_state").await;
}

#[tokio::test]
async fn two_drafts_of_one_machine_at_once_are_one() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = machine(&ann, None).await;
    let form = json!({ "machine_id": machine, "price_per_hour": "0.37" });
    let attempts = (0..8).map(async |_| ann.http.post("/api/v1/listings").json(&form).answer().await.status.as_u16());
    let mut statuses = futures::future::join_all(attempts).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn every_term_has_its_bounds() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = machine(&ann, None).await;
    let form = |change: Value| {
        let mut form = json!({ "machine_id": machine, "price_per_hour": "0.37" });
        form.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        form
    };
    for (change, pointer) in [
        (json!({ "price_per_hour": "0" }), "/price_per_hour"),
        (json!({ "price_per_hour": "-1" }), "/price_per_hour"),
        (json!({ "price_per_hour": "0.1234567" }), "/price_per_hour"),
        (json!({ "price_per_hour": "1e3" }), "/price_per_hour"),
        (json!({ "price_per_hour": 0.37 }), "/price_per_hour"),
        (json!({ "price_per_hour": "1000000.000001" }), "/price_per_hour"),
        (json!({ "currency": "eur" }), "/currency"),
        (json!({ "min_hours": -1 }), "/min_hours"),
        (json!({ "min_hours": 1.5 }), "/min_hours"),
        (json!({ "min_hours": 8761 }), "/min_hours"),
        (json!({ "max_hours": 0 }), "/max_hours"),
        (json!({ "min_hours": 3, "max_hours": 2 }), "/max_hours"),
        (json!({ "available_until": "2020-01-01T00:00:00Z" }), "/available_until"),
        (json!({ "available_until": "tomorrow" }), "/available_until"),
        (json!({ "description": "x".repeat(2001) }), "/description"),
        (json!({ "price": "1" }), "/price"),
    ] {
        let problem = ann.http.post("/api/v1/listings").json(&form(change.clone())).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{change}: {problem}");
    }
    let all = json!({
        "currency": "usd", "min_hours": 2, "max_hours": 48, "available_until": "2099-01-01T00:00:00Z", "description": " Quiet.\nCool. ",
    });
    let body = ann.http.post("/api/v1/listings").json(&form(all)).expect(201).await;
    let expected = (Some(2), Some(48), Some("2099-01-01T00:00:00Z"), Some("Quiet.\nCool."));
    let found = |body: &Value| {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        (body["min_hours"].as_i64(), body["max_hours"].as_i64(), text("available_until"), text("description"))
    };
    assert_eq!(found(&body), (expected.0, expected.1, expected.2.map(str::to_owned), expected.3.map(str::to_owned)));

    let path = format!("/api/v1/listings/{}", body["id"].as_str().unwrap());
    let patched = ann.http.patch(&path).json(&json!({ "price_per_hour": "0.5", "max_hours": null })).expect(200).await;
    assert_eq!(
        (patched["price_per_hour"].as_str(), &patched["max_hours"], patched["min_hours"].as_i64()),
        (Some("0.50"), &Value::Null, Some(2))
    );
    assert_eq!((body["version"].as_i64(), patched["version"].as_i64()), (Some(1), Some(2)));
    ann.http.patch(&path).json(&json!({ "machine_id": machine })).expect_problem(422, "invalid_input").await;
    ann.http.patch(&path).json(&json!({ "max_hours": 1 })).expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn the_owner_takes_it_down_and_puts_it_up_again() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "0.37", &RunRow::default()).await;
    let path = format!("/api/v1/listings/{}", offer.listing);
    for _ in 0..2 {
        let body = ann.http.post(&format!("{path}/pause")).expect(200).await;
        assert_eq!((body["state"].as_str(), body["available"].as_bool(), body["version"].as_i64()), (Some("paused"), Some(false), Some(3)));
    }
    assert_eq!(app.http.get("/api/v1/listings").expect(200).await["data"], json!([]));
    assert_eq!(app.http.get(&path).expect(200).await["state"], "paused");
    assert_eq!(ann.http.post(&format!("{path}/publish")).expect(200).await["state"], "published");
    ann.http.post(&format!("{path}/pause")).expect(200).await;
    assert_eq!(ann.http.delete(&format!("/api/v1/machines/{}", offer.machine)).answer().await.status, 204);
    app.work().await;
    let body = app.http.get(&path).expect(200).await;
    assert_eq!((body["state"].as_str(), body["off_market_reason"].as_str()), (Some("off_market"), Some("machine_deleted")));
    ann.http.post(&format!("{path}/publish")).expect_problem(404, "not_found").await;
    ann.http.patch(&path).json(&json!({ "price_per_hour": "1" })).expect_problem(404, "not_found").await;
}

#[tokio::test]
async fn outside_the_sandbox_a_simulated_engine_is_refused() {
    // Live rules on a loopback engine: what the gate asks for does not depend on where the engine is.
    let app = TestApp::with(|config| {
        config.mode = rigmark::config::Mode::Test;
        config.listing_evidence = rigmark::config::ListingEvidence::Remeasured;
    })
    .await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let machine = machine(&ann, Some(engine.url())).await;
    run(&app, machine, &RunRow::default()).await;
    let listing = draft(&ann, machine, "0.37").await;
    let problem = ann.http.post(&format!("/api/v1/listings/{listing}/publish")).expect_problem(409, "listing_not_measured").await;
    assert_eq!(codes(&problem), ["engine_simulated", "evidence_too_low"]);
}

async fn listed_region(app: &TestApp, host: &Person, machine: MachineId, region: &str) -> usize {
    let path = format!("/api/v1/machines/{machine}");
    host.http.patch(&path).json(&json!({ "region": region })).expect(200).await;
    app.work().await;
    app.http.get(&format!("/api/v1/listings?region={region}")).expect(200).await["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_search_follows_a_machine_that_moves() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "0.37", &RunRow::default()).await;
    assert_eq!(listed_region(&app, &ann, offer.machine, "de-by").await, 1);
    assert_eq!(listed_region(&app, &ann, offer.machine, "kr").await, 1);
    assert_eq!(app.http.get("/api/v1/listings?region=de").expect(200).await["data"], json!([]));
}
