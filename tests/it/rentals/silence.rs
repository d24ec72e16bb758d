//! Machines that fall silent: the clock stops at the last sign of life, goes on with the next, and ends after a while.

use chrono::{DateTime, TimeDelta, Utc};
use rigmark::base::id::MachineId;
use serde_json::json;

use crate::support::Gone;
use crate::support::hosts::{RunRow, published};
use crate::support::renting::{Stage, balance, event_kinds, instant, micros, seconds_between};
use crate::support::scripted::{Manner, Scripted, model_list};

/// Takes the stage's engine away.
async fn fall_silent(stage: &mut Stage) -> Gone {
    let spare = crate::support::hosts::engine();
    Gone::engine(std::mem::replace(&mut stage.engine, spare)).await
}

async fn last_seen(stage: &Stage, machine: MachineId) -> DateTime<Utc> {
    rigmark::machines::service::fetch(&mut stage.app.connect().await, machine).await.unwrap().last_seen_at.unwrap()
}

#[tokio::test]
async fn a_silent_host_is_not_paid_for_the_silence_and_then_lost() {
    let mut stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(1_000).await;
    let seen = last_seen(&stage, stage.offer.machine).await;
    let _gone = fall_silent(&mut stage).await;
    // Not yet silent enough: nothing is billed beyond the last sign.
    stage.app.advance(20).await;
    let running = stage.fetch(&rental).await;
    assert_eq!((&running["status"], &running["paused_at"]), (&json!("active"), &json!(null)));
    let billed = micros(&running["spend"]);
    stage.app.advance(60).await;
    let paused = stage.fetch(&rental).await;
    assert_eq!(paused["status"], "active");
    assert_eq!(instant(&paused["paused_at"]), seen, "retroactive");
    assert_eq!(micros(&paused["spend"]), billed);
    stage.app.advance(700).await;
    assert_eq!(stage.fetch(&rental).await["status"], "active");
    stage.app.advance(200).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["status"], &over["end_reason"]), (&json!("ended"), &json!("host_lost")));
    assert_eq!(instant(&over["ended_at"]) - seen, TimeDelta::seconds(900));
    assert_eq!(micros(&over["spend"]), (seen - instant(&over["active_at"])).num_seconds() * 1_000);
    assert_eq!(event_kinds(&stage, &rental).await.iter().filter(|kind| *kind == "paused").count(), 1);
    // Free, although nobody would want it before it answers again.
    let listing = stage.app.http.get(&format!("/api/v1/listings/{}", stage.offer.listing)).expect(200).await;
    assert_ne!(listing["unavailable_because"], "taken");
    stage.assert_books().await;
}

/// In one move over the whole silence the instants are the same.
#[tokio::test]
async fn one_move_over_a_lost_host_ends_at_the_right_instant() {
    let mut stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({ "hours": 10 })).await;
    stage.app.advance(1_000).await;
    let seen = last_seen(&stage, stage.offer.machine).await;
    let _gone = fall_silent(&mut stage).await;
    stage.app.advance(20 * 86_400).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], instant(&over["ended_at"]) - seen), (&json!("host_lost"), TimeDelta::seconds(900)));
    assert_eq!(micros(&over["spend"]), (seen - instant(&over["active_at"])).num_seconds() * 1_000);
    stage.assert_books().await;
}

#[tokio::test]
async fn a_machine_that_comes_back_is_billed_from_then_on() {
    let mut stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(600).await;
    let seen = last_seen(&stage, stage.offer.machine).await;
    let gone = fall_silent(&mut stage).await;
    stage.app.advance(300).await;
    let _engine = gone.come_back().await;
    stage.app.work().await;
    let back = last_seen(&stage, stage.offer.machine).await;
    let resumed = stage.fetch(&rental).await;
    assert_eq!((&resumed["status"], &resumed["paused_at"]), (&json!("active"), &json!(null)));
    stage.app.advance(600).await;
    let stopped = stage.stop(&rental).await;
    let usage = stage.usage(&rental).await;
    let spans = usage["segments"].as_array().unwrap();
    assert_eq!(spans.len(), 2, "{usage}");
    assert_eq!((instant(&spans[0]["ended_at"]), instant(&spans[1]["started_at"])), (seen, back));
    let seconds: i64 = spans.iter().map(|span| seconds_between(&span["started_at"], &span["ended_at"])).sum();
    assert_eq!((micros(&stopped["spend"]), &stopped["billed_seconds"]), (seconds * 1_000, &json!(seconds)));
    assert!(seconds < seconds_between(&stopped["active_at"], &stopped["ended_at"]) - 290);
    let kinds = event_kinds(&stage, &rental).await;
    let course: Vec<&String> = kinds.iter().filter(|kind| ["paused", "resumed", "ended"].contains(&kind.as_str())).collect();
    assert_eq!(course, ["paused", "resumed", "ended"]);
    stage.assert_books().await;
}

#[tokio::test]
async fn a_stop_in_the_silence_bills_to_the_last_sign_and_owes_no_least_length() {
    let mut stage = Stage::new("100").await;
    stage.terms(json!({ "min_hours": 2 })).await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(600).await;
    let seen = last_seen(&stage, stage.offer.machine).await;
    let _gone = fall_silent(&mut stage).await;
    // Failing, but not for a minute yet.
    stage.app.advance(30).await;
    let stopped = stage.stop(&rental).await;
    assert_eq!((&stopped["status"], &stopped["end_reason"]), (&json!("ended"), &json!("renter_stopped")));
    assert_eq!(micros(&stopped["spend"]), (seen - instant(&stopped["active_at"])).num_seconds() * 1_000);
    assert_eq!(balance(&stage.renter).await.1, "0.00");
    stage.assert_books().await;
}

/// The least length is what the machine was there for, or would have been: its silence is not part of it.
#[tokio::test]
async fn the_least_length_does_not_charge_for_a_silence_before() {
    let mut stage = Stage::new("100").await;
    stage.terms(json!({ "min_hours": 1 })).await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(600).await;
    let gone = fall_silent(&mut stage).await;
    stage.app.advance(600).await;
    let _engine = gone.come_back().await;
    stage.app.advance(60).await;
    stage.stop(&rental).await;
    let usage = stage.usage(&rental).await;
    let spans = usage["segments"].as_array().unwrap();
    let silent = seconds_between(&spans[0]["ended_at"], &spans[1]["started_at"]);
    assert!((590..700).contains(&silent), "{usage}");
    assert_eq!(micros(&usage["gross"]), (3_600 - silent) * 1_000, "{usage}");
    stage.assert_books().await;
}

/// The workers were away for an hour. A probe that fails once afterwards is no silence of an hour.
#[tokio::test]
async fn an_outage_of_ours_loses_no_host() {
    let stage = Stage::new("100").await;
    let engine = Scripted::start(&["org/model"]).await;
    let offer = published(&stage.app, &stage.host, &engine.url, "3.60", &RunRow::default()).await;
    let rental = stage.rent_active(json!({ "listing_id": offer.listing })).await;
    stage.advance_without_workers(3_600).await;
    engine.models(Manner::Answer(500, "{}".to_owned()));
    stage.app.work().await;
    let running = stage.fetch(&rental).await;
    assert_eq!((&running["status"], &running["paused_at"]), (&json!("active"), &json!(null)));
    engine.models(Manner::Answer(200, model_list(&["org/model"])));
    stage.app.work().await;
    let running = stage.fetch(&rental).await;
    assert!(micros(&running["spend"]) >= 3_600_000, "{running}");
    stage.stop(&rental).await;
    stage.assert_books().await;
}

/// Nobody looked for an hour, and the machine was dead for an unknown part of it: a stop asks before it bills.
#[tokio::test]
async fn a_stop_after_an_outage_asks_the_machine_first() {
    let mut stage = Stage::new("100").await;
    let (there, gone) = (stage.rent_active(json!({})).await, {
        let other = published(&stage.app, &stage.host, stage.engine.url(), "3.60", &RunRow::default()).await;
        stage.rent_active(json!({ "listing_id": other.listing })).await
    });
    stage.advance_without_workers(3_000).await;
    let stopped = stage.stop(&there).await;
    assert!(micros(&stopped["spend"]) >= 3_000_000, "{stopped}");
    let _gone = fall_silent(&mut stage).await;
    let stopped = stage.stop(&gone).await;
    assert!(micros(&stopped["spend"]) < 100_000, "{stopped}");
    stage.assert_books().await;
}

/// A renter whose deadline passes while the host is silent is done; the host is paid to the last sign.
#[tokio::test]
async fn a_deadline_passes_in_the_silence_too() {
    let mut stage = Stage::new("100").await;
    let rental = stage.rent_active(json!({ "hours": 1 })).await;
    stage.app.advance(3_300).await;
    let seen = last_seen(&stage, stage.offer.machine).await;
    let _gone = fall_silent(&mut stage).await;
    stage.app.advance(3_600).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], &over["ended_at"]), (&json!("deadline"), &over["ends_at"]));
    assert_eq!(micros(&over["spend"]), (seen - instant(&over["active_at"])).num_seconds() * 1_000);
    stage.assert_books().await;
}

/// One host's silence is not another's.
#[tokio::test]
async fn machines_that_answer_are_not_made_silent_by_one_that_does_not() {
    let mut stage = Stage::new("1000").await;
    let other_engine = crate::support::hosts::engine();
    let other = published(&stage.app, &stage.host, other_engine.url(), "3.60", &RunRow::default()).await;
    let lost = stage.rent_active(json!({})).await;
    let alive = stage.rent_active(json!({ "listing_id": other.listing })).await;
    let _gone = fall_silent(&mut stage).await;
    stage.app.advance(86_400).await;
    assert_eq!(stage.fetch(&lost).await["end_reason"], "host_lost");
    let running = stage.fetch(&alive).await;
    assert_eq!((&running["status"], &running["paused_at"]), (&json!("active"), &json!(null)));
    assert!(micros(&running["spend"]) >= 86_400_000, "{running}");
    assert!(!event_kinds(&stage, &alive).await.contains(&"paused".to_owned()));
    stage.assert_books().await;
}
