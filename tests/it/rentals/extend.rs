//! Extending: a later deadline, a higher cap, and who else wants the machine.

use chrono::TimeDelta;
use rigmark::base::id::TransferId;
use serde_json::{Value, json};

use crate::support::hosts::person;
use crate::support::http::Request;
use crate::support::renting::{Stage, balance, credit, event_kinds, instant, micros, rental_id, request, seconds_between};

fn extend(stage: &Stage, rental: &Value, form: Value) -> Request {
    let path = format!("/api/v1/rentals/{}/extend", rental_id(rental));
    stage.renter.http.post(&path).idempotency_key(TransferId::new().to_string()).json(&form)
}

#[tokio::test]
async fn a_deadline_moves_and_is_kept() {
    let stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({ "hours": 1 })).await;
    let longer = extend(&stage, &rental, json!({ "hours": 2 })).expect(200).await;
    assert_eq!((&longer["hours"], seconds_between(&rental["ends_at"], &longer["ends_at"])), (&json!(3), 7_200));
    stage.app.advance(3_700).await;
    assert_eq!(stage.fetch(&rental).await["status"], "active");
    let until = instant(&longer["ends_at"]) + TimeDelta::minutes(10);
    let longest = extend(&stage, &rental, json!({ "ends_at": until })).expect(200).await;
    assert_eq!(instant(&longest["ends_at"]), until);
    stage.app.advance(20_000).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], instant(&over["ended_at"])), (&json!("deadline"), until));
    assert_eq!(micros(&over["spend"]), seconds_between(&over["active_at"], &over["ended_at"]) * 1_000);
    assert_eq!(event_kinds(&stage, &rental).await.iter().filter(|kind| *kind == "extended").count(), 2);
    stage.assert_books().await;
}

#[tokio::test]
async fn a_cap_can_be_raised() {
    let stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({ "max_spend": "1" })).await;
    stage.app.advance(600).await;
    let problem = extend(&stage, &rental, json!({ "max_spend": "1" })).expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["pointer"], "/max_spend");
    let raised = extend(&stage, &rental, json!({ "max_spend": "5" })).expect(200).await;
    assert_eq!(raised["max_spend"], "5.00");
    assert!(micros(&raised["hold"]) + micros(&raised["spend"]) > 1_000_000, "the hold grows with it: {raised}");
    stage.app.advance(10_000).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], &over["spend"]), (&json!("spend_cap"), &json!("5.00")));
    stage.assert_books().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let stage = Stage::new("100").await;
    stage.terms(json!({ "max_hours": 5 })).await;
    let rental = stage.rent_active(json!({ "hours": 2 })).await;
    let now = stage.now().await;
    let cases = [
        (json!({}), ""),
        (json!({ "hours": 0 }), "/hours"),
        (json!({ "hours": -1 }), "/hours"),
        (json!({ "hours": 4 }), "/hours"),
        (json!({ "hours": 9_000 }), "/hours"),
        (json!({ "hours": "1h" }), "/hours"),
        (json!({ "hours": 1, "ends_at": now + TimeDelta::hours(3) }), "/ends_at"),
        (json!({ "ends_at": now + TimeDelta::hours(1) }), "/ends_at"),
        (json!({ "ends_at": rental["ends_at"] }), "/ends_at"),
        (json!({ "ends_at": now + TimeDelta::hours(6) }), "/ends_at"),
        (json!({ "ends_at": "9999-12-31T23:59:59Z" }), "/ends_at"),
        (json!({ "max_spend": "50" }), "/max_spend"),
        (json!({ "until": now }), "/until"),
    ];
    for (form, pointer) in cases {
        let problem = extend(&stage, &rental, form.clone()).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{form}: {problem}");
    }
    let path = format!("/api/v1/rentals/{}/extend", rental_id(&rental));
    stage.renter.http.post(&path).json(&json!({ "hours": 1 })).expect_problem(400, "idempotency_key_required").await;
    let unchanged = stage.fetch(&rental).await;
    assert_eq!((&unchanged["ends_at"], &unchanged["hours"]), (&rental["ends_at"], &rental["hours"]));
    // Exactly the limit is fine; then no more.
    extend(&stage, &rental, json!({ "hours": 3 })).expect(200).await;
    extend(&stage, &rental, json!({ "hours": 1 })).expect_problem(422, "invalid_input").await;
    stage.stop(&rental).await;
    extend(&stage, &rental, json!({ "hours": 1 })).expect_problem(409, "invalid_state").await;
    stage.terms(json!({ "max_hours": null })).await;
    let open = stage.rent(json!({})).await;
    extend(&stage, &open, json!({ "hours": 1 })).expect_problem(409, "invalid_state").await;
    stage.assert_books().await;
}

#[tokio::test]
async fn the_hosts_time_is_the_last() {
    let stage = Stage::new("100").await;
    let until = stage.now().await + TimeDelta::hours(3);
    stage.terms(json!({ "available_until": until })).await;
    let rental = stage.rent_active(json!({ "hours": 1 })).await;
    // Terms are those of the acceptance: a change meanwhile lengthens nothing.
    stage.terms(json!({ "available_until": null })).await;
    extend(&stage, &rental, json!({ "hours": 3 })).expect_problem(422, "invalid_input").await;
    extend(&stage, &rental, json!({ "ends_at": until })).expect(200).await;
    extend(&stage, &rental, json!({ "ends_at": until + TimeDelta::seconds(1) })).expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn an_extension_once_sent_twice_is_one() {
    let stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({ "hours": 1 })).await;
    let path = format!("/api/v1/rentals/{}/extend", rental_id(&rental));
    let post = || stage.renter.http.post(&path).idempotency_key("once").json(&json!({ "hours": 1 })).answer();
    let answers = futures::future::join_all((0..10).map(|_| post())).await;
    assert!(answers.iter().all(|a| a.status == 200 || a.json()["code"] == "idempotency_in_progress"));
    assert_eq!(post().await.status, 200);
    assert_eq!(stage.fetch(&rental).await["hours"], 2);
}

/// Case 13: the renter wants more time, another wants that time.
#[tokio::test]
async fn an_extension_and_a_booking_of_the_same_hour_have_one_winner() {
    let stage = Stage::new("1000").await;
    let other = person(&stage.app, "other").await;
    credit(&other.http, "100").await;
    let (mut extended, mut booked) = (0, 0);
    for round in 0..20 {
        let rental = stage.rent(json!({ "hours": 1 })).await;
        let rental =
            if round % 2 == 0 { rental } else { crate::support::renting::start(&stage.app, &stage.renter, rental_id(&rental)).await };
        let form = stage.with_listing(json!({ "starts_at": rental["ends_at"], "hours": 1 }));
        let (extension, booking) =
            tokio::join!(extend(&stage, &rental, json!({ "hours": 1 })).answer(), request(&other.http, form).answer());
        match (extension.status.as_u16(), booking.status.as_u16()) {
            (200, 409) => {
                assert_eq!(booking.json()["code"], "already_rented");
                extended += 1;
            }
            (409, 201) => {
                assert_eq!(extension.json()["code"], "already_rented");
                booked += 1;
                other.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(&booking.json()))).expect(200).await;
            }
            other => panic!("round {round}: {other:?}, {} {}", extension.body, booking.body),
        }
        stage.stop(&rental).await;
    }
    assert_eq!(extended + booked, 20);
    assert_eq!(balance(&other).await, ("100.00".to_owned(), "0.00".to_owned()));
    stage.assert_books().await;
}
