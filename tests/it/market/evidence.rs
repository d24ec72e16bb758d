//! What takes a listing off the market, and what keeps it there.

use chrono::TimeDelta;
use rigmark::base::id::ListingId;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Offer, Person, RunRow, business_now, engine, execute, person, published, run};

async fn listing(app: &TestApp, id: ListingId) -> Value {
    app.http.get(&format!("/api/v1/listings/{id}")).expect(200).await
}

#[track_caller]
fn assert_off(body: &Value, reason: &str, badge: &str) {
    let found = (body["state"].as_str(), body["off_market_reason"].as_str(), body["badge"].as_str());
    assert_eq!(found, (Some("off_market"), Some(reason), Some(badge)), "{body}");
}

/// A sandbox with one published listing.
async fn start(row: &RunRow) -> (TestApp, Person, Offer, rigmark::measure::simulated::SimulatedEngine) {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "0.37", row).await;
    (app, ann, offer, engine)
}

#[tokio::test]
async fn evidence_expires_at_its_instant() {
    let (app, ann, offer, _engine) = start(&RunRow { age_seconds: 80 * 86_400, ..RunRow::default() }).await;
    app.advance(9 * 86_400).await;
    assert_eq!(listing(&app, offer.listing).await["state"], "published");
    app.advance(2 * 86_400).await;
    let body = listing(&app, offer.listing).await;
    assert_off(&body, "run_expired", "stale");
    // Moving the clock stopped at the expiry itself.
    assert_eq!(body["updated_at"], body["run"]["expires_at"]);
    let problem = ann.http.post(&format!("/api/v1/listings/{}/publish", offer.listing)).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "run_expired");
    run(&app, offer.machine, &RunRow::default()).await;
    assert_eq!(ann.http.post(&format!("/api/v1/listings/{}/publish", offer.listing)).expect(200).await["badge"], "measured");
}

#[tokio::test]
async fn changed_hardware_is_off_the_market_before_any_job_has_run() {
    let (app, ann, offer, _engine) = start(&RunRow::default()).await;
    let path = format!("/api/v1/machines/{}", offer.machine);
    ann.http.patch(&path).json(&json!({ "name": "attic" })).expect(200).await;
    app.work().await;
    assert_eq!(listing(&app, offer.listing).await["state"], "published");
    ann.http.patch(&path).json(&json!({ "hardware": { "gpu_count": 2 } })).expect(200).await;
    let quote = json!({ "listing_id": offer.listing });
    ann.http.post("/api/v1/quotes").json(&quote).expect_problem(409, "listing_not_available").await;
    assert_eq!(listing(&app, offer.listing).await["unavailable_because"], "not_measured");
    app.work().await;
    assert_off(&listing(&app, offer.listing).await, "hardware_changed", "stale");
    // It is no longer in use, and a new run brings it back.
    run(&app, offer.machine, &RunRow { gpu_count: Some(2), ..RunRow::default() }).await;
    ann.http.post(&format!("/api/v1/listings/{}/publish", offer.listing)).expect(200).await;
}

#[tokio::test]
async fn a_run_that_is_rejected_withdrawn_or_stale_backs_nothing() {
    let (app, _ann, offer, _engine) = start(&RunRow::default()).await;
    for (change, reason) in [
        ("status = 'rejected'", "run_rejected"),
        ("status = 'needs_review'", "run_in_review"),
        ("visibility = 'unlisted'", "run_unlisted"),
        ("stale_at = now(), stale_reason = 'the engine changed'", "run_stale"),
        ("evidence_level = 'document'", "evidence_too_low"),
        ("machine_id = NULL", "run_missing"),
    ] {
        execute(&app, &format!("UPDATE runs SET {change}")).await;
        app.work().await;
        let body = listing(&app, offer.listing).await;
        assert_eq!((body["state"].as_str(), body["off_market_reason"].as_str()), (Some("off_market"), Some(reason)), "{body}");
        let good = "status = 'verified', visibility = 'public', stale_at = NULL, evidence_level = 'challenged'";
        execute(&app, &format!("UPDATE runs SET {good}, machine_id = (SELECT id FROM machines)")).await;
        execute(&app, "UPDATE listings SET state = 'published', off_market_reason = NULL").await;
        app.work().await;
        assert_eq!(listing(&app, offer.listing).await["state"], "published", "{reason}");
    }
}

#[tokio::test]
async fn the_job_of_a_changed_run_needs_no_sweep() {
    let (app, _ann, offer, _engine) = start(&RunRow::default()).await;
    // What registering has left.
    rigmark::jobs::run_due_jobs(app.ctx()).await.unwrap();
    execute(&app, "UPDATE runs SET status = 'rejected'").await;
    let now = app.ctx().clock.wall_now();
    let payload = json!({ "run_id": offer.run });
    app.ctx()
        .db
        .tx("test", async |tx| {
            let job =
                rigmark::jobs::Job { kind: rigmark::benchmarks::RUN_CHANGED, payload: payload.clone(), dedupe_key: None, run_at: now };
            rigmark::jobs::enqueue(tx, job).await
        })
        .await
        .unwrap();
    assert_eq!(rigmark::jobs::run_due_jobs(app.ctx()).await.unwrap(), 1);
    assert_off(&listing(&app, offer.listing).await, "run_rejected", "stale");
}

#[tokio::test]
async fn a_listing_moves_on_to_a_newer_run_and_falls_back_on_an_older_one() {
    let (app, _ann, offer, _engine) = start(&RunRow { age_seconds: 3_600, ..RunRow::default() }).await;
    let newer = run(&app, offer.machine, &RunRow { model_slug: Some("gpt-oss-120b"), age_seconds: 60, ..RunRow::default() }).await;
    // Neither of these will do.
    run(&app, offer.machine, &RunRow { level: "document", ..RunRow::default() }).await;
    run(&app, offer.machine, &RunRow { hardware_slug: Some("rtx-3090-ti"), ..RunRow::default() }).await;
    app.work().await;
    let body = listing(&app, offer.listing).await;
    assert_eq!(
        (body["run"]["id"].as_str(), body["run"]["model"].as_str()),
        (Some(newer.to_string().as_str()), Some("gpt-oss-120b")),
        "{body}"
    );
    assert_eq!((body["state"].as_str(), body["version"].as_i64()), (Some("published"), Some(2)));
    execute(&app, &format!("UPDATE runs SET status = 'rejected' WHERE id = '{}'", newer.uuid())).await;
    app.work().await;
    let body = listing(&app, offer.listing).await;
    assert_eq!((body["run"]["id"].as_str(), body["state"].as_str()), (Some(offer.run.to_string().as_str()), Some("published")), "{body}");
}

#[tokio::test]
async fn an_offer_ends_when_its_host_said() {
    let (app, ann, offer, _engine) = start(&RunRow::default()).await;
    let path = format!("/api/v1/listings/{}", offer.listing);
    let until = business_now(&app).await + TimeDelta::hours(5);
    ann.http.patch(&path).json(&json!({ "available_until": until })).expect(200).await;
    app.advance(4 * 3_600).await;
    assert_eq!(listing(&app, offer.listing).await["state"], "published");
    app.advance(2 * 3_600).await;
    assert_off(&listing(&app, offer.listing).await, "availability_ended", "measured");
    let problem = ann.http.post(&format!("{path}/publish")).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "availability_ended");
    ann.http.patch(&path).json(&json!({ "available_until": null })).expect(200).await;
    assert_eq!(ann.http.post(&format!("{path}/publish")).expect(200).await["state"], "published");
}

#[tokio::test]
async fn a_closed_account_has_nothing_on_the_market() {
    let (app, _ann, offer, _engine) = start(&RunRow::default()).await;
    execute(&app, "UPDATE accounts SET closed_at = now()").await;
    app.work().await;
    assert_off(&listing(&app, offer.listing).await, "account_closed", "measured");
}

#[tokio::test]
async fn a_machine_that_is_silent_for_long_leaves_the_default_search_and_comes_back_by_itself() {
    let (app, ann, offer, engine) = start(&RunRow::default()).await;
    let url = engine.url().to_owned();
    let count = async |query: &str| app.http.get(&format!("/api/v1/listings{query}")).expect(200).await["data"].as_array().unwrap().len();
    engine.stop().await;
    app.advance(14 * 60).await;
    let body = listing(&app, offer.listing).await;
    assert_eq!((count("").await, body["machine"]["is_answering"].as_bool()), (1, Some(false)));
    app.advance(2 * 60).await;
    let body = listing(&app, offer.listing).await;
    assert_eq!((body["state"].as_str(), body["unavailable_because"].as_str()), (Some("published"), Some("machine_silent")));
    assert_eq!((count("").await, count("?include_unavailable=true").await), (0, 1));
    let listener = std::net::TcpListener::bind(url.strip_prefix("http://").unwrap()).unwrap();
    let config = rigmark::measure::simulated::SimulatedConfig::at_speed("org/model", 500.0, 50_000.0).unwrap();
    let _engine = rigmark::measure::simulated::start_on(config, listener).unwrap();
    app.work().await;
    assert_eq!((count("").await, listing(&app, offer.listing).await["available"].as_bool()), (1, Some(true)));
    // Without an address there is nothing to come back.
    ann.http.patch(&format!("/api/v1/machines/{}", offer.machine)).json(&json!({ "endpoint": null })).expect(200).await;
    ann.http.post("/api/v1/quotes").json(&json!({ "listing_id": offer.listing })).expect_problem(409, "listing_not_available").await;
    app.work().await;
    assert_off(&listing(&app, offer.listing).await, "endpoint_missing", "measured");
}
