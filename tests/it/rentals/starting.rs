//! Between acceptance and the first token: nothing is billed, whatever happens.

use std::time::Duration;

use chrono::TimeDelta;
use rigmark::base::clock;
use serde_json::{Value, json};

use crate::support::hosts::{Offer, RunRow, published};
use crate::support::renting::{Stage, balance, event_kinds, instant, rental_id, start};
use crate::support::scripted::{Manner, Scripted, completion, model_list};
use crate::support::{Gone, wait_for};

async fn start_failures(stage: &Stage, offer: &Offer) -> i64 {
    stage.host.http.get(&format!("/api/v1/machines/{}", offer.machine)).expect(200).await["start_failures"].as_i64().unwrap()
}

/// A machine of the host's whose engine does as it is told.
async fn scripted(stage: &Stage) -> (Scripted, Offer) {
    let engine = Scripted::start(&["org/model"]).await;
    let offer = published(&stage.app, &stage.host, &engine.url, "3.60", &RunRow::default()).await;
    (engine, offer)
}

/// Case 9.
#[tokio::test]
async fn a_machine_that_never_answers_costs_nothing_and_is_counted() {
    let stage = Stage::new("10").await;
    let (engine, offer) = scripted(&stage).await;
    for manner in [Manner::Answer(500, "{}".to_owned()), Manner::Answer(200, "nonsense".to_owned()), Manner::Wait] {
        engine.chat(manner.clone());
        let failures = start_failures(&stage, &offer).await;
        let rental = stage.rent(json!({ "listing_id": offer.listing })).await;
        stage.app.work().await;
        assert_eq!(stage.fetch(&rental).await["status"], "provisioning");
        stage.app.advance(400).await;
        assert_eq!(stage.fetch(&rental).await["status"], "provisioning", "{manner:?}");
        assert_eq!(balance(&stage.renter).await, ("6.40".to_owned(), "3.60".to_owned()));
        stage.app.advance(300).await;
        let failed = stage.fetch(&rental).await;
        assert_eq!(
            (&failed["status"], &failed["end_reason"], &failed["spend"]),
            (&json!("failed"), &json!("boot_timeout"), &json!("0.00"))
        );
        assert_eq!(instant(&failed["ended_at"]) - instant(&failed["starts_at"]), TimeDelta::seconds(600));
        assert_eq!(balance(&stage.renter).await, ("10.00".to_owned(), "0.00".to_owned()));
        assert_eq!(start_failures(&stage, &offer).await, failures + 1);
        assert_eq!(stage.stop(&rental).await, failed, "over is over");
        // Free at once.
        engine.chat(Manner::Answer(200, completion("yes")));
        let next = stage.rent(json!({ "listing_id": offer.listing })).await;
        start(&stage.app, &stage.renter, rental_id(&next)).await;
        stage.stop(&next).await;
    }
    stage.assert_books().await;
}

#[tokio::test]
async fn a_machine_whose_engine_is_gone_fails_too() {
    let stage = Stage::new("10").await;
    let (engine, offer) = scripted(&stage).await;
    let url = engine.url.clone();
    drop(engine);
    let _gone = Gone::at(&url).await;
    let rental = stage.rent(json!({ "listing_id": offer.listing })).await;
    stage.app.advance(3_600).await;
    let failed = stage.fetch(&rental).await;
    assert_eq!((&failed["status"], &failed["end_reason"]), (&json!("failed"), &json!("boot_timeout")));
    assert_eq!(instant(&failed["ended_at"]) - instant(&failed["starts_at"]), TimeDelta::seconds(600));
    stage.assert_books().await;
}

/// The clock is moved far beyond the boot limit at once; the machine was there all the time.
#[tokio::test]
async fn moving_the_clock_gives_a_machine_its_chance_to_start() {
    let stage = Stage::new("100").await;
    let rental = stage.rent(json!({ "hours": 1 })).await;
    stage.app.advance(86_400).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["end_reason"], &over["spend"]), (&json!("deadline"), &json!("3.60")));
    // Accepted while the clock is already being moved.
    let work = async {
        let mut all = Vec::new();
        for _ in 0..5 {
            let rental = stage.rent(json!({ "max_spend": "0.5" })).await;
            let still = stage.fetch(&rental).await;
            assert_ne!(still["end_reason"], "boot_timeout");
            stage.stop(&rental).await;
            all.push(rental);
        }
        all
    };
    let ((), all) = tokio::join!(stage.app.advance(20 * 86_400), work);
    for rental in all {
        let reason = stage.fetch(&rental).await["end_reason"].as_str().unwrap().to_owned();
        assert!(["renter_stopped", "spend_cap"].contains(&reason.as_str()), "{reason}");
    }
    assert_eq!(start_failures(&stage, &stage.offer).await, 0);
    stage.assert_books().await;
}

/// Case 15: wherever the stop falls between acceptance and the first token, it ends at no charge, and what the machine says later is nothing.
#[tokio::test]
async fn a_stop_before_the_first_token_is_free_wherever_it_falls() {
    let stage = Stage::new("10").await;
    let (engine, offer) = scripted(&stage).await;
    for point in 0..20_u64 {
        engine.chat(Manner::Wait);
        let rental = stage.rent(json!({ "listing_id": offer.listing })).await;
        let asked_before = engine.bodies().len();
        if point > 0 {
            let work = tokio::time::timeout(Duration::from_millis(point * 4), stage.app.work());
            if point > 10 {
                // The machine is asked and has not answered.
                stage.app.work().await;
                assert!(engine.bodies().len() > asked_before || engine.open() > 0);
            } else {
                work.await.ok();
            }
        }
        if point % 3 == 0 {
            // The answer comes at the same instant as the stop.
            engine.chat(Manner::Answer(200, completion("yes")));
        }
        let stopped = stage.stop(&rental).await;
        assert_eq!((&stopped["status"], &stopped["spend"], &stopped["hold"]), (&json!("ended"), &json!("0.00"), &json!("0.00")), "{point}");
        assert_eq!(stopped["end_reason"], "renter_stopped");
        assert_eq!(stage.stop(&rental).await, stopped);
        // The late answer.
        engine.chat(Manner::Answer(200, completion("yes")));
        stage.app.work().await;
        assert_eq!(stage.fetch(&rental).await, stopped, "{point}");
        let kinds = event_kinds(&stage, &rental).await;
        assert!(!kinds.contains(&"active".to_owned()), "{point}: {kinds:?}");
        assert_eq!(balance(&stage.renter).await, ("10.00".to_owned(), "0.00".to_owned()));
        let listing = stage.app.http.get(&format!("/api/v1/listings/{}", offer.listing)).expect(200).await;
        assert_eq!(listing["available"], true);
    }
    stage.assert_books().await;
}

/// The worker asks while the renter stops, over and over: active and billed, or free; never in between.
#[tokio::test]
async fn a_stop_at_the_instant_of_the_first_token_is_one_or_the_other() {
    let stage = Stage::new("1000").await;
    stage.terms(json!({ "min_hours": 1 })).await;
    for round in 0..25 {
        let rental = stage.rent(json!({})).await;
        let stop = async {
            tokio::time::sleep(Duration::from_millis(round * 3)).await;
            stage.stop(&rental).await
        };
        let (stopped, ()) = tokio::join!(stop, stage.app.work());
        assert_eq!(stopped["status"], "ended");
        stage.app.work().await;
        let later = stage.fetch(&rental).await;
        assert_eq!(later, stopped);
        let spent = later["spend"].as_str().unwrap();
        assert!(["0.00", "3.60"].contains(&spent) && (spent == "0.00" || !later["active_at"].is_null()), "{later}");
    }
    stage.assert_books().await;
}

/// One machine that keeps its callers waiting holds up neither the start of another nor the meter.
#[tokio::test]
async fn a_slow_machine_holds_up_nobody() {
    let stage = Stage::new("100").await;
    let (engine, offer) = scripted(&stage).await;
    engine.chat(Manner::Wait);
    let slow = stage.rent(json!({ "listing_id": offer.listing })).await;
    stage.app.work().await;
    let begun = clock::monotonic();
    let quick = stage.rent_active(json!({ "hours": 1 })).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let begun = clock::monotonic();
    stage.app.advance(500).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(stage.fetch(&quick).await["status"], "active");
    assert_eq!(stage.fetch(&slow).await["status"], "provisioning");
    // The answer that was on its way all the time counts.
    engine.chat(Manner::Answer(200, completion("yes")));
    start(&stage.app, &stage.renter, rental_id(&slow)).await;
    assert_eq!(engine.bodies().len(), 1, "asked once");
    stage.assert_books().await;
}

#[tokio::test]
async fn a_deadline_before_the_first_token_ends_it_for_nothing() {
    let stage = Stage::new("10").await;
    let (engine, offer) = scripted(&stage).await;
    engine.chat(Manner::Answer(503, "{}".to_owned()));
    let ends_at = stage.now().await + TimeDelta::seconds(120);
    let rental = stage.rent(json!({ "listing_id": offer.listing, "ends_at": ends_at })).await;
    stage.app.advance(200).await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["status"], &over["end_reason"], &over["spend"]), (&json!("ended"), &json!("deadline"), &json!("0.00")));
    assert_eq!(instant(&over["ended_at"]), ends_at);
    engine.chat(Manner::Answer(200, completion("yes")));
    stage.app.work().await;
    assert_eq!(stage.fetch(&rental).await, over);
    stage.assert_books().await;
}

/// Our own outage is no failure of the machine's: it was never asked.
#[tokio::test]
async fn a_start_that_nobody_asked_for_is_not_the_machines_failure() {
    let stage = Stage::new("10").await;
    let rental = stage.rent(json!({})).await;
    stage.advance_without_workers(3_600).await;
    stage.app.work().await;
    let over = stage.fetch(&rental).await;
    assert_eq!((&over["status"], &over["end_reason"], &over["spend"]), (&json!("failed"), &json!("boot_timeout"), &json!("0.00")));
    assert_eq!(start_failures(&stage, &stage.offer).await, 0);
    assert_eq!(balance(&stage.renter).await.0, "10.00");
}

/// The model of the contract is what the engine says when it starts.
#[tokio::test]
async fn an_engine_that_names_no_model_has_not_started() {
    let stage = Stage::new("10").await;
    let (engine, offer) = scripted(&stage).await;
    engine.models(Manner::Answer(200, model_list(&[])));
    let rental = stage.rent(json!({ "listing_id": offer.listing })).await;
    stage.app.work().await;
    assert_eq!(stage.fetch(&rental).await["access"]["model"], Value::Null);
    engine.models(Manner::Answer(200, model_list(&["a/b", "c"])));
    let active = start(&stage.app, &stage.renter, rental_id(&rental)).await;
    assert_eq!(active["access"]["model"], "a/b");
}

/// With workers running by themselves it takes a second or two, not a step of a test.
#[tokio::test]
async fn with_workers_a_rental_starts_by_itself() {
    let mut stage = Stage::new("10").await;
    stage.app.start_workers().await;
    stage.renter.http = stage.renter.http.at(&stage.app.http);
    let rental = stage.rent(json!({})).await;
    wait_for("the first token", Duration::from_secs(30), async || stage.fetch(&rental).await["status"] == "active").await;
    stage.advance_without_workers(120).await;
    wait_for("a charge", Duration::from_secs(60), async || stage.fetch(&rental).await["spend"] != "0.00").await;
    stage.stop(&rental).await;
    stage.assert_books().await;
}
