//! The uploader's answer: once, by whom it concerns, while somebody waits for it.

use serde_json::json;

use super::{Stage, needs_review};
use crate::support::hosts::{Person, RunRow, execute, person};

fn path(run: impl std::fmt::Display) -> String {
    format!("/api/v1/matrix-runs/{run}/answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uploader_answers_once() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let say = |text: &str| stage.host.http.post(&path(run)).json(&json!({ "text": text }));
    let given = say(" The nonce is that of the run before,\r\nwhich was interrupted. ").expect(201).await;
    assert_eq!((given["kind"].as_str(), given["by"].as_str()), (Some("answered"), Some("@host")));
    assert_eq!(given["text"], "The nonce is that of the run before,\nwhich was interrupted.");
    say("Another word.").expect_problem(409, "already_answered").await;
    assert_eq!(say("The nonce is that of the run before,\nwhich was interrupted.").expect(201).await, given, "the same again");
    assert_eq!(stage.kinds(run).await, ["answered"]);
    let shown = stage.olga.http.get(&format!("/api/v1/admin/matrix-runs/{run}")).expect(200).await;
    assert_eq!(shown["answer"], given);
    // Not after a decision either.
    stage.decide(&stage.olga, run, "reject", "That does not explain it.").await;
    say("But it does.").expect_problem(409, "already_answered").await;

    let other = stage.waiting().await;
    let say = |text: &'static str| stage.host.http.post(&path(other)).json(&json!({ "text": text })).answer();
    let (first, second) = tokio::join!(say("One."), say("Two."));
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    assert_eq!(stage.kinds(other).await, ["answered"]);
}

#[tokio::test]
async fn an_answer_is_for_those_who_wait_for_it() {
    let stage = Stage::new().await;
    let verified = stage.run(&RunRow::default(), json!([])).await;
    let by_checks = stage.run(&RunRow { status: "rejected", ..needs_review() }, json!([])).await;
    for run in [verified, by_checks] {
        stage.host.http.post(&path(run)).json(&json!({ "text": "Why?" })).expect_problem(409, "invalid_state").await;
    }
    let run = stage.waiting().await;
    let mallory = person(&stage.app, "mallory").await;
    for stranger in [&mallory, &stage.olga] {
        stranger.http.post(&path(run)).json(&json!({ "text": "It is mine." })).expect_problem(404, "not_found").await;
    }
    stage.app.http.post(&path(run)).json(&json!({ "text": "Hello" })).expect_problem(401, "unauthenticated").await;
    for text in ["", "  \n ", &"x".repeat(2_001)] {
        let problem = stage.host.http.post(&path(run)).json(&json!({ "text": text })).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "/text");
    }
    stage.decide(&stage.olga, run, "reject", "It is a copy.").await;
    stage.host.http.post(&path(run)).json(&json!({ "text": "It is none." })).expect(201).await;
    assert_eq!(stage.kinds(run).await, ["reviewed", "answered"]);
}

#[tokio::test]
async fn an_organization_answers_through_those_who_may_upload() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let people = ["boss", "clerk", "cashier"];
    let mut all: Vec<Person> = Vec::new();
    for handle in people {
        all.push(person(&stage.app, handle).await);
    }
    let boss = &all[0];
    boss.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
    for (member, role) in [(&all[1], "member"), (&all[2], "billing")] {
        let invitations = "/api/v1/organizations/guild/invitations";
        let form = json!({ "handle": member.handle, "role": role });
        let invitation = boss.http.post(invitations).json(&form).expect(201).await;
        member.http.post(&format!("{invitations}/{}/accept", invitation["id"].as_str().unwrap())).expect(200).await;
    }
    execute(&stage.app, "UPDATE runs SET account_id = (SELECT id FROM accounts WHERE handle = 'guild')").await;
    let say = |who: &Person| who.http.post(&path(run)).header("Rigmark-Account", "@guild").json(&json!({ "text": "It is ours." }));
    say(&all[2]).expect_problem(403, "forbidden").await;
    all[1].http.post(&path(run)).json(&json!({ "text": "Mine?" })).expect_problem(404, "not_found").await;
    assert_eq!(say(&all[1]).expect(201).await["by"], "@guild");
    // The person stands in the table, and nowhere else.
    assert!(!json!(stage.history(run).await).to_string().contains("clerk"));
}
