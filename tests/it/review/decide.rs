//! Decisions: who may decide what, once, with a reason that anyone can read.

use serde_json::{Value, json};

use super::{Stage, finding, needs_review};
use crate::support::hosts::{RunRow, account_id, draft, engine, execute, machine};

#[tokio::test]
async fn an_accepted_run_is_verified_and_says_who_said_so() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let (status, body) = stage.decide(&stage.olga, run, "accept", "  The host showed the machine.\r\n ").await;
    assert_eq!((status, body["status"].as_str(), body["label"].as_str()), (200, Some("verified"), Some("measured")), "{body}");
    assert_eq!(body["review_reason"], "The host showed the machine.");
    let history = stage.history(run).await;
    let event = &history[0];
    assert_eq!(
        (event["kind"].as_str(), event["by"].as_str(), event["decision"].as_str()),
        (Some("reviewed"), Some("@olga"), Some("accept"))
    );
    assert_eq!((event["was"].as_str(), event["verdict"].as_str()), (Some("needs_review"), Some("verified")));
    assert_eq!((event["reason"].as_str(), event["at"].as_str()), (Some("The host showed the machine."), body["reviewed_at"].as_str()));
    // The host is told.
    rigmark::jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
    let letters = std::fs::read_dir(stage.app.data_dir.path().join("mail")).unwrap();
    let letters: Vec<String> = letters.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    assert!(letters.iter().any(|letter| letter.contains("Your run was accepted") && letter.contains("The host showed")), "{letters:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_operators_at_once_one_decides_and_the_other_learns_it() {
    let stage = Stage::new().await;
    for round in 0..6 {
        let run = stage.waiting().await;
        let other = if round % 2 == 0 { "reject" } else { "accept" };
        let (first, second) = tokio::join!(
            stage.decide(&stage.olga, run, "accept", "It is plausible."),
            stage.decide(&stage.otto, run, other, "I see it so too."),
        );
        let (won, lost, by) = if first.0 == 200 { (first, second, "@olga") } else { (second, first, "@otto") };
        assert_eq!((won.0, lost.0, lost.1["code"].as_str()), (200, 409, Some("already_decided")), "{won:?} {lost:?}");
        assert_eq!(lost.1["decided_by"], by);
        let history = stage.history(run).await;
        assert_eq!((history.len(), &history[0]["by"], &history[0]["at"]), (1, &json!(by), &lost.1["decided_at"]));
        assert_eq!((&history[0]["decision"], &history[0]["verdict"]), (&lost.1["decision"], &won.1["status"]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_decision_again_changes_nothing() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let again = || stage.decide(&stage.olga, run, "reject", "It is a copy.");
    let (first, second, third) = tokio::join!(again(), again(), again());
    assert_eq!((first.0, second.0, third.0), (200, 200, 200), "{first:?} {second:?} {third:?}");
    assert_eq!(stage.kinds(run).await, ["reviewed"]);
    let (status, body) = stage.decide(&stage.olga, run, "reject", "For another reason.").await;
    assert_eq!((status, body["code"].as_str(), body["decided_by"].as_str()), (409, Some("already_decided"), Some("@olga")));
    let (status, body) = stage.decide(&stage.otto, run, "reject", "It is a copy.").await;
    assert_eq!((status, body["code"].as_str()), (409, Some("already_decided")));
    assert_eq!(stage.kinds(run).await, ["reviewed"]);
}

#[tokio::test]
async fn a_decision_stands_until_a_person_takes_it_back() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    assert_eq!(stage.decide(&stage.olga, run, "reopen", "Nothing to take back.").await.1["code"], "invalid_state");
    stage.decide(&stage.olga, run, "reject", "It is a copy.").await;
    let (status, body) = stage.decide(&stage.otto, run, "reopen", "The host has shown more.").await;
    assert_eq!((status, body["status"].as_str(), &body["review_reason"]), (200, Some("needs_review"), &Value::Null));
    assert_eq!(stage.decide(&stage.otto, run, "reopen", "The host has shown more.").await.0, 200, "the same again");
    let queue = stage.olga.http.get("/api/v1/admin/review-queue?cause=reopened").expect(200).await;
    assert_eq!(queue["data"][0]["run"]["id"], json!(run));
    let (status, body) = stage.decide(&stage.olga, run, "accept", "Now it is clear.").await;
    assert_eq!((status, body["status"].as_str()), (200, Some("verified")));
    assert_eq!(stage.kinds(run).await, ["reviewed", "reopened", "reviewed"]);
    let reasons: Vec<Value> = stage.history(run).await.into_iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons, ["It is a copy.", "The host has shown more.", "Now it is clear."]);
}

#[tokio::test]
async fn what_the_checks_said_is_decided_only_where_a_person_may() {
    let stage = Stage::new().await;
    let rejected = stage.run(&RunRow { status: "rejected", ..needs_review() }, json!([])).await;
    for decision in ["accept", "reject", "reopen"] {
        assert_eq!(stage.decide(&stage.olga, rejected, decision, "A reason.").await.1["code"], "invalid_state", "{decision}");
    }
    let verified = stage.run(&RunRow::default(), json!([])).await;
    for decision in ["accept", "reopen"] {
        assert_eq!(stage.decide(&stage.olga, verified, decision, "A reason.").await.1["code"], "invalid_state", "{decision}");
    }
    assert_eq!(stage.decide(&stage.olga, verified, "reject", "The machine is another.").await.1["status"], "rejected");
    let unknown = rigmark::base::id::RunId::new();
    assert_eq!(stage.decide(&stage.olga, unknown, "reject", "A reason.").await.1["code"], "not_found");
    for (reason, code) in [("", 422), ("ab", 422), (" \u{200b}\u{202e} ", 422), (&"x".repeat(1_001), 422)] {
        let waiting = stage.waiting().await;
        let (status, body) = stage.decide(&stage.olga, waiting, "reject", reason).await;
        assert_eq!((status, body["errors"][0]["pointer"].as_str()), (code, Some("/reason")), "{reason:?} {body}");
        assert_eq!(stage.kinds(waiting).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn nobody_decides_on_a_run_of_their_own_account() {
    let stage = Stage::new().await;
    // The host becomes an operator.
    rigmark::identity::service::set_operator(&stage.app.ctx().db, &stage.app.ctx().clock, "host", true).await.unwrap();
    let run = stage.waiting().await;
    let (status, body) = stage.decide(&stage.host, run, "accept", "It is fine.").await;
    assert_eq!((status, body["code"].as_str()), (403, Some("conflict_of_interest")));
    assert_eq!(stage.host.http.get(&format!("/api/v1/admin/matrix-runs/{run}")).expect(200).await["is_own"], true);
    // A member of the organization whose run it is, whichever account the call is for.
    stage.otto.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
    execute(&stage.app, "UPDATE runs SET account_id = (SELECT id FROM accounts WHERE handle = 'guild')").await;
    let form = json!({ "decision": "accept", "reason": "It is ours." });
    for account in ["@otto", "@guild"] {
        let request = stage.otto.http.post(&format!("/api/v1/admin/matrix-runs/{run}/review")).header("Rigmark-Account", account);
        request.json(&form).expect_problem(403, "conflict_of_interest").await;
    }
    // Who uploaded it and has left the account since.
    let leaves = "DELETE FROM memberships WHERE user_id = (SELECT id FROM accounts WHERE handle = 'otto')";
    execute(&stage.app, leaves).await;
    let uploads = "INSERT INTO run_events (run_id, at, kind, user_id, details)
                   SELECT r.id, now(), 'uploaded', (SELECT id FROM accounts WHERE handle = 'otto'), '{}' FROM runs r";
    execute(&stage.app, uploads).await;
    let request = stage.otto.http.post(&format!("/api/v1/admin/matrix-runs/{run}/review"));
    request.json(&form).expect_problem(403, "conflict_of_interest").await;
    assert_eq!(stage.decide(&stage.olga, run, "accept", "It is not mine.").await.0, 200);
}

#[tokio::test]
async fn the_market_follows_a_decision() {
    let stage = Stage::new().await;
    let engine = engine();
    let machine = machine(&stage.host, Some(engine.url())).await;
    let mut detail = crate::remeasure::detail(&crate::remeasure::config().law);
    detail["findings"] = json!([finding("run_replayed")]);
    let run = crate::remeasure::run_with(&stage.app, machine, &needs_review(), &detail).await;
    // It answers a challenge, so that accepting it makes it as good as one that passed by itself.
    let owner = account_id(&stage.app, &stage.host).await.uuid();
    execute(
        &stage.app,
        &format!(
            "INSERT INTO challenges (id, machine_id, account_id, spec, issued_at, expires_at)
             VALUES (gen_random_uuid(), '{}', '{owner}', '{{}}', now(), now() + interval '1 hour')",
            machine.uuid()
        ),
    )
    .await;
    execute(&stage.app, "UPDATE runs SET challenge_id = (SELECT id FROM challenges)").await;
    let listing = draft(&stage.host, machine, "0.37").await;
    let publish = format!("/api/v1/listings/{listing}/publish");
    let problem = stage.host.http.post(&publish).expect_problem(409, "listing_not_measured").await;
    assert_eq!(problem["unmet"][0]["code"], "run_in_review");
    stage.decide(&stage.olga, run, "accept", "It is plausible.").await;
    assert_eq!(stage.host.http.post(&publish).expect(200).await["badge"], "measured");
    stage.decide(&stage.otto, run, "reopen", "Another host says it is a copy.").await;
    rigmark::jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
    let off = async || stage.app.http.get(&format!("/api/v1/listings/{listing}")).expect(200).await;
    let body = off().await;
    assert_eq!((body["state"].as_str(), body["off_market_reason"].as_str()), (Some("off_market"), Some("run_in_review")), "{body}");
    stage.decide(&stage.otto, run, "accept", "It is none.").await;
    assert_eq!(stage.host.http.post(&publish).expect(200).await["state"], "published");
    stage.decide(&stage.otto, run, "reopen", "It is one.").await;
    stage.decide(&stage.otto, run, "reject", "It is one.").await;
    rigmark::jobs::run_due_jobs(stage.app.ctx()).await.unwrap();
    let body = off().await;
    assert_eq!((body["state"].as_str(), body["off_market_reason"].as_str()), (Some("off_market"), Some("run_rejected")), "{body}");
}
