//! The orders of a search by workload, where what is compared is nearly or wholly equal, page by page.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{RunRow, cell, engine, execute, person, published};

const WORKLOAD: &str = "model=gpt-oss-20b&context=0&concurrency=1";

/// Everything a search finds, read in pages of two.
async fn paged(app: &TestApp, query: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.http.get(&format!("/api/v1/listings?{query}&limit=2{cursor}")).expect(200).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|row: &Value| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&cursor={next}");
    }
}

/// Later listings are a little faster, by less than a micro-dollar: the price is the same, and the order is that of the ids.
#[tokio::test]
async fn prices_that_round_to_the_same_are_in_the_order_of_ids() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let mut expected = Vec::new();
    for speed in [100.0, 100.000_000_1, 100.000_000_2, 100.000_000_3, 100.000_000_4] {
        let row = RunRow { cells: vec![cell(0, 1, speed)], ..RunRow::default() };
        expected.push(published(&app, &ann, engine.url(), "0.37", &row).await.listing.to_string());
    }
    let dearer = RunRow { cells: vec![cell(0, 1, 99.0)], ..RunRow::default() };
    let dearer = published(&app, &ann, engine.url(), "0.37", &dearer).await.listing.to_string();
    let cheaper = RunRow { cells: vec![cell(0, 1, 101.0)], ..RunRow::default() };
    let cheaper = published(&app, &ann, engine.url(), "0.37", &cheaper).await.listing.to_string();
    let by_price: Vec<String> = [vec![cheaper.clone()], expected.clone(), vec![dearer.clone()]].concat();
    assert_eq!(paged(&app, WORKLOAD).await, by_price);
    // By speed they differ.
    expected.reverse();
    let by_speed: Vec<String> = [vec![cheaper], expected, vec![dearer]].concat();
    assert_eq!(paged(&app, &format!("{WORKLOAD}&sort=tokens_per_second")).await, by_speed);
}

/// A price that no sixty-four bits hold counts as the highest; those are in the order of ids.
#[tokio::test]
async fn prices_beyond_all_numbers_come_last_in_the_order_of_ids() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let mut expected = Vec::new();
    for speed in [0.000_004, 0.000_001, 0.000_002, 0.000_003] {
        let row = RunRow { cells: vec![cell(0, 1, speed)], ..RunRow::default() };
        expected.push(published(&app, &ann, engine.url(), "1000000", &row).await.listing.to_string());
    }
    assert_eq!(paged(&app, WORKLOAD).await, expected);
}

/// What a listing answers follows its price, its state and its run.
#[tokio::test]
async fn the_order_follows_every_change_of_a_listing() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let first = published(&app, &ann, engine.url(), "0.30", &RunRow::default()).await.listing.to_string();
    let second = published(&app, &ann, engine.url(), "0.40", &RunRow::default()).await.listing.to_string();
    assert_eq!(paged(&app, WORKLOAD).await, [first.clone(), second.clone()]);
    ann.http.patch(&format!("/api/v1/listings/{first}")).json(&json!({ "price_per_hour": "0.50" })).expect(200).await;
    assert_eq!(paged(&app, WORKLOAD).await, [second.clone(), first.clone()]);
    ann.http.post(&format!("/api/v1/listings/{second}/pause")).expect(200).await;
    assert_eq!(paged(&app, WORKLOAD).await, [first.clone()]);
    ann.http.post(&format!("/api/v1/listings/{second}/publish")).expect(200).await;
    assert_eq!(paged(&app, WORKLOAD).await, [second.clone(), first.clone()]);
    execute(&app, "UPDATE runs SET status = 'rejected'").await;
    app.work().await;
    assert!(paged(&app, WORKLOAD).await.is_empty());
    let mut conn = app.connect().await;
    let left = diesel_async::RunQueryDsl::execute(diesel::sql_query("SELECT 1 FROM listing_answers"), &mut conn).await.unwrap();
    assert_eq!(left, 0);
}
