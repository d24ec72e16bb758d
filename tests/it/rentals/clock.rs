//! Moving the sandbox's clock: quickly, in order, one move at a time, and with machines as they are.

use std::time::Duration;

use chrono::TimeDelta;
use rigmark::base::{clock, secret::Secret};
use serde_json::json;

use crate::support::hosts::{RunRow, engine, published};
use crate::support::renting::{Stage, credit, event_kinds, instant, micros, rental_id, request, seconds_between, start};
use crate::support::{Gone, TestApp, wait_for};

#[tokio::test]
async fn an_hour_of_rental_passes_in_a_moment() {
    let stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({})).await;
    let begun = clock::monotonic();
    let form = json!({ "advance_seconds": 3_600 });
    let answer = stage.renter.http.post("/api/v1/sandbox/clock").json(&form).expect(200).await;
    let took = begun.elapsed();
    println!("an hour took {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(answer["ahead_seconds"].as_i64().unwrap() >= 3_600);
    let running = stage.fetch(&rental).await;
    assert_eq!(running["status"], "active");
    assert!((3_600_000..3_700_000).contains(&micros(&running["spend"])), "{running}");
    // Still signed in, still the same instant for everybody.
    stage.renter.http.get("/api/v1/me").expect(200).await;
    stage.assert_books().await;
}

#[tokio::test]
async fn ninety_days_of_an_open_rental_do_not_take_minutes() {
    let stage = Stage::new("100000").await;
    let rental = stage.rent_active(json!({})).await;
    let begun = clock::monotonic();
    stage.app.advance(90 * 86_400).await;
    let took = begun.elapsed();
    println!("90 days took {took:?}");
    assert!(took < Duration::from_secs(60), "{took:?}");
    let running = stage.fetch(&rental).await;
    assert_eq!(running["status"], "active");
    let seconds = seconds_between(&running["active_at"], &running["settled_through"]);
    assert!(seconds >= 90 * 86_400 - 60);
    assert_eq!(micros(&running["spend"]), seconds * 1_000);
    stage.assert_books().await;
}

/// The instants of a long walk are those of a short one: warnings, renewals, the end of the money.
#[tokio::test]
async fn a_long_move_ends_where_small_ones_do() {
    let mut ends = Vec::new();
    for steps in [1, 40] {
        let stage = Stage::new("400").await;
        let other = published(&stage.app, &stage.host, stage.engine.url(), "1.8", &RunRow::default()).await;
        let first = stage.rent_active(json!({})).await;
        let second = request(&stage.renter.http, json!({ "listing_id": other.listing, "max_spend": "90" })).expect(201).await;
        let second = start(&stage.app, &stage.renter, rental_id(&second)).await;
        for _ in 0..steps {
            stage.app.advance(12 * 86_400 / steps).await;
        }
        let (first, second) = (stage.fetch(&first).await, stage.fetch(&second).await);
        assert_eq!((&first["end_reason"], &second["end_reason"]), (&json!("insufficient_funds"), &json!("spend_cap")));
        assert_eq!((&second["spend"], seconds_between(&second["active_at"], &second["ended_at"])), (&json!("90.00"), 180_000));
        let warned = event_kinds(&stage, &first).await.into_iter().filter(|kind| kind == "runway").count();
        ends.push((first["spend"].as_str().unwrap().to_owned(), seconds_between(&first["active_at"], &first["ended_at"]), warned));
        stage.assert_books().await;
    }
    assert_eq!(ends[0], ("310.00".to_owned(), 310_000, 3));
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test]
async fn moves_at_once_follow_each_other() {
    let stage = Stage::new("1000").await;
    let rental = stage.rent_active(json!({})).await;
    let before = stage.now().await;
    let form = json!({ "advance_seconds": 600 });
    // More of them than there are connections.
    let moves = (0..20).map(|_| stage.renter.http.post("/api/v1/sandbox/clock").json(&form).expect(200));
    futures::future::join_all(moves).await;
    let passed = stage.now().await - before;
    assert!(passed >= TimeDelta::seconds(12_000) && passed < TimeDelta::seconds(12_300), "{passed}");
    let running = stage.fetch(&rental).await;
    assert_eq!(micros(&running["spend"]), seconds_between(&running["active_at"], &running["settled_through"]) * 1_000);
    assert!(micros(&running["spend"]) >= 12_000_000);
    stage.assert_books().await;
}

#[tokio::test]
async fn the_clock_goes_forward_only_and_for_those_who_signed_in() {
    let stage = Stage::new("0").await;
    for seconds in [json!(0), json!(-5), json!(63_072_001), json!("60"), json!(null), json!(1.5)] {
        let form = json!({ "advance_seconds": seconds });
        stage.renter.http.post("/api/v1/sandbox/clock").json(&form).expect_problem(422, "invalid_input").await;
    }
    let form = json!({ "advance_seconds": 60, "to": "tomorrow" });
    stage.renter.http.post("/api/v1/sandbox/clock").json(&form).expect_problem(422, "invalid_input").await;
    stage.app.http.post("/api/v1/sandbox/clock").json(&json!({ "advance_seconds": 1 })).expect_problem(401, "unauthenticated").await;
    let clock = stage.renter.http.get("/api/v1/sandbox/clock").expect(200).await;
    assert!(clock["ahead_seconds"].as_i64().unwrap() < 60, "{clock}");
}

/// Twenty machines, each rented, over a month, with two of them dead: in seconds, and each billed for what it did.
#[tokio::test]
async fn a_month_of_many_rentals() {
    let stage = Stage::new("100000").await;
    let mut rentals = vec![stage.rent_active(json!({})).await];
    let mut dead = Vec::new();
    for number in 0..12 {
        let own = (number % 6 == 5).then(engine);
        let url = own.as_ref().map_or_else(|| stage.engine.url().to_owned(), |engine| engine.url().to_owned());
        let offer = published(&stage.app, &stage.host, &url, "0.36", &RunRow::default()).await;
        let rental = stage.rent_active(json!({ "listing_id": offer.listing })).await;
        match own {
            Some(engine) => dead.push((rental, engine)),
            None => rentals.push(rental),
        }
    }
    let mut lost = Vec::new();
    for (rental, engine) in dead {
        lost.push((rental, Gone::engine(engine).await));
    }
    let begun = clock::monotonic();
    stage.app.advance(30 * 86_400).await;
    println!("a month of {} rentals took {:?}", rentals.len(), begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(120));
    for rental in &rentals {
        let running = stage.fetch(rental).await;
        assert_eq!((&running["status"], &running["paused_at"]), (&json!("active"), &json!(null)));
        let seconds = seconds_between(&running["active_at"], &running["settled_through"]);
        assert!(seconds >= 30 * 86_400 - 60, "{running}");
    }
    for (rental, _gone) in &lost {
        let over = stage.fetch(rental).await;
        assert_eq!(over["end_reason"], "host_lost");
        assert!(instant(&over["ended_at"]) - instant(&over["active_at"]) < TimeDelta::hours(1), "{over}");
    }
    stage.assert_books().await;
}

/// A sweep's connection or a client that leaves: the next move works, and machines are looked at again.
#[tokio::test]
async fn a_move_whose_client_leaves_is_finished() {
    let stage = Stage::new("1000").await;
    credit(&stage.renter.http, "1").await;
    let rental = stage.rent_active(json!({})).await;
    let before = stage.now().await;
    let form = json!({ "advance_seconds": 86_400 });
    let post = stage.renter.http.post("/api/v1/sandbox/clock").json(&form).answer();
    tokio::time::timeout(Duration::from_millis(30), post).await.ok();
    stage.app.advance(60).await;
    let passed = stage.now().await - before;
    assert!(passed >= TimeDelta::seconds(60), "{passed}");
    wait_for("the first move", Duration::from_secs(60), async || {
        let now = stage.now().await;
        stage.app.work().await;
        now - before >= TimeDelta::seconds(86_460)
    })
    .await;
    assert_eq!(stage.fetch(&rental).await["status"], "active");
    stage.assert_books().await;
}

/// One process serves and moves the clock, another has the workers: what it does in between harms nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_another_process_take_no_jump_for_a_silence() {
    let stage = Stage::new("100000").await;
    let (url, keys) = (stage.app.database.url().to_owned(), stage.app.ctx().config.keys.clone());
    let _workers = TestApp::with_workers(|config| {
        config.database_url = Some(Secret::new(url));
        config.keys = keys;
    })
    .await;
    let rental = stage.rent(json!({ "max_spend": "9000" })).await;
    wait_for("the first token", Duration::from_secs(30), async || stage.fetch(&rental).await["status"] == "active").await;
    for _ in 0..8 {
        let form = json!({ "advance_seconds": 100_000 });
        stage.renter.http.post("/api/v1/sandbox/clock").json(&form).expect(200).await;
        let other = stage.rent_elsewhere_for("0.5").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        stage.stop(&other).await;
        assert_ne!(stage.fetch(&other).await["end_reason"], "boot_timeout");
    }
    let running = stage.fetch(&rental).await;
    assert_eq!((&running["status"], &running["paused_at"]), (&json!("active"), &json!(null)));
    assert!(micros(&running["spend"]) >= 800_000_000, "{running}");
    let kinds = event_kinds(&stage, &rental).await;
    assert!(kinds.iter().all(|kind| !["paused", "resumed"].contains(&kind.as_str())), "{kinds:?}");
    stage.stop(&rental).await;
    stage.assert_books().await;
}

impl Stage {
    /// A rental of another machine, up to this cap.
    async fn rent_elsewhere_for(&self, max_spend: &str) -> serde_json::Value {
        let other = published(&self.app, &self.host, self.engine.url(), "3.60", &RunRow::default()).await;
        self.rent(json!({ "listing_id": other.listing, "max_spend": max_spend })).await
    }
}
