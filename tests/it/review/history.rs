//! The history of a run: what is in it, who reads it, and that nobody changes it.

use diesel_async::RunQueryDsl;
use rigmark::base::id::RunId;
use serde_json::{Value, json};

use super::{Stage, finding, needs_review};
use crate::benchmarks;
use crate::remeasure;
use crate::support::TestApp;
use crate::support::hosts::{RunRow, execute, id, person};

fn kinds(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_upload_begins_a_history_that_anyone_reads() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let mut body: Value = serde_json::from_slice(&benchmarks::bytes("reference-run.meta.json")).unwrap();
    body["document"] = serde_json::from_slice(&benchmarks::bytes("reference-run.json")).unwrap();
    let run = ann.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    let path = format!("/api/v1/matrix-runs/{}/history", run["id"].as_str().unwrap());
    let page = app.http.get(&path).expect(200).await;
    assert_eq!(kinds(&page), ["uploaded", "verdict"]);
    assert_eq!((&page["data"][0]["by"], &page["data"][1]["by"]), (&json!("@ann"), &Value::Null));
    let verdict = &page["data"][1];
    assert_eq!((&verdict["verdict"], &verdict["rules_version"], &verdict["findings"]), (&run["status"], &run["rules_version"], &json!([])));
    // The same upload again is the same run, and nothing has happened.
    ann.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    assert_eq!(kinds(&app.http.get(&path).expect(200).await), ["uploaded", "verdict"]);
    let first = app.http.get(&format!("{path}?limit=1")).expect(200).await;
    let rest = app.http.get(&format!("{path}?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).expect(200).await;
    assert_eq!((kinds(&first), kinds(&rest), &rest["next_cursor"]), (vec!["uploaded"], vec!["verdict"], &Value::Null));
    // A copy of another account waits, and says why.
    let mallory = person(&app, "mallory").await;
    let copy = mallory.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    assert_eq!(copy["status"], "needs_review", "{copy}");
    let page = app.http.get(&format!("/api/v1/matrix-runs/{}/history", copy["id"].as_str().unwrap())).expect(200).await;
    assert_eq!(page["data"][1]["verdict"], "needs_review");
    assert!(page["data"][1]["findings"].as_array().unwrap().contains(&json!("duplicate_document")), "{page}");
}

#[tokio::test]
async fn an_unlisted_runs_history_is_for_whoever_has_its_address() {
    let stage = Stage::new().await;
    let run = stage.run(&RunRow { visibility: "unlisted", ..needs_review() }, json!([finding("run_replayed")])).await;
    stage.decide(&stage.olga, run, "reject", "It is a copy.").await;
    assert_eq!(stage.kinds(run).await, ["reviewed"]);
    assert_eq!(stage.app.http.get("/api/v1/matrix-runs").expect(200).await["data"], json!([]), "no list leads to it");
    let unknown = format!("/api/v1/matrix-runs/{}/history", RunId::new());
    stage.app.http.get(&unknown).expect_problem(404, "not_found").await;
    stage.app.http.get("/api/v1/matrix-runs/run_x/history").expect_problem(404, "not_found").await;
}

#[tokio::test]
async fn no_event_is_changed_and_none_is_taken_away() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    stage.decide(&stage.olga, run, "reject", "It is a copy.").await;
    let before = stage.history(run).await;
    let mut conn = stage.app.connect().await;
    for statement in ["UPDATE run_events SET at = now()", "DELETE FROM run_events", "TRUNCATE run_events", "TRUNCATE runs CASCADE"] {
        let refused = diesel::sql_query(statement).execute(&mut conn).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("append-only")), "{statement}");
    }
    assert_eq!(stage.history(run).await, before);
    // A second answer, past the service.
    execute(&stage.app, &format!("INSERT INTO run_events (run_id, at, kind) VALUES ('{}', now(), 'answered')", run.uuid())).await;
    let second = format!("INSERT INTO run_events (run_id, at, kind) VALUES ('{}', now(), 'answered')", run.uuid());
    assert!(diesel::sql_query(second).execute(&mut conn).await.is_err_and(|error| error.to_string().contains("run_events_one_answer")));
}

/// An act that fails leaves no event behind, since both are of one transaction.
#[tokio::test]
async fn an_event_is_of_the_transaction_of_its_act() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    execute(&stage.app, "ALTER TABLE runs ADD CONSTRAINT held CHECK (status <> 'rejected') NOT VALID").await;
    assert_eq!(stage.decide(&stage.olga, run, "reject", "It is a copy.").await.0, 500);
    assert_eq!(stage.kinds(run).await, Vec::<String>::new());
    execute(&stage.app, "ALTER TABLE runs DROP CONSTRAINT held").await;
    execute(&stage.app, "ALTER TABLE run_events ADD CONSTRAINT held CHECK (kind <> 'reviewed') NOT VALID").await;
    assert_eq!(stage.decide(&stage.olga, run, "reject", "It is a copy.").await.0, 500);
    let shown = stage.app.http.get(&format!("/api/v1/matrix-runs/{run}")).expect(200).await;
    assert_eq!(shown["status"], "needs_review");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_measured_itself_is_in_the_history_and_twice_leads_to_review() {
    let stage = remeasure::Stage::new(|config| config.tunables.remeasure_window_milliseconds = 400).await;
    let older = remeasure::run_with(
        &stage.app,
        stage.machine,
        &RunRow { age_seconds: 600, ..RunRow::default() },
        &remeasure::detail(&remeasure::config().law),
    )
    .await;
    let olga = super::operator(&stage.app, "olga").await;
    let history = async |run: RunId| stage.app.http.get(&format!("/api/v1/matrix-runs/{run}/history")).expect(200).await;
    stage.engine.set_speed_factor(0.6);
    let asked = stage.ask().await;
    assert_eq!(stage.measure(&asked).await["status"], "disagreed");
    let page = history(stage.run).await;
    assert_eq!(kinds(&page), ["disputed"]);
    assert!(page["data"][0]["reason"].as_str().unwrap().contains("the time between tokens was"), "{page}");
    let page = history(older).await;
    assert_eq!((kinds(&page), &page["data"][0]["other_run"]), (vec!["disputed"], &json!(stage.run)));
    let second = stage.all().await[0].clone();
    assert_eq!(stage.measure(&second).await["status"], "disagreed");
    assert_eq!(kinds(&history(stage.run).await), ["disputed", "disputed", "sent_to_review"]);
    assert_eq!(kinds(&history(older).await), ["disputed"], "it is in doubt already");
    let queue = olga.http.get("/api/v1/admin/review-queue?cause=dispute").expect(200).await;
    assert_eq!(id::<RunId>(&queue["data"][0]["run"]["id"]), stage.run);
    let form = json!({ "decision": "accept", "reason": "The machine was warm; it is cool now." });
    olga.http.post(&format!("/api/v1/admin/matrix-runs/{}/review", stage.run)).json(&form).expect(200).await;
    let shown = stage.public_run().await;
    assert_eq!((&shown["status"], &shown["disputed_at"]), (&json!("verified"), &Value::Null));
    assert_eq!(kinds(&history(stage.run).await), ["disputed", "disputed", "sent_to_review", "reviewed"]);
}

/// Runs from before there was a history have the one that their rows still tell.
#[tokio::test]
async fn runs_from_before_have_what_their_rows_tell() {
    let stage = Stage::new().await;
    let accepted = stage.run(&RunRow::default(), json!([finding("run_replayed")])).await;
    let stale = stage.run(&RunRow::default(), json!([])).await;
    let waiting = stage.waiting().await;
    let alter =
        async |run: RunId, change: &str| execute(&stage.app, &format!("UPDATE runs SET {change} WHERE id = '{}'", run.uuid())).await;
    let olga = crate::support::hosts::account_id(&stage.app, &stage.olga).await.uuid();
    alter(accepted, &format!("reviewed_at = now(), reviewed_by = '{olga}', review_reason = 'It is none.'")).await;
    alter(stale, "stale_at = now(), stale_reason = 'another driver'").await;
    let mut conn = stage.app.connect().await;
    for script in [
        include_str!("../../../migrations/2026-11-30-000050_create_run_events/down.sql"),
        include_str!("../../../migrations/2026-11-30-000050_create_run_events/up.sql"),
    ] {
        diesel_async::SimpleAsyncConnection::batch_execute(&mut conn, script).await.unwrap();
    }
    assert_eq!(stage.kinds(accepted).await, ["uploaded", "verdict", "reviewed"]);
    let history = stage.history(accepted).await;
    assert_eq!((&history[0]["by"], &history[1]["verdict"]), (&json!("@host"), &json!("needs_review")));
    assert_eq!(history[1]["findings"], json!(["run_replayed"]));
    assert_eq!(
        (&history[2]["by"], &history[2]["decision"], &history[2]["reason"]),
        (&json!("@olga"), &json!("accept"), &json!("It is none."))
    );
    assert_eq!(stage.kinds(stale).await, ["uploaded", "verdict", "stale"]);
    assert_eq!(stage.history(stale).await[2]["reason"], "another driver");
    assert_eq!(
        (stage.kinds(waiting).await, &stage.history(waiting).await[1]["verdict"]),
        (vec!["uploaded".to_owned(), "verdict".to_owned()], &json!("needs_review"))
    );
    // And what was decided then can be taken back.
    assert_eq!(stage.decide(&stage.otto, accepted, "reopen", "It is one.").await.0, 200);
}

#[tokio::test]
async fn a_changed_machine_makes_a_line_of_its_own() {
    let stage = remeasure::Stage::new(|_| {}).await;
    let path = format!("/api/v1/machines/{}", stage.machine);
    stage.host.http.patch(&path).json(&json!({ "hardware": { "driver": "580.95" } })).expect(200).await;
    stage.app.work().await;
    let page = stage.app.http.get(&format!("/api/v1/matrix-runs/{}/history", stage.run)).expect(200).await;
    assert_eq!(kinds(&page), ["stale"]);
    assert_eq!(page["data"][0]["until"], stage.public_run().await["stale_until"]);
    assert!(page["data"][0]["reason"].as_str().unwrap().contains("580.95"), "{page}");
}
