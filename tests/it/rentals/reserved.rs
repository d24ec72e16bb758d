//! Rentals that start later.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::hosts::person;
use crate::support::renting::{Stage, balance, credit, fetch, instant, micros, rental_id, request, seconds_between};

/// Hours from a whole instant, so that spans can meet.
fn hour(start: DateTime<Utc>, hours: i64) -> String {
    (start + TimeDelta::hours(hours)).to_rfc3339()
}

#[tokio::test]
async fn a_reservation_takes_the_span_and_holds_the_money_and_starts_by_itself() {
    let stage = Stage::new("10").await;
    let now = stage.now().await;
    let rental = stage.rent(json!({ "starts_at": hour(now, 2), "hours": 1 })).await;
    assert_eq!((&rental["status"], &rental["hold"]), (&json!("reserved"), &json!("3.60")));
    assert_eq!(instant(&rental["starts_at"]), now + TimeDelta::hours(2));
    assert_eq!(balance(&stage.renter).await, ("6.40".to_owned(), "3.60".to_owned()));
    assert!(!stage.is_available().await);
    stage.app.work().await;
    assert_eq!(stage.fetch(&rental).await["status"], "reserved");
    stage.app.advance(7_100).await;
    assert_eq!((&stage.fetch(&rental).await["status"], balance(&stage.renter).await.1.as_str()), (&json!("reserved"), "3.60"));
    stage.app.advance(200).await;
    let active = stage.fetch(&rental).await;
    assert_eq!(active["status"], "active");
    assert!(seconds_between(&active["starts_at"], &active["active_at"]) < 60, "{active}");
    stage.app.advance(7_200).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], &over["spend"]), (&json!("deadline"), &json!("3.60")));
    assert_eq!(seconds_between(&over["active_at"], &over["ended_at"]), 3_600);
    stage.assert_books().await;
}

#[tokio::test]
async fn a_reservation_that_is_stopped_costs_nothing_and_gives_the_span_back() {
    let stage = Stage::new("10").await;
    let now = stage.now().await;
    let rental = stage.rent(json!({ "starts_at": hour(now, 2), "hours": 1 })).await;
    let stopped = stage.stop(&rental).await;
    assert_eq!(
        (&stopped["status"], &stopped["end_reason"], &stopped["spend"]),
        (&json!("ended"), &json!("renter_stopped"), &json!("0.00"))
    );
    assert_eq!(balance(&stage.renter).await, ("10.00".to_owned(), "0.00".to_owned()));
    assert!(stage.is_available().await);
    stage.rent(json!({})).await;
    stage.app.advance(10_000).await;
    assert_eq!(stage.fetch(&rental).await["status"], "ended");
    stage.assert_books().await;
}

#[tokio::test]
async fn spans_that_meet_are_fine_and_spans_that_overlap_are_not() {
    let stage = Stage::new("100").await;
    let other = person(&stage.app, "other").await;
    credit(&other.http, "100").await;
    let now = stage.now().await;
    let (at, form) = (|hours: i64| hour(now, hours), |form: Value| stage.with_listing(form));
    stage.rent(json!({ "starts_at": at(4), "ends_at": at(6) })).await;
    let overlapping = [
        json!({}),
        json!({ "hours": 5 }),
        json!({ "ends_at": at(5) }),
        json!({ "starts_at": at(3), "ends_at": at(5) }),
        json!({ "starts_at": at(4), "ends_at": at(6) }),
        json!({ "starts_at": at(5), "hours": 1 }),
        json!({ "starts_at": at(5) }),
        json!({ "starts_at": at(1), "ends_at": at(20) }),
        json!({ "starts_at": at(1) }),
    ];
    for case in overlapping {
        request(&other.http, form(case.clone())).expect_problem(409, "already_rented").await;
    }
    let meeting = [
        json!({ "starts_at": at(3), "ends_at": at(4) }),
        json!({ "starts_at": at(6), "hours": 2 }),
        json!({ "ends_at": at(3) }),
        json!({ "starts_at": at(8) }),
    ];
    let mut all = Vec::new();
    for case in meeting {
        all.push(request(&other.http, form(case)).expect(201).await);
    }
    assert_eq!(balance(&other).await.1, "14.40");
    // One after the other has the machine, each for its own span.
    stage.app.advance(9 * 3_600).await;
    let spans = [(3, 3 * 3_600), (0, 3_600), (1, 2 * 3_600)];
    for (place, seconds) in [(2, spans[0].1), (0, spans[1].1), (1, spans[2].1)] {
        let over = fetch(&other, rental_id(&all[place])).await;
        assert_eq!(over["end_reason"], "deadline", "{over}");
        let billed = over["billed_seconds"].as_i64().unwrap();
        assert!(billed <= seconds && billed > seconds - 60, "{over}");
        assert_eq!(micros(&over["spend"]), billed * 1_000);
    }
    assert_eq!(fetch(&other, rental_id(&all[3])).await["status"], "active");
    stage.assert_books().await;
}

/// A length in hours is counted from the first token, but not into somebody else's span.
#[tokio::test]
async fn a_late_start_does_not_run_into_the_next_rental() {
    let stage = Stage::new("100").await;
    let now = stage.now().await;
    let first = stage.rent(json!({ "hours": 1 })).await;
    let second = stage.rent(json!({ "starts_at": first["ends_at"], "hours": 1 })).await;
    stage.advance_without_workers(500).await;
    let active = crate::support::renting::start(&stage.app, &stage.renter, rental_id(&first)).await;
    assert_eq!(active["ends_at"], first["ends_at"]);
    stage.app.advance(8_000).await;
    let (first, second) = (stage.fetch(&first).await, stage.fetch(&second).await);
    assert_eq!((&first["end_reason"], &first["ended_at"]), (&json!("deadline"), &second["starts_at"]));
    assert!(first["billed_seconds"].as_i64().unwrap() <= 3_100);
    assert_eq!(second["end_reason"], "deadline");
    assert!(instant(&second["active_at"]) >= instant(&first["ended_at"]) && instant(&first["starts_at"]) >= now);
    stage.assert_books().await;
}

/// What the host's availability ends, a late start does not lengthen.
#[tokio::test]
async fn a_late_start_does_not_outlast_the_listing() {
    let stage = Stage::new("100").await;
    let until = stage.now().await + TimeDelta::seconds(3_700);
    stage.terms(json!({ "available_until": until })).await;
    let rental = stage.rent(json!({ "hours": 1 })).await;
    stage.advance_without_workers(500).await;
    let active = crate::support::renting::start(&stage.app, &stage.renter, rental_id(&rental)).await;
    assert_eq!(instant(&active["ends_at"]), until);
}

#[tokio::test]
async fn an_extended_reservation_still_starts_on_time() {
    let stage = Stage::new("100").await;
    let now = stage.now().await;
    let rental = stage.rent(json!({ "starts_at": hour(now, 2), "hours": 1 })).await;
    let extend = stage.renter.http.post(&format!("/api/v1/rentals/{}/extend", rental_id(&rental))).idempotency_key("k");
    let extended = extend.json(&json!({ "hours": 1 })).expect(200).await;
    assert_eq!((&extended["hours"], &extended["status"]), (&json!(2), &json!("reserved")));
    stage.app.advance(86_400).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], &over["spend"]), (&json!("deadline"), &json!("7.20")));
    assert!(seconds_between(&over["starts_at"], &over["active_at"]) < 60, "{over}");
    stage.assert_books().await;
}
