//! What a dollar buys: published listings with a measured badge, each with its price.

use serde_json::{Value, json};

use super::board;
use crate::support::TestApp;
use crate::support::hosts::{RunRow, cell, engine, execute, person, published};

#[tokio::test]
async fn listings_are_ranked_by_what_a_dollar_buys() {
    let app = TestApp::new().await;
    let engine = engine();
    let mut offers = Vec::new();
    // 400 tokens a second for an hour are 1,440,000; for half a dollar an hour that is 2,880,000 a dollar.
    for (handle, price, speed) in [("ann", "0.50", 400.0), ("bob", "0.25", 400.0), ("cyd", "1.00", 400.0)] {
        let host = person(&app, handle).await;
        let row = RunRow { cells: vec![cell(0, 1, 100.0), cell(0, 8, speed)], ..RunRow::default() };
        offers.push(published(&app, &host, engine.url(), price, &row).await);
    }
    let query = "metric=tokens_per_dollar&context=0&concurrency=8";
    let rows = board(&app, query).await;
    let seen: Vec<_> = rows.iter().map(|row| (row["rank"].as_i64().unwrap(), row["figure"].as_f64().unwrap())).collect();
    assert_eq!(seen, [(1, 5_760_000.0), (2, 2_880_000.0), (3, 1_440_000.0)]);
    assert_eq!((&rows[0]["offer"]["listing_id"], &rows[0]["offer"]["price_per_hour"]), (&json!(offers[1].listing), &json!("0.25")));
    assert_eq!((&rows[0]["run"]["id"], &rows[0]["unit"]), (&json!(offers[1].run), &json!("tokens_per_dollar")));
    assert_eq!(board(&app, &format!("{query}&model=gpt-oss-20b&hardware=rtx-3090&gpu_count=1&evidence=challenged")).await.len(), 3);
    assert_eq!(board(&app, &format!("{query}&evidence=remeasured")).await.len(), 0);
    assert_eq!(board(&app, "metric=tokens_per_dollar&context=0&concurrency=4").await, Vec::<Value>::new(), "cells as they were measured");
    let first = app.http.get(&format!("/api/v1/leaderboard?{query}&limit=1")).expect(200).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(app.http.get(&format!("/api/v1/leaderboard?{query}&limit=2&cursor={cursor}")).expect(200).await["data"], json!(rows[1..]));
    // Stale, paused: no measured badge on the market.
    execute(&app, &format!("UPDATE runs SET stale_at = now() WHERE id = '{}'", offers[1].run.uuid())).await;
    execute(&app, &format!("UPDATE runs SET machine_id = machine_id WHERE id = '{}'", offers[0].run.uuid())).await;
    assert_eq!(board(&app, query).await.len(), 2);
}

/// The listing follows a decision by a job; the ranking does not wait for it.
#[tokio::test]
async fn a_run_that_was_rejected_or_is_in_dispute_is_not_ranked_from_then_on() {
    let app = TestApp::new().await;
    let engine = engine();
    let mut offers = Vec::new();
    for handle in ["ann", "bob", "cyd"] {
        let host = person(&app, handle).await;
        offers.push(published(&app, &host, engine.url(), "1.00", &RunRow { cells: vec![cell(0, 1, 100.0)], ..RunRow::default() }).await);
    }
    let query = "metric=tokens_per_dollar&context=0&concurrency=1";
    assert_eq!(board(&app, query).await.len(), 3);
    execute(&app, &format!("UPDATE runs SET status = 'rejected' WHERE id = '{}'", offers[0].run.uuid())).await;
    assert_eq!(board(&app, query).await.len(), 2, "no job has run");
    let doubt = format!("INSERT INTO run_standings (run_id, disputed_at) VALUES ('{}', now())", offers[1].run.uuid());
    execute(&app, &doubt).await;
    let rows = board(&app, query).await;
    assert_eq!((rows.len(), &rows[0]["run"]["id"]), (1, &json!(offers[2].run)));
}
