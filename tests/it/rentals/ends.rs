//! How rentals end: each reason at its instant, at its price, and once.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::hosts::{RunRow, published};
use crate::support::renting::{Stage, balance, credit, earnings, event_kinds, instant, micros, rental_id, request, seconds_between, start};
use crate::support::wait_for;

/// Status, reason, and seconds from the first billed one to the end.
fn end_of(rental: &Value) -> (String, String, i64) {
    let text = |name: &str| rental[name].as_str().unwrap_or_else(|| panic!("{rental}")).to_owned();
    (text("status"), text("end_reason"), seconds_between(&rental["active_at"], &rental["ended_at"]))
}

fn ended(reason: &str, seconds: i64) -> (String, String, i64) {
    ("ended".to_owned(), reason.to_owned(), seconds)
}

/// Case 8: nothing looks at the rental for an hour, and yet it ends where the money does.
#[tokio::test]
async fn without_any_worker_the_rental_ends_where_the_money_does() {
    let stage = Stage::new("3.60").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(500).await;
    assert_eq!(micros(&stage.fetch(&rental).await["spend"]) / 10_000, 50);
    stage.advance_without_workers(4_100).await;
    // The endpoint does not wait for a worker.
    let ask = json!({ "model": "org/model", "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 1 });
    stage.renter.http.post("/v1/chat/completions").json(&ask).expect(404).await;
    stage.app.work().await;
    let over = stage.fetch(&rental).await;
    assert_eq!(end_of(&over), ended("insufficient_funds", 3_600));
    assert_eq!((&over["spend"], &over["billed_seconds"], &over["hold"]), (&json!("3.60"), &json!(3_600), &json!("0.00")));
    assert_eq!(balance(&stage.renter).await, ("0.00".to_owned(), "0.00".to_owned()));
    assert_eq!(earnings(&stage.host).await.micros(), 3_240_000);
    stage.renter.http.post("/v1/chat/completions").json(&ask).expect(404).await;
    assert!(stage.is_available().await);
    stage.assert_books().await;
}

#[tokio::test]
async fn the_last_dollar_is_used_to_the_last_whole_second() {
    let stage = Stage::at_price("0.37", "1").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(20_000).await;
    let over = stage.fetch(&rental).await;
    // floor(370000 · s ÷ 3600) ≤ 1000000: 9,729 seconds.
    assert_eq!(end_of(&over), ended("insufficient_funds", 9_729));
    assert_eq!(over["spend"], "0.999925");
    assert_eq!(balance(&stage.renter).await, ("0.000075".to_owned(), "0.00".to_owned()));
    // Warned on the way, each threshold once.
    let usage = stage.usage(&rental).await;
    let warned: Vec<i64> = usage["events"].as_array().unwrap().iter().filter_map(|e| e["detail"]["threshold_seconds"].as_i64()).collect();
    assert_eq!(warned, [86_400, 7_200, 900]);
    stage.assert_books().await;
}

#[tokio::test]
async fn holds_are_renewed_ahead_of_use_and_in_part_when_that_is_all_there_is() {
    let stage = Stage::new("8").await;
    let rental = stage.rent_active(json!({})).await;
    assert_eq!(stage.fetch(&rental).await["hold"], "3.60");
    stage.app.advance(3_300).await;
    let later = stage.fetch(&rental).await;
    let (held, spent) = (micros(&later["hold"]), micros(&later["spend"]));
    assert!((3_300_000..3_400_000).contains(&spent), "{later}");
    assert!((3_200_000..3_400_000).contains(&held), "an hour ahead of the renewal: {later}");
    stage.app.advance(3_000).await;
    let later = stage.fetch(&rental).await;
    assert_eq!(micros(&later["hold"]) + micros(&later["spend"]), 8_000_000, "all that is left: {later}");
    assert_eq!(later["status"], "active");
    stage.app.advance(3_600).await;
    assert_eq!(end_of(&stage.fetch(&rental).await), ended("insufficient_funds", 8_000));
    stage.assert_books().await;
}

#[tokio::test]
async fn money_that_comes_in_time_keeps_a_rental_alive() {
    let stage = Stage::new("3.60").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(3_500).await;
    credit(&stage.renter.http, "3.60").await;
    stage.app.advance(3_600).await;
    let running = stage.fetch(&rental).await;
    assert_eq!(running["status"], "active", "{running}");
    stage.app.advance(3_600).await;
    assert_eq!(end_of(&stage.fetch(&rental).await), ended("insufficient_funds", 7_200));
    stage.assert_books().await;
}

#[tokio::test]
async fn a_spend_cap_is_another_end_than_an_empty_balance() {
    let stage = Stage::new("10").await;
    let capped = stage.rent_active(json!({ "max_spend": "2.5" })).await;
    stage.app.advance(9_000).await;
    let over = stage.fetch(&capped).await;
    assert_eq!(end_of(&over), ended("spend_cap", 2_500));
    assert_eq!((&over["spend"], balance(&stage.renter).await.0.as_str()), (&json!("2.50"), "7.50"));
    // A cap that the balance does not reach is no reason.
    let rich = stage.rent_active(json!({ "max_spend": "100" })).await;
    stage.app.advance(9_000).await;
    assert_eq!(end_of(&stage.fetch(&rich).await), ended("insufficient_funds", 7_500));
    // A cap beyond the first hold, reached later.
    credit(&stage.renter.http, "100").await;
    let long = stage.rent_active(json!({ "max_spend": "36.0005" })).await;
    stage.app.advance(40_000).await;
    let over = stage.fetch(&long).await;
    assert_eq!(end_of(&over), ended("spend_cap", 36_000));
    assert_eq!(over["spend"], "36.00");
    // A cap that covers no second covers none.
    let none = stage.rent(json!({ "max_spend": "0.000999" })).await;
    wait_for("the end", std::time::Duration::from_secs(30), async || {
        stage.app.work().await;
        stage.fetch(&none).await["status"] == "ended"
    })
    .await;
    let over = stage.fetch(&none).await;
    assert_eq!((end_of(&over), &over["spend"]), (ended("spend_cap", 0), &json!("0.00")));
    stage.assert_books().await;
}

/// Case 10: the deadline is in the database and needs no process to be remembered.
#[tokio::test]
async fn a_deadline_outlives_restarts() {
    let mut stage = Stage::new("10").await;
    let ends_at = stage.now().await + TimeDelta::seconds(1_200);
    let rental = stage.rent_active(json!({ "ends_at": ends_at })).await;
    let token = stage.renter.http.clone();
    for seconds in [600, 500] {
        stage.app.advance(seconds).await;
        stage.app.restart().await;
        stage.renter.http = token.at(&stage.app.http);
        stage.host.http = stage.host.http.at(&stage.app.http);
        assert_eq!(stage.fetch(&rental).await["status"], "active");
    }
    // Nothing runs while it passes.
    stage.advance_without_workers(300).await;
    stage.app.restart().await;
    stage.renter.http = token.at(&stage.app.http);
    stage.app.work().await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["status"], &over["end_reason"]), (&json!("ended"), &json!("deadline")));
    assert_eq!((instant(&over["ended_at"]) - ends_at).num_microseconds(), Some(0));
    let seconds = seconds_between(&over["active_at"], &over["ended_at"]);
    assert_eq!(micros(&over["spend"]), seconds * 1_000);
    assert!((900..=1_200).contains(&seconds), "{seconds}");
    stage.assert_books().await;
}

#[tokio::test]
async fn hours_count_from_the_first_billed_second() {
    let stage = Stage::new("10").await;
    let rental = stage.rent(json!({ "hours": 2 })).await;
    // The machine takes its time.
    stage.advance_without_workers(300).await;
    let active = start(&stage.app, &stage.renter, rental_id(&rental)).await;
    assert_eq!(seconds_between(&active["active_at"], &active["ends_at"]), 7_200);
    assert!(seconds_between(&rental["starts_at"], &active["active_at"]) >= 300);
    stage.app.advance(20_000).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((end_of(&over), &over["spend"]), (ended("deadline", 7_200), &json!("7.20")));
    assert_eq!(balance(&stage.renter).await.0, "2.80");
    stage.assert_books().await;
}

#[tokio::test]
async fn a_stop_ends_billing_at_its_receipt_and_a_second_one_changes_nothing() {
    let stage = Stage::new("10").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(100).await;
    let before = stage.now().await;
    let stopped = stage.stop(&rental).await;
    let after = stage.now().await;
    let ended_at = instant(&stopped["ended_at"]);
    assert!(before <= ended_at && ended_at <= after, "{stopped}");
    assert_eq!(micros(&stopped["spend"]), seconds_between(&stopped["active_at"], &stopped["ended_at"]) * 1_000);
    stage.app.advance(3_600).await;
    assert_eq!(stage.stop(&rental).await, stopped);
    stage.host.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect(200).await;
    assert_eq!(stage.fetch(&rental).await, stopped);
    assert_eq!(event_kinds(&stage, &rental).await.iter().filter(|kind| *kind == "ended").count(), 1);
    stage.assert_books().await;
}

#[tokio::test]
async fn the_host_may_stop_and_is_paid_for_what_was_used() {
    let stage = Stage::new("10").await;
    stage.terms(json!({ "min_hours": 2 })).await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(600).await;
    let stopped = stage.host.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect(200).await;
    let (status, reason, seconds) = end_of(&stopped);
    assert_eq!((status.as_str(), reason.as_str()), ("ended", "host_stopped"));
    assert_eq!(micros(&stopped["spend"]), seconds * 1_000, "a host who stops early is not owed the least length");
    stage.assert_books().await;
}

#[tokio::test]
async fn stopping_early_bills_the_least_length_and_no_more() {
    let stage = Stage::new("20").await;
    stage.terms(json!({ "min_hours": 2 })).await;
    let early = stage.rent_active(json!({})).await;
    stage.app.advance(600).await;
    let stopped = stage.stop(&early).await;
    assert_eq!((&stopped["spend"], &stopped["end_reason"]), (&json!("7.20"), &json!("renter_stopped")));
    let usage = stage.usage(&early).await;
    let used = micros(&usage["segments"][0]["gross"]);
    assert!((600_000..700_000).contains(&used), "{usage}");
    assert_eq!(micros(&usage["min_hours_remainder"]), 7_200_000 - used);
    assert_eq!((&usage["gross"], &usage["platform_fee"], &usage["host_share"]), (&json!("7.20"), &json!("0.72"), &json!("6.48")));
    assert_eq!(balance(&stage.renter).await, ("12.80".to_owned(), "0.00".to_owned()));
    // Beyond the least length only what was used.
    let late = stage.rent_active(json!({})).await;
    stage.app.advance(8_000).await;
    let stopped = stage.stop(&late).await;
    assert_eq!(micros(&stopped["spend"]), end_of(&stopped).2 * 1_000);
    stage.assert_books().await;
}

/// Two rentals share one balance; neither is charged for the other, and both end when it is empty.
#[tokio::test]
async fn rentals_that_share_a_balance_end_together() {
    let stage = Stage::new("10.8").await;
    let other = published(&stage.app, &stage.host, stage.engine.url(), "1.8", &RunRow::default()).await;
    let first = stage.rent_active(json!({})).await;
    let second = request(&stage.renter.http, json!({ "listing_id": other.listing })).expect(201).await;
    let second = start(&stage.app, &stage.renter, rental_id(&second)).await;
    stage.app.advance(100_000).await;
    let (first, second) = (stage.fetch(&first).await, stage.fetch(&second).await);
    let ((_, reason_1, seconds_1), (_, reason_2, seconds_2)) = (end_of(&first), end_of(&second));
    assert_eq!((reason_1.as_str(), reason_2.as_str()), ("insufficient_funds", "insufficient_funds"));
    assert_eq!((micros(&first["spend"]), micros(&second["spend"])), (seconds_1 * 1_000, seconds_2 * 500));
    // Two hours of both, give or take one renewal that the other could not have.
    assert!((seconds_1 - 7_200).abs() <= 3_600 && (seconds_2 - 7_200).abs() <= 3_600, "{seconds_1} {seconds_2}");
    let (available, held) = balance(&stage.renter).await;
    assert!(held == "0.00" && micros(&json!(available)) <= 1_000, "{available}");
    stage.assert_books().await;
}

#[tokio::test]
async fn the_streams_of_events_tell_all_and_end_with_the_rental() {
    let stage = Stage::new("10").await;
    let rental = stage.rent_active(json!({})).await;
    let path = format!("/api/v1/rentals/{}/events", rental_id(&rental));
    let follow = stage.renter.http.get(&path).answer();
    let work = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stage.stop(&rental).await;
    };
    let (answer, ()) = tokio::join!(follow, work);
    assert_eq!((answer.status.as_u16(), answer.header("content-type").as_deref()), (200, Some("text/event-stream")));
    let kinds: Vec<&str> = answer.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((kinds[..3].to_vec(), kinds.last()), (vec!["accepted", "provisioning", "active"], Some(&"ended")));
    let ids: Vec<i64> = answer.body.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
    let after = stage.renter.http.get(&path).header("Last-Event-ID", ids[1].to_string()).answer().await;
    let rest: Vec<i64> = after.body.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
    assert_eq!(rest, ids[2..]);
}
