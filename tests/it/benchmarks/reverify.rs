//! Verdicts computed again: what stands, what falls, and a pass that may stop at any moment.

use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::Code;
use rigmark::base::id::RunId;
use rigmark::benchmarks::model::EvidenceLevel;
use rigmark::benchmarks::reverify::{Before, level_after, model::Pass, verdict_after};
use rigmark::benchmarks::service::{Reverification, has_runs_of_other_rules};
use rigmark::benchmarks::{Finding, RULES_VERSION, Verdict};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Person, id, person};

async fn upload(host: &Person, name: &str) -> RunId {
    let body = json!({ "document": super::value(name) });
    id(&host.http.post("/api/v1/matrix-runs").json(&body).expect(201).await["id"])
}

async fn shown(app: &TestApp, run: RunId) -> Value {
    app.http.get(&format!("/api/v1/matrix-runs/{run}")).expect(200).await
}

async fn alter(app: &TestApp, run: RunId, change: &str) {
    let statement = format!("UPDATE runs SET {change} WHERE id = $1");
    let changed = sql_query(statement).bind::<sql::Uuid, _>(run).execute(&mut app.connect().await).await.unwrap();
    assert_eq!(changed, 1);
}

async fn count(app: &TestApp, of: &str) -> i64 {
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = sql::BigInt)]
        n: i64,
    }
    sql_query(format!("SELECT count(*) AS n FROM {of}")).get_result::<Row>(&mut app.connect().await).await.unwrap().n
}

async fn reverify(app: &TestApp) -> Pass {
    let mut work = Reverification::begin(app.ctx()).await.unwrap();
    while work.step().await.unwrap() {}
    assert!(work.pass().finished_at.is_some());
    work.pass().clone()
}

#[test]
fn what_a_person_decided_stands_until_something_new_is_found() {
    use Verdict::{NeedsReview, Rejected, Verified};
    let (error, suspicion, note) = (Finding::error("a", ""), Finding::suspicious("b", ""), Finding::note("c", ""));
    let (found_a, found_b, found_c) = (vec![error.clone()], vec![suspicion.clone()], vec![note.clone()]);
    let verdict = |was, is_reviewed, is_disputed, before: &[Finding], after: &[Finding]| {
        let level = EvidenceLevel::Challenged;
        let before = Before { verdict: was, evidence_level: level, is_reviewed, is_disputed, answers_challenge: true, findings: before };
        verdict_after(&before, after)
    };
    // Nobody has looked: the rules alone.
    assert_eq!(verdict(Verified, false, false, &[], &found_a), Rejected);
    assert_eq!(verdict(Rejected, false, false, &found_a, &found_c), Verified);
    assert_eq!(verdict(NeedsReview, false, false, &found_b, &[]), Verified);
    // Accepted: what was seen then does not count again; what is new does.
    assert_eq!(verdict(Verified, true, false, &found_b, &found_b), Verified);
    assert_eq!(verdict(Verified, true, false, &found_b, &found_c), Verified);
    assert_eq!(verdict(Verified, true, false, &found_b, &found_a), NeedsReview);
    // A note that has become a suspicion is new.
    assert_eq!(verdict(Verified, true, false, &[Finding::note("b", "")], &found_b), NeedsReview);
    // Rejected by a person.
    assert_eq!(verdict(Rejected, true, false, &found_b, &[]), Rejected);
    // A re-measurement disagreed twice: the document is not what is in doubt.
    assert_eq!(verdict(NeedsReview, false, true, &[], &[]), NeedsReview);
    assert_eq!(verdict(NeedsReview, false, true, &[], &found_a), Rejected);
}

#[test]
fn the_level_goes_with_the_verdict() {
    let level = |level, answers_challenge, verdict| {
        let verdict_before = Verdict::Verified;
        let before = Before {
            verdict: verdict_before,
            evidence_level: level,
            is_reviewed: false,
            is_disputed: false,
            answers_challenge,
            findings: &[],
        };
        level_after(&before, verdict)
    };
    assert_eq!(level(EvidenceLevel::Remeasured, true, Verdict::Verified), EvidenceLevel::Remeasured);
    assert_eq!(level(EvidenceLevel::Document, true, Verdict::Verified), EvidenceLevel::Challenged);
    assert_eq!(level(EvidenceLevel::Document, false, Verdict::Verified), EvidenceLevel::Document);
    assert_eq!(level(EvidenceLevel::Remeasured, true, Verdict::NeedsReview), EvidenceLevel::Document);
}

#[tokio::test]
async fn a_verdict_of_other_rules_is_computed_again_and_its_uploader_told() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let run = upload(&host, "v04_all_valid.json").await;
    let before = shown(&app, run).await;
    assert_eq!(before["status"], "verified");
    assert!(!has_runs_of_other_rules(app.ctx()).await.unwrap());
    // As if rules of old had rejected it, with another matrix and without its marks.
    alter(
        &app,
        run,
        "status = 'rejected', rules_version = '2020-01-01.1', title = 'x', detail = jsonb_set(detail, '{matrix,decode}', '[]')",
    )
    .await;
    for table in ["run_cells", "run_marks"] {
        sql_query(format!("DELETE FROM {table}")).execute(&mut app.connect().await).await.unwrap();
    }
    assert!(has_runs_of_other_rules(app.ctx()).await.unwrap());

    let pass = reverify(&app).await;
    assert_eq!((pass.runs_total, pass.runs_done, pass.runs_changed, pass.runs_unreadable), (1, 1, 1, 0));
    assert_eq!(shown(&app, run).await, before, "the run is as it was, to the last figure");
    assert_eq!(count(&app, "run_cells").await, 12);
    assert!(count(&app, "run_marks WHERE kind = 'cell'").await > 0);
    assert_eq!(count(&app, "run_events WHERE kind = 'verdict_recomputed'").await, 1);
    assert_eq!(count(&app, "jobs WHERE kind = 'run_changed'").await, 1);
    app.work().await;
    let folder = std::fs::read_dir(app.data_dir.path().join("mail")).unwrap();
    let letters = folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let told: Vec<String> = letters.filter(|letter| letter.contains("Subject: The verdict on your run has changed")).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("It is verified now") && told[0].contains(&run.to_string()), "{}", told[0]);

    let again = reverify(&app).await;
    assert_ne!(again.id, pass.id);
    assert_eq!((again.runs_done, again.runs_changed), (1, 0));
    assert_eq!(count(&app, "run_events WHERE kind = 'verdict_recomputed'").await, 1, "nothing is told that did not happen");
}

#[tokio::test]
async fn an_accepted_run_goes_to_review_when_the_rules_find_something_new() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let run = upload(&host, "v04_prefill_only.json").await;
    assert_eq!(shown(&app, run).await["status"], "needs_review");
    alter(&app, run, "status = 'verified', reviewed_at = now(), reviewed_by = account_id, review_reason = 'seen'").await;
    assert_eq!(reverify(&app).await.runs_changed, 0, "the operator saw these findings");
    assert_eq!(shown(&app, run).await["status"], "verified");
    alter(&app, run, "detail = jsonb_set(detail, '{findings}', '[]')").await;
    assert_eq!(reverify(&app).await.runs_changed, 1);
    assert_eq!(shown(&app, run).await["status"], "needs_review");
}

#[tokio::test]
async fn a_pass_goes_on_where_it_stopped_and_is_done_by_one() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let names = ["v04_all_valid.json", "v04_queued.json", "v04_no_metrics.json", "v04_spec_multi_token.json", "reference-run.json"];
    for name in names {
        upload(&host, name).await;
    }
    let mut first = Reverification::begin(app.ctx()).await.unwrap();
    assert!(first.step().await.unwrap());
    let done = first.pass().runs_done;
    assert!((1..5).contains(&done), "{done}");
    // A second process takes it over; the first one notices.
    let mut second = Reverification::begin(app.ctx()).await.unwrap();
    assert_eq!(second.pass(), first.pass());
    assert!(second.step().await.unwrap());
    assert_eq!(first.step().await.unwrap_err().code(), Code::InvalidState);
    while second.step().await.unwrap() {}
    let pass = second.pass();
    assert_eq!((pass.runs_total, pass.runs_done, pass.runs_changed), (5, 5, 0));
    assert_eq!(pass.rules_version, RULES_VERSION);
    assert_eq!(count(&app, "reverify_passes").await, 1);
    assert_eq!(first.step().await.unwrap_err().code(), Code::InvalidState, "a finished pass stays finished");
}

#[tokio::test]
async fn a_pass_of_other_rules_is_not_gone_on_with() {
    let app = TestApp::new().await;
    upload(&person(&app, "ada").await, "v04_queued.json").await;
    let old = Reverification::begin(app.ctx()).await.unwrap();
    sql_query("UPDATE reverify_passes SET rules_version = 'old'").execute(&mut app.connect().await).await.unwrap();
    let new = Reverification::begin(app.ctx()).await.unwrap();
    assert_ne!(old.pass().id, new.pass().id);
    assert_eq!(count(&app, "reverify_passes WHERE finished_at IS NULL").await, 1);
}

#[tokio::test]
async fn what_cannot_be_judged_keeps_its_verdict_and_is_counted() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let (lost, kept) = (upload(&host, "v04_all_valid.json").await, upload(&host, "v04_queued.json").await);
    // The gzip of `[]`.
    let empty = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x8b, 0x8e, 5, 0, 0x29, 0xbb, 0x4c, 0x0d, 2, 0, 0, 0];
    sql_query("UPDATE run_documents SET original_gzip = $2 WHERE run_id = $1")
        .bind::<sql::Uuid, _>(lost)
        .bind::<sql::Binary, _>(empty.as_slice())
        .execute(&mut app.connect().await)
        .await
        .unwrap();
    alter(&app, lost, "rules_version = 'old'").await;
    let pass = reverify(&app).await;
    assert_eq!((pass.runs_done, pass.runs_changed, pass.runs_unreadable), (2, 0, 1));
    assert_eq!(shown(&app, lost).await["status"], "verified");
    assert_eq!(shown(&app, lost).await["rules_version"], "old");
    assert_eq!(shown(&app, kept).await["rules_version"], RULES_VERSION);
}

/// A note changes no verdict, and yet a quick profile is not ranked.
#[tokio::test]
async fn rankings_follow_when_a_run_turns_out_to_be_a_quick_profile() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let mut document = super::value("synthetic_lil_bench_wrapped.json");
    document["profile"] = json!("quick");
    let claim = super::reference_claim();
    let body = json!({ "document": document, "hardware": claim.hardware, "model": { "hf_id": "org/own", "quantization": "awq" } });
    let run: RunId = id(&host.http.post("/api/v1/matrix-runs").json(&body).expect(201).await["id"]);
    assert_eq!(shown(&app, run).await["status"], "verified");
    // As if rules of old had not known what a quick profile is.
    alter(&app, run, "detail = jsonb_set(detail, '{findings}', '[]')").await;
    app.ctx().db.tx("test", async |tx| rigmark::benchmarks::boards::run_changed(tx, run).await).await.unwrap();
    assert!(count(&app, "leaderboard_entries").await > 0);
    assert_eq!(reverify(&app).await.runs_changed, 0);
    assert_eq!(count(&app, "leaderboard_entries").await, 0);
}

#[tokio::test]
async fn the_command_says_what_it_did() {
    let app = TestApp::new().await;
    let host = person(&app, "ada").await;
    let run = upload(&host, "v04_all_valid.json").await;
    upload(&host, "v04_queued.json").await;
    alter(&app, run, "status = 'rejected', rules_version = 'old'").await;
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_rigmark"));
    command.args(["reverify", "--database-url", app.database.url()]).arg("--data-dir").arg(app.data_dir.path());
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("Runs judged by rules {RULES_VERSION}: 2. With another verdict or evidence level: 1.\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shown(&app, run).await["status"], "verified");
}
