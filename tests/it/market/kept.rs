//! Answers to searches that are kept for a moment: they are served again, and never after a change by this process.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Person, RunRow, engine, execute, person, published};
use crate::support::renting::{credit, rental_id, request};

const LONG: Duration = Duration::from_secs(3_600);

async fn found(app: &TestApp, query: &str) -> Vec<Value> {
    app.http.get(&format!("/api/v1/listings?{query}")).expect(200).await["data"].as_array().unwrap().clone()
}

async fn change(host: &Person, listing: &str, what: &str) {
    host.http.post(&format!("/api/v1/listings/{listing}/{what}")).expect(200).await;
}

#[tokio::test]
async fn a_kept_answer_ends_with_every_change_of_ours() {
    let app = TestApp::with(|config| config.answers_kept = LONG).await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    credit(&bob.http, "10").await;
    assert!(found(&app, "").await.is_empty());
    let engine = engine();
    let listing = published(&app, &ann, engine.url(), "0.30", &RunRow::default()).await.listing.to_string();
    let prices = async || {
        let rows = found(&app, "").await;
        rows.iter().map(|row| row["price_per_hour"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(prices().await, ["0.30"], "published");
    // Behind this process's back, as another process would: kept.
    execute(&app, "UPDATE listings SET price_per_hour_micros = 10000").await;
    assert_eq!(prices().await, ["0.30"], "kept");
    // Another search is another answer.
    assert_eq!(found(&app, "max_price=0.2").await.len(), 1);
    ann.http.patch(&format!("/api/v1/listings/{listing}")).json(&json!({ "price_per_hour": "0.35" })).expect(200).await;
    assert_eq!(prices().await, ["0.35"], "changed");
    assert!(found(&app, "max_price=0.2").await.is_empty());
    change(&ann, &listing, "pause").await;
    assert!(prices().await.is_empty(), "paused");
    change(&ann, &listing, "publish").await;
    assert_eq!(prices().await, ["0.35"], "published again");
    let rental = request(&bob.http, json!({ "listing_id": listing })).expect(201).await;
    assert!(prices().await.is_empty(), "rented");
    bob.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect(200).await;
    assert_eq!(prices().await, ["0.35"], "free again");
    execute(&app, "UPDATE runs SET status = 'rejected'").await;
    assert_eq!(prices().await, ["0.35"], "kept until the sweep");
    app.work().await;
    assert!(prices().await.is_empty(), "taken off the market");
}

#[tokio::test]
async fn pages_and_limits_are_kept_apart_and_their_tags_too() {
    let app = TestApp::with(|config| config.answers_kept = LONG).await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    for _ in 0..3 {
        published(&app, &ann, engine.url(), "0.30", &RunRow::default()).await;
    }
    for _ in 0..2 {
        let first = app.http.get("/api/v1/listings?limit=1").expect(200).await;
        let next = first["next_cursor"].as_str().unwrap();
        let second = app.http.get(&format!("/api/v1/listings?limit=1&cursor={next}")).expect(200).await;
        assert_eq!((first["data"].as_array().unwrap().len(), second["data"].as_array().unwrap().len()), (1, 1));
        assert_ne!(first["data"][0]["id"], second["data"][0]["id"]);
        assert_eq!(found(&app, "limit=2").await.len(), 2);
        assert_eq!(found(&app, "").await.len(), 3);
    }
    let (fresh, kept) = (app.http.get("/api/v1/listings?limit=3").answer().await, app.http.get("/api/v1/listings?limit=3").answer().await);
    assert_eq!(fresh.body, kept.body);
    let tag = kept.header("etag").unwrap();
    assert_eq!(fresh.header("etag").unwrap(), tag);
    assert_eq!(app.http.get("/api/v1/listings?limit=3").header("If-None-Match", &tag).answer().await.status, 304);
    // What cannot be searched for is refused each time.
    for _ in 0..2 {
        app.http.get("/api/v1/listings?gpu_count=0").expect_problem(422, "invalid_input").await;
    }
}

#[tokio::test]
async fn without_a_time_nothing_is_kept() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    published(&app, &ann, engine().url(), "0.30", &RunRow::default()).await;
    assert_eq!(found(&app, "").await.len(), 1);
    execute(&app, "UPDATE listings SET is_taken = true").await;
    assert!(found(&app, "").await.is_empty());
}
