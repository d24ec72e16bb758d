//! What the other domains tell: each event once, in the transaction of what happened, to whom it concerns, with what the API shows.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::webhooks::EventType;
use serde_json::{Value, json};

use super::endpoint;
use crate::billing::{Shop, fifty};
use crate::remeasure;
use crate::support::{
    TestApp,
    hosts::{Person, execute},
    renting::Stage,
};

/// Nobody listens there; what would be sent is read from the table.
const NOWHERE: &str = "http://127.0.0.1:1/";

#[derive(QueryableByName, Debug)]
struct Row {
    #[diesel(sql_type = sql::Text)]
    handle: String,
    #[diesel(sql_type = sql::Text)]
    event_type: String,
    #[diesel(sql_type = sql::Text)]
    body: String,
}

/// Whom was told what, in order.
async fn told(app: &TestApp) -> Vec<(String, String, Value)> {
    let query = "SELECT a.handle, e.event_type, e.body FROM webhook_events e JOIN accounts a ON a.id = e.account_id ORDER BY e.id";
    let rows: Vec<Row> = sql_query(query).load(&mut app.connect().await).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let body: Value = serde_json::from_str(&row.body).unwrap();
            assert_eq!(body["type"], row.event_type);
            // Of nobody's affairs more than the API shows: no secret, no address.
            for word in ["@example.org", "whsec_", "rmk_", "_secret", "api_key"] {
                assert!(!row.body.contains(word), "{}", row.body);
            }
            (row.handle, row.event_type, body["data"].clone())
        })
        .collect()
}

fn kinds(told: &[(String, String, Value)]) -> Vec<(&str, &str)> {
    told.iter().map(|(handle, kind, _)| (handle.as_str(), kind.as_str())).collect()
}

async fn listen(people: &[&Person]) {
    for person in people {
        endpoint(&person.http, NOWHERE, &["*"]).await;
    }
}

/// The two accounts of a rental hear of it; how they are ordered does not matter.
fn sorted(told: &[(String, String, Value)]) -> Vec<(&str, &str)> {
    let mut kinds = kinds(told);
    kinds.sort_unstable();
    kinds
}

#[tokio::test]
async fn a_rental_that_starts_and_ends_is_told_to_both() {
    let stage = Stage::new("100").await;
    listen(&[&stage.host, &stage.renter]).await;
    let rental = stage.rent_active(json!({})).await;
    let all = told(&stage.app).await;
    assert_eq!(sorted(&all), [("host", "rental.started"), ("renter", "rental.started")]);
    for (_, _, data) in &all {
        assert_eq!((&data["id"], &data["status"], &data["active_at"]), (&rental["id"], &json!("active"), &rental["active_at"]));
        let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(members(data), members(&rental), "what the API shows");
    }
    stage.app.advance(600).await;
    let ended = stage.stop(&rental).await;
    let all = told(&stage.app).await;
    assert_eq!(sorted(&all[2..]), [("host", "rental.ended"), ("renter", "rental.ended")]);
    for (_, _, data) in &all[2..] {
        let same = ["id", "status", "end_reason", "spend", "hold", "billed_seconds", "ended_at"];
        assert!(same.iter().all(|member| data[member] == ended[member]), "{data} {ended}");
    }
    stage.stop(&rental).await;
    assert_eq!(told(&stage.app).await.len(), 4, "over is over");
}

#[tokio::test]
async fn short_money_is_told_to_the_renter_alone_once_for_each_threshold() {
    let stage = Stage::new("100").await;
    listen(&[&stage.host, &stage.renter]).await;
    stage.rent_active(json!({})).await;
    stage.app.advance(2 * 86_400).await;
    let all = told(&stage.app).await;
    let low: Vec<_> = all.iter().filter(|(_, kind, _)| kind == "rental.low_funds").collect();
    assert_eq!(low.len(), 3, "{:?}", kinds(&all));
    let seconds: Vec<i64> = low.iter().map(|(_, _, data)| data["runway_seconds"].as_i64().unwrap()).collect();
    assert!(low.iter().all(|(handle, _, data)| handle == "renter" && data["status"] == "active"), "{low:?}");
    assert!(seconds[0] <= 86_400 && seconds[1] <= 7_200 && seconds[2] <= 900 && seconds[2] > 0, "{seconds:?}");
    let ends: Vec<_> = all.iter().filter(|(_, kind, _)| kind == "rental.ended").collect();
    assert!(ends.len() == 2 && ends.iter().all(|(_, _, data)| data["end_reason"] == "insufficient_funds"), "{ends:?}");
}

#[tokio::test]
async fn a_machine_that_does_not_start_is_told() {
    let stage = Stage::new("10").await;
    listen(&[&stage.host, &stage.renter]).await;
    let engine = crate::support::scripted::Scripted::start(&["org/model"]).await;
    engine.chat(crate::support::scripted::Manner::Answer(500, "{}".to_owned()));
    let offer = crate::support::hosts::published(&stage.app, &stage.host, &engine.url, "3.60", &Default::default()).await;
    stage.rent(json!({ "listing_id": offer.listing })).await;
    stage.app.work().await;
    stage.app.advance(700).await;
    let all = told(&stage.app).await;
    let failed: Vec<_> = all.into_iter().filter(|(_, kind, _)| kind == "rental.failed").collect();
    assert_eq!(sorted(&failed), [("host", "rental.failed"), ("renter", "rental.failed")]);
    assert_eq!((&failed[0].2["end_reason"], &failed[0].2["spend"]), (&json!("boot_timeout"), &json!("0.00")));
}

#[tokio::test]
async fn a_listing_is_told_when_it_comes_and_when_the_service_takes_it_off() {
    let stage = Stage::new("0").await;
    listen(&[&stage.host, &stage.renter]).await;
    let (host, listing) = (&stage.host.http, stage.offer.listing);
    host.post(&format!("/api/v1/listings/{listing}/pause")).expect(200).await;
    assert!(told(&stage.app).await.is_empty(), "its owner paused it");
    let published = host.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    host.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "listing.published")]);
    assert_eq!((&all[0].2["id"], &all[0].2["state"], &all[0].2["price_per_hour"]), (&published["id"], &json!("published"), &json!("3.60")));
    host.patch(&format!("/api/v1/machines/{}", stage.offer.machine)).json(&json!({ "hardware": { "gpu_count": 2 } })).expect(200).await;
    stage.app.work().await;
    stage.app.work().await;
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "listing.published"), ("host", "listing.off_market")]);
    let data = &all[1].2;
    assert_eq!((&data["state"], &data["off_market_reason"]), (&json!("off_market"), &json!("hardware_changed")));
}

#[tokio::test]
async fn a_run_is_told_with_its_verdict_and_with_another_one() {
    let stage = Stage::new("0").await;
    listen(&[&stage.host, &stage.renter]).await;
    let form = json!({ "document": serde_json::from_str::<Value>(include_str!("../../documents/reference-run.json")).unwrap() });
    let run = stage.host.http.post("/api/v1/matrix-runs").json(&form).expect(201).await;
    stage.host.http.post("/api/v1/matrix-runs").json(&form).expect(201).await;
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "run.verdict")]);
    let same = ["id", "status", "label", "evidence_level", "title", "by"];
    assert!(same.iter().all(|member| all[0].2[member] == run[member]), "{all:?} {run}");

    execute(&stage.app, "UPDATE accounts SET is_operator = true WHERE handle = 'renter'").await;
    let review = format!("/api/v1/admin/matrix-runs/{}/review", run["id"].as_str().unwrap());
    let decision = json!({ "decision": "reject", "reason": "It is a copy of another run, as its uploader says." });
    execute(&stage.app, "UPDATE runs SET status = 'needs_review' WHERE document_sha256 IN (SELECT document_sha256 FROM run_documents JOIN runs r ON r.id = run_id)").await;
    stage.renter.http.post(&review).json(&decision).expect(200).await;
    stage.renter.http.post(&review).json(&decision).expect(200).await;
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "run.verdict"), ("host", "run.verdict")]);
    assert_eq!((&all[1].2["id"], &all[1].2["status"]), (&run["id"], &json!("rejected")));
}

#[tokio::test]
async fn a_badge_that_becomes_stale_is_told_and_so_is_the_listing_that_leaves() {
    let stage = remeasure::Stage::new(remeasure::quick).await;
    stage.publish().await;
    listen(&[&stage.host]).await;
    let path = format!("/api/v1/machines/{}", stage.machine);
    for _ in 0..2 {
        stage.host.http.patch(&path).json(&json!({ "hardware": { "driver": "580.1" } })).expect(200).await;
        stage.app.work().await;
    }
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "badge.stale")]);
    let data = &all[0].2;
    assert_eq!((&data["id"], &data["machine_id"]), (&json!(stage.run), &json!(stage.machine)));
    assert_eq!(data["stale_reason"], "the driver changed from 570.10 to 580.1");
    assert!(data["stale_until"].is_string(), "{data}");
    stage.app.advance(7 * 86_400 + 3_600).await;
    let all = told(&stage.app).await;
    assert_eq!(kinds(&all), [("host", "badge.stale"), ("host", "listing.off_market")]);
    assert_eq!(all[1].2["off_market_reason"], "run_stale");
}

#[tokio::test(flavor = "multi_thread")]
async fn top_ups_are_told_when_they_are_credited_and_when_a_try_has_failed() {
    let shop = Shop::new().await;
    endpoint(&shop.ada.http, "https://127.0.0.1.nip.invalid/", &["*"]).await;
    let declined = shop.top_up("k", fifty("pm_card_chargeDeclinedInsufficientFunds")).await;
    let all = told(&shop.app).await;
    assert_eq!(kinds(&all), [("ada", "top_up.failed")]);
    assert_eq!((&all[0].2["id"], &all[0].2["failure_code"]), (&declined["id"], &json!("insufficient_funds")));
    assert!(declined["client_secret"].is_string() && all[0].2.get("client_secret").is_none());
    // Looking again at what has not changed tells nothing.
    shop.read(&declined).await;
    shop.poll().await;
    assert_eq!(told(&shop.app).await.len(), 1);
    let payment = declined["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.pay(payment, "pm_card_visa").await;
    shop.read(&declined).await;
    shop.poll().await;
    let all = told(&shop.app).await;
    assert_eq!(kinds(&all), [("ada", "top_up.failed"), ("ada", "top_up.succeeded")]);
    assert_eq!((&all[1].2["status"], &all[1].2["received"]), (&json!("succeeded"), &json!("50.00")));
}

/// What the list of kinds promises is what the document describes.
#[test]
fn every_kind_of_event_is_in_the_document() {
    let document = rigmark::openapi::document();
    let described: Vec<&String> = document["webhooks"].as_object().unwrap().keys().collect();
    let mut kinds: Vec<&str> = EventType::ALL.iter().map(|event| event.as_str()).chain(["webhook.test"]).collect();
    kinds.sort_unstable();
    assert_eq!(described, kinds);
    for event in EventType::ALL {
        let schema = format!("/components/schemas/{}", event.data_schema());
        assert!(document.pointer(&schema).is_some(), "{schema}");
    }
}
