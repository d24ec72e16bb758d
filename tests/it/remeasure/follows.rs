//! What follows from an outcome, for the run, its listing, its host and whoever rents.

use std::time::Duration;

use rigmark::config::ListingEvidence;
use rigmark::jobs;
use serde_json::{Value, json};

use super::{Stage, quick};
use crate::support::hosts::{draft, execute, person};
use crate::support::renting::{credit, request};
use crate::support::wait_for;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_machine_agrees_and_may_then_be_listed_where_that_is_wanted() {
    let stage = Stage::new(|config| {
        quick(config);
        config.listing_evidence = ListingEvidence::Remeasured;
    })
    .await;
    let listing = draft(&stage.host, stage.machine, "3.60").await;
    let publish = format!("/api/v1/listings/{listing}/publish");
    let problem = stage.host.http.post(&publish).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "evidence_too_low");
    assert!(problem["unmet"][0]["detail"].as_str().unwrap().contains("/remeasure"), "{problem}");

    let asked = stage.ask().await;
    assert_eq!((asked["status"].as_str(), asked["reason"].as_str()), (Some("queued"), Some("requested")));
    assert_eq!((&asked["run_id"], &asked["samples"]), (&json!(stage.run), &json!([])));
    assert_eq!(stage.ask().await["id"], asked["id"]);
    // The workers of other jobs leave it alone.
    stage.app.work().await;
    assert_eq!(stage.all().await[0]["status"], "queued");
    assert_eq!(stage.app.measure().await, 1);

    let row = &stage.all().await[0];
    assert_eq!((row["status"].as_str(), &row["detail"]), (Some("agreed"), &Value::Null), "{row}");
    let samples = row["samples"].as_array().unwrap();
    assert!((3..=5).contains(&samples.len()), "{row}");
    assert_eq!(samples[0]["concurrency"], 1);
    let quantities = |sample: &Value| sample["figures"].as_array().unwrap().iter().map(|f| f["quantity"].clone()).collect::<Vec<_>>();
    assert_eq!(quantities(&samples[0]), ["time_between_tokens", "cold_ttft"]);
    assert!(samples.iter().all(|sample| ![0, 1_024, 4_096].contains(&sample["context_tokens"].as_u64().unwrap())), "{row}");
    assert_eq!((row["answers"]["wrong"].as_u64(), row["answers"]["unfinished"].as_u64()), (Some(0), Some(0)), "{row}");
    assert!(row["answers"]["right"].as_u64().unwrap() >= 3);

    let run = stage.public_run().await;
    assert_eq!((run["evidence_level"].as_str(), run["remeasurements"][0]["outcome"].as_str()), (Some("remeasured"), Some("agreed")));
    assert_eq!(run["remeasurements"][0]["samples"], row["samples"]);
    assert_eq!(run["remeasured_at"], row["finished_at"]);
    assert_eq!(stage.host.http.post(&publish).expect(200).await["badge"], "measured");
    // Another address is another engine, until that has been measured too.
    let other = super::engine();
    let path = format!("/api/v1/machines/{}", stage.machine);
    stage.host.http.patch(&path).json(&json!({"endpoint": {"url": other.url()}})).expect(200).await;
    stage.app.work().await;
    assert_eq!(stage.listing(listing).await["off_market_reason"], "endpoint_changed");
    let again = stage.ask().await;
    assert_eq!(stage.measure(&again).await["status"], "agreed");
    assert_eq!(stage.host.http.post(&publish).expect(200).await["state"], "published");
    assert_eq!(stage.letters(), Vec::<String>::new());
}

/// Slower by more than any tolerance, with those that hold outside tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_machine_loses_its_badge_and_at_the_second_disagreement_its_run_goes_to_review() {
    let stage = Stage::new(|config| config.tunables.remeasure_window_milliseconds = 400).await;
    let listing = stage.publish().await;
    let renter = person(&stage.app, "renter").await;
    stage.engine.set_speed_factor(0.6);
    let asked = stage.ask().await;
    let first = stage.measure(&asked).await;
    assert_eq!(first["status"], "disagreed", "{first}");
    assert!(first["detail"].as_str().unwrap().contains("the time between tokens was"), "{first}");
    assert!(first["samples"][0]["figures"][0]["within"] == false && first["samples"][0]["tries"] == 2, "{first}");
    // Before any job has run nobody can rent it.
    let form = json!({"listing_id": listing});
    renter.http.post("/api/v1/quotes").json(&form).expect_problem(409, "listing_not_available").await;
    jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
    let off = stage.listing(listing).await;
    assert_eq!((off["state"].as_str(), off["off_market_reason"].as_str()), (Some("off_market"), Some("remeasure_disagreed")));
    assert_eq!(off["badge"], "stale");
    let run = stage.public_run().await;
    assert_eq!((run["status"].as_str(), run["remeasurements"][0]["outcome"].as_str()), (Some("verified"), Some("disagreed")));
    assert_eq!(stage.letters(), ["Your machine does not fit its matrix"]);
    let page = stage.app.http.get(&format!("/en/runs/{}", run["id"].as_str().unwrap())).answer().await.body;
    for words in ["it did not agree", "In doubt", "Outside", "the time between tokens was", "streams answered rightly"] {
        assert!(page.contains(words), "the run's page lacks: {words}");
    }
    // An older run of the machine does not stand in for it, and publishing says why.
    let problem = stage.host.http.post(&format!("/api/v1/listings/{listing}/publish")).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "remeasure_disagreed");

    let second = stage.all().await[0].clone();
    assert_eq!((second["reason"].as_str(), second["status"].as_str()), (Some("second_try"), Some("queued")));
    let second = stage.measure(&second).await;
    assert_eq!(second["status"], "disagreed", "{second}");
    assert_ne!(first["samples"][0]["context_tokens"], second["samples"][0]["context_tokens"], "the cells are drawn anew");
    stage.app.work().await;
    let run = stage.public_run().await;
    assert_eq!((run["status"].as_str(), run["label"].as_str()), (Some("needs_review"), Some("unverified")));
    assert_eq!(run["remeasurements"].as_array().unwrap().len(), 2);
    assert_eq!(stage.listing(listing).await["state"], "off_market");
    assert_eq!(stage.all().await.len(), 2, "nothing more is queued");
    stage.host.http.post(&stage.path("remeasure")).expect_problem(409, "no_verified_run").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_as_before_when_the_second_try_agrees() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    // Something else has the machine for a while.
    stage.engine.set_speed_factor(0.1);
    let asked = stage.ask().await;
    assert_eq!(stage.measure(&asked).await["status"], "disagreed");
    stage.app.work().await;
    assert_eq!(stage.listing(listing).await["state"], "off_market");
    stage.engine.set_speed_factor(1.0);
    let second = stage.all().await[0].clone();
    assert_eq!(stage.measure(&second).await["status"], "agreed");
    jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
    let back = stage.listing(listing).await;
    assert_eq!(
        (back["state"].as_str(), back["badge"].as_str(), &back["off_market_reason"]),
        (Some("published"), Some("measured"), &Value::Null)
    );
    let run = stage.public_run().await;
    assert_eq!((run["evidence_level"].as_str(), &run["disputed_at"]), (Some("remeasured"), &Value::Null));
    assert_eq!(stage.letters(), ["Your machine does not fit its matrix", "Your machine is measured again"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renter_is_not_disturbed() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    let renter = person(&stage.app, "renter").await;
    credit(&renter.http, "100").await;
    // It begins while the machine is measured.
    let asked = stage.ask().await;
    let rents = async {
        wait_for("a stream of the measurement", Duration::from_secs(20), async || stage.engine.load().0 > 0).await;
        request(&renter.http, json!({"listing_id": listing})).expect(201).await
    };
    let (row, _rental) = tokio::join!(stage.measure(&asked), rents);
    assert_eq!((row["status"].as_str(), row["samples"].as_array().map(Vec::len)), (Some("interrupted"), Some(0)), "{row}");
    wait_for("the end of all streams", Duration::from_secs(5), async || stage.engine.load() == (0, 0)).await;
    let run = stage.public_run().await;
    assert_eq!((run["evidence_level"].as_str(), &run["remeasurements"]), (Some("challenged"), &json!([])));
    // And while it goes on nothing is begun.
    stage.host.http.post(&stage.path("remeasure")).expect_problem(409, "machine_in_use").await;
    // One that was queued before, say.
    let before = stage.engine.generated_tokens();
    execute(&stage.app, "UPDATE remeasurements SET status = 'queued', finished_at = NULL").await;
    assert_eq!(stage.measure(&asked).await["status"], "interrupted");
    assert_eq!(stage.engine.generated_tokens(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_left_is_begun_from_fresh_by_another() {
    let stage = Stage::new(quick).await;
    stage.ask().await;
    let is_measuring = async || stage.engine.load().0 > 0;
    tokio::select! {
        _ = stage.app.measure() => panic!("it was to be cut off"),
        () = wait_for("a stream of the measurement", Duration::from_secs(20), is_measuring) => {}
    }
    assert_eq!(stage.all().await[0]["status"], "running");
    assert_eq!(stage.app.measure().await, 0, "its lease still runs");
    assert_eq!(stage.ask().await["status"], "running");
    stage.app.shift_wall(61);
    assert_eq!(stage.app.measure().await, 1);
    let rows = stage.all().await;
    assert_eq!((rows.len(), rows[0]["status"].as_str()), (1, Some("agreed")), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_gives_its_measurement_back_and_the_next_begins_it_at_once() {
    let mut stage = Stage::new(quick).await;
    stage.ask().await;
    stage.app.start_workers().await;
    let engine = &stage.engine;
    wait_for("a stream of the measurement", Duration::from_secs(20), async || engine.load().0 > 0).await;
    // No lease has to run out: wall time does not move.
    stage.app.restart().await;
    let is_open = |status: &str| ["queued", "running"].contains(&status);
    wait_for("the outcome", Duration::from_secs(100), async || !is_open(&stage.progress().await.0)).await;
    // Which one it is, with all that goes on beside it, is for other tests; that nothing was made of the first attempt is for this.
    let (status, attempts) = stage.progress().await;
    assert!(status != "interrupted" && attempts == 2, "{status} after {attempts}");
}

#[tokio::test]
async fn asking_is_refused_with_the_reason() {
    let stage = Stage::new(quick).await;
    let path = format!("/api/v1/machines/{}", stage.machine);
    execute(&stage.app, "UPDATE runs SET status = 'rejected'").await;
    stage.host.http.post(&stage.path("remeasure")).expect_problem(409, "no_verified_run").await;
    execute(&stage.app, "UPDATE runs SET status = 'verified', visibility = 'unlisted'").await;
    stage.host.http.post(&stage.path("remeasure")).expect_problem(409, "no_verified_run").await;
    execute(&stage.app, "UPDATE runs SET visibility = 'public'").await;
    stage.host.http.patch(&path).json(&json!({"endpoint": null})).expect(200).await;
    stage.host.http.post(&stage.path("remeasure")).expect_problem(409, "no_endpoint").await;
    // An engine that does not answer decides nothing.
    stage.host.http.patch(&path).json(&json!({"endpoint": {"url": "http://127.0.0.1:9"}})).expect(200).await;
    for _ in 0..6 {
        let asked = stage.ask().await;
        let row = stage.measure(&asked).await;
        assert_eq!(row["status"], "failed", "{row}");
    }
    stage.host.http.post(&stage.path("remeasure")).expect_problem(429, "rate_limited").await;
    let run = stage.public_run().await;
    assert_eq!((run["status"].as_str(), &run["remeasurements"]), (Some("verified"), &json!([])));
    let page = stage.host.http.get(&format!("{}?limit=4", stage.path("remeasurements"))).expect(200).await;
    let next = format!("{}?limit=4&cursor={}", stage.path("remeasurements"), page["next_cursor"].as_str().unwrap());
    assert_eq!(stage.host.http.get(&next).expect(200).await["data"].as_array().unwrap().len(), 2);
}
