//! A machine that is no longer what was measured: stale, seven days, off the market.

use rigmark::benchmarks::model::RunDetail;
use rigmark::benchmarks::staleness::{BaseLine, by_document, learn_document, learn_version};
use rigmark::jobs;
use rigmark::measure::simulated::start_on;
use serde_json::{Value, json};

use super::{Stage, config, detail, quick, run_with};
use crate::support::hosts::RunRow;

const DAY: i64 = 86_400;

async fn patch(stage: &Stage, hardware: Value) {
    let path = format!("/api/v1/machines/{}", stage.machine);
    stage.host.http.patch(&path).json(&json!({"hardware": hardware})).expect(200).await;
    jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
}

#[tokio::test]
async fn another_driver_makes_the_badge_stale_and_after_seven_days_the_listing_leaves() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    // What was measured, said for the first time, and what no run speaks of.
    patch(&stage, json!({"driver": "570.10", "power_limit_w": 351.0, "os": "Debian 12"})).await;
    assert_eq!(stage.listing(listing).await["badge"], "measured");
    patch(&stage, json!({"driver": "580.1"})).await;
    let body = stage.listing(listing).await;
    assert_eq!(
        (body["state"].as_str(), body["badge"].as_str(), &body["available"]),
        (Some("published"), Some("stale"), &json!(true)),
        "{body}"
    );
    assert_eq!(body["run"]["stale_reason"], "the driver changed from 570.10 to 580.1");
    let run = stage.public_run().await;
    assert_eq!((&run["stale_until"], run["stale_reason"].as_str()), (&body["run"]["stale_until"], body["run"]["stale_reason"].as_str()));
    assert_eq!(stage.letters(), ["Your run is stale"]);
    // A second change adds to the reasons and leaves the deadline.
    patch(&stage, json!({"power_limit_w": 250.0})).await;
    let run = stage.public_run().await;
    assert!(run["stale_reason"].as_str().unwrap().ends_with("; the power limit changed from 350 W to 250 W"), "{run}");
    assert_eq!(run["stale_until"], body["run"]["stale_until"]);

    stage.app.advance(7 * DAY - 3_600).await;
    assert_eq!(stage.listing(listing).await["state"], "published");
    stage.app.advance(2 * 3_600).await;
    let off = stage.listing(listing).await;
    assert_eq!((off["state"].as_str(), off["off_market_reason"].as_str()), (Some("off_market"), Some("run_stale")));
    assert_eq!(off["updated_at"], run["stale_until"], "the clock stopped at the deadline itself");
    let publish = format!("/api/v1/listings/{listing}/publish");
    let problem = stage.host.http.post(&publish).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "run_stale");
    // The answer to a new challenge.
    let mut newer = detail(&config().law);
    newer["claim"]["hardware"] = json!({"gpu": "RTX 3090", "gpu_count": 1, "driver": "580.1", "power_limit_w": 250.0});
    run_with(&stage.app, stage.machine, &RunRow::default(), &newer).await;
    let body = stage.host.http.post(&publish).expect(200).await;
    assert_eq!((body["badge"].as_str(), &body["run"]["stale_reason"]), (Some("measured"), &Value::Null));
}

#[tokio::test]
async fn a_new_run_within_the_days_of_grace_keeps_the_listing_and_its_badge() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    patch(&stage, json!({"driver": "580.1"})).await;
    stage.app.advance(DAY).await;
    let newer = run_with(&stage.app, stage.machine, &RunRow::default(), &detail(&config().law)).await;
    stage.app.work().await;
    let body = stage.listing(listing).await;
    assert_eq!((body["run"]["id"].clone(), body["badge"].as_str()), (json!(newer), Some("measured")), "{body}");
    stage.app.advance(10 * DAY).await;
    assert_eq!(stage.listing(listing).await["state"], "published");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_names_another_version_or_model_makes_the_run_stale() {
    let stage = Stage::new(quick).await;
    let listing = stage.publish().await;
    stage.app.work().await;
    assert_eq!(stage.listing(listing).await["badge"], "measured", "what is first seen is what is measured");
    let Stage { engine, app, .. } = &stage;
    let address = engine.url().strip_prefix("http://").unwrap().to_owned();
    let replace = async |config| {
        let listener = std::net::TcpListener::bind(&address).unwrap();
        start_on(config, listener).unwrap()
    };
    engine.stop_now().await;
    let newer = replace(config().with_version("9.0")).await;
    app.work().await;
    assert_eq!(stage.listing(listing).await["badge"], "measured", "it was asked a moment ago");
    app.shift_wall(601);
    app.work().await;
    let body = stage.listing(listing).await;
    let reason = body["run"]["stale_reason"].as_str().unwrap();
    assert!(reason.starts_with("the engine's version changed from ") && reason.ends_with(" to 9.0"), "{body}");
    newer.stop().await;
    let mut other = config().with_version("9.0");
    other.model = "org/smaller".to_owned();
    let _other = replace(other).await;
    app.shift_wall(601);
    app.work().await;
    let body = stage.listing(listing).await;
    assert!(body["run"]["stale_reason"].as_str().unwrap().contains("the served model changed from org/model to org/smaller"), "{body}");
    assert_eq!((body["state"].as_str(), body["badge"].as_str()), (Some("published"), Some("stale")));
}

#[tokio::test]
async fn a_later_document_that_shows_another_driver_makes_the_older_run_stale() {
    let stage = Stage::new(quick).await;
    let mut form = json!({"document": serde_json::from_str::<Value>(include_str!("../../documents/reference-run.json")).unwrap()});
    form["machine_id"] = json!(stage.machine);
    form["model"] = json!({"hf_id": MODEL_OF_DOCUMENT});
    let run = stage.host.http.post("/api/v1/matrix-runs").json(&form).expect(201).await;
    assert_eq!((run["status"].as_str(), &run["stale_at"]), (Some("verified"), &Value::Null), "{}", run["checks"]);
    let reason = stage.public_run().await["stale_reason"].as_str().unwrap_or_default().to_owned();
    let driver = run["hardware"]["driver"].as_str().unwrap();
    assert!(reason.contains(&format!("the driver changed from 570.10 to {driver}")), "{reason} {run}");
}

const MODEL_OF_DOCUMENT: &str = "org/model";

/// A run that says neither driver nor power limit: what is heard of first is what a change is measured by.
#[tokio::test]
async fn what_the_run_left_open_is_learned_and_a_change_after_that_counts() {
    let stage = Stage::new(quick).await;
    let mut bare = detail(&config().law);
    bare["claim"] = json!({"hardware": {"gpu": "RTX 3090", "gpu_count": 1}});
    bare["hardware_seen"] = json!({"gpus": []});
    let run = run_with(&stage.app, stage.machine, &RunRow::default(), &bare).await;
    let shown = async || stage.app.http.get(&format!("/api/v1/matrix-runs/{run}")).expect(200).await["stale_reason"].clone();
    let base_lines = async || -> Vec<String> {
        let history = stage.app.http.get(&format!("/api/v1/matrix-runs/{run}/history")).expect(200).await;
        let events = history["data"].as_array().unwrap().clone();
        events.iter().filter(|event| event["kind"] == "base_line").map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
    };
    patch(&stage, json!({"driver": "999.1"})).await;
    assert_eq!((shown().await, base_lines().await), (Value::Null, vec!["the driver is 999.1".to_owned()]));
    patch(&stage, json!({"driver": "999.1", "power_limit_w": 300.0})).await;
    assert_eq!((shown().await, base_lines().await.len()), (Value::Null, 2), "each once");
    patch(&stage, json!({"driver": "999.2"})).await;
    assert_eq!(shown().await, "the driver changed from 999.1 to 999.2");
    patch(&stage, json!({"power_limit_w": 250.0})).await;
    assert_eq!(shown().await, "the driver changed from 999.1 to 999.2; the power limit changed from 300 W to 250 W");
    assert_eq!(base_lines().await.len(), 2);
}

/// The same of documents: the second names what the first does not, and the third another. The host's statements are apart from them.
#[test]
fn a_later_document_gives_the_base_line_that_the_next_is_held_against() {
    let shows = |seen: Value, version: Option<&str>| -> RunDetail {
        let mut detail = detail(&config().law);
        detail["claim"] = json!({"hardware": {"gpu": "RTX 3090"}});
        detail["hardware_seen"] = seen;
        detail["run"]["engine_version"] = json!(version);
        serde_json::from_value(detail).unwrap()
    };
    let card = |driver: &str, watts: f64, count: usize| {
        let gpu = json!({"name": "RTX 3090", "memory_mib": null, "power_limit_w": watts});
        json!({"gpus": vec![gpu; count], "driver": driver})
    };
    let (old, second) = (shows(json!({"gpus": []}), None), shows(card("600.1", 300.0, 1), Some("0.11")));
    let mut base_line = BaseLine::default();
    assert_eq!(by_document(&old, &base_line, None, &second), Vec::<String>::new());
    let learned = learn_document(&old, &mut base_line, &second);
    assert_eq!(learned, ["the driver is 600.1", "the set of GPUs is RTX 3090", "the power limit is 300 W"]);
    assert_eq!(learn_version(&old, None, &second), Some("0.11"));
    assert_eq!((learn_document(&old, &mut base_line, &second), learn_version(&old, Some("0.11"), &second)), (vec![], None), "once");
    let third = shows(card("600.2", 250.0, 2), Some("0.12"));
    assert_eq!(
        by_document(&old, &base_line, Some("0.11"), &third),
        [
            "the driver changed from 600.1 to 600.2",
            "the power limit changed from 300 W to 250 W",
            "the set of GPUs changed from RTX 3090 to RTX 3090 + RTX 3090",
            "the engine's version changed from 0.11 to 0.12"
        ]
    );
    assert_eq!(base_line.stated, Default::default());
    // What the run itself shows stands above anything later.
    let mut other = BaseLine::default();
    assert_eq!(learn_document(&second, &mut other, &third), Vec::<String>::new());
    assert_eq!(by_document(&second, &other, None, &third).len(), 4);
}
