//! Inviting and accepting.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{Person, found, join, letters, register};
use crate::support::TestApp;

const INVITATIONS: &str = "/api/v1/organizations/acme/invitations";

async fn invite(person: &Person, form: Value) -> String {
    person.http.post(INVITATIONS).json(&form).expect(201).await["id"].as_str().unwrap().to_owned()
}

fn accept(person: &Person, id: &str) -> crate::support::http::Request {
    person.http.post(&format!("{INVITATIONS}/{id}/accept"))
}

#[tokio::test]
async fn by_handle_for_that_person_only_and_once() {
    let app = TestApp::new().await;
    let (ann, bob, eve) = (register(&app, "ann").await, register(&app, "bob").await, register(&app, "eve").await);
    found(&ann, "acme").await;
    let body = ann.http.post(INVITATIONS).json(&json!({ "handle": "@Bob", "role": "billing" })).expect(201).await;
    assert_eq!((body["handle"].as_str(), body.get("email"), body["role"].as_str()), (Some("bob"), None, Some("billing")));
    assert_eq!(body["organization"]["handle"], "acme");
    let id = body["id"].as_str().unwrap();
    let mine = bob.http.get("/api/v1/me/invitations").expect(200).await;
    assert_eq!((mine["data"][0]["id"].as_str(), mine["data"][0]["organization"]["handle"].as_str()), (Some(id), Some("acme")));
    assert_eq!(eve.http.get("/api/v1/me/invitations").expect(200).await["data"], json!([]));
    accept(&eve, id).expect_problem(404, "not_found").await;
    accept(&ann, id).expect_problem(404, "not_found").await;
    let joined = accept(&bob, id).expect(200).await;
    assert_eq!((joined["handle"].as_str(), joined["role"].as_str()), (Some("acme"), Some("billing")));
    accept(&bob, id).expect_problem(404, "not_found").await;
    assert_eq!(bob.http.get("/api/v1/me/invitations").expect(200).await["data"], json!([]));
    let again = ann.http.post(INVITATIONS).json(&json!({ "handle": "bob", "role": "member" }));
    again.expect_problem(409, "already_member").await;
    assert!(letters(&app).await.iter().any(|letter| letter.starts_with("To: bob@example.org\nSubject: Invitation to @acme")));
}

#[tokio::test]
async fn by_address_whether_it_has_an_account_or_not() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    let known = ann.http.post(INVITATIONS).json(&json!({ "email": "BOB@example.org", "role": "member" })).expect(201).await;
    let unknown = ann.http.post(INVITATIONS).json(&json!({ "email": "carol@example.org", "role": "member" })).expect(201).await;
    for body in [&known, &unknown] {
        assert!(body.get("handle").is_none() && body["email"].as_str().unwrap().ends_with("@example.org"), "{body}");
    }
    accept(&bob, known["id"].as_str().unwrap()).expect(200).await;
    let carol = register(&app, "carol").await;
    accept(&bob, unknown["id"].as_str().unwrap()).expect_problem(404, "not_found").await;
    accept(&carol, unknown["id"].as_str().unwrap()).expect(200).await;
}

#[tokio::test]
async fn faulty_invitations_are_refused() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    found(&ann, "other").await;
    let cases = [
        (json!({ "role": "member" }), "/handle"),
        (json!({ "handle": "bob", "email": "bob@example.org", "role": "member" }), "/email"),
        (json!({ "handle": "nobody-here", "role": "member" }), "/handle"),
        (json!({ "handle": "other", "role": "member" }), "/handle"),
        (json!({ "email": "bob", "role": "member" }), "/email"),
        (json!({ "handle": "bob", "role": "boss" }), "/role"),
        (json!({ "handle": "bob" }), "/role"),
    ];
    for (form, pointer) in cases {
        let problem = ann.http.post(INVITATIONS).json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    invite(&ann, json!({ "handle": "bob", "role": "member" })).await;
    let twice = ann.http.post(INVITATIONS).json(&json!({ "handle": "bob", "role": "admin" }));
    twice.expect_problem(409, "invalid_state").await;
    join(&ann, "other", &bob, "admin").await;
    let above = bob.http.post("/api/v1/organizations/other/invitations").json(&json!({ "email": "x@example.org", "role": "owner" }));
    above.expect_problem(403, "forbidden").await;
}

#[tokio::test]
async fn an_invitation_ends_when_it_is_taken_back_or_runs_out() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    let id = invite(&ann, json!({ "handle": "bob", "role": "member" })).await;
    for _ in 0..2 {
        ann.http.delete(&format!("{INVITATIONS}/{id}")).expect(204).await;
    }
    accept(&bob, &id).expect_problem(404, "not_found").await;
    assert_eq!(ann.http.get(INVITATIONS).expect(200).await["data"], json!([]));
    let id = invite(&ann, json!({ "handle": "bob", "role": "member" })).await;
    app.shift_wall(14 * 86_400);
    let (ann, bob) = (super::login(&app, &ann.email, super::PASSWORD).await, super::login(&app, &bob.email, super::PASSWORD).await);
    accept(&bob, &id).expect_problem(404, "not_found").await;
    assert_eq!(ann.http.get(INVITATIONS).expect(200).await["data"], json!([]));
    let id = invite(&ann, json!({ "handle": "bob", "role": "member" })).await;
    assert_eq!(ann.http.get(INVITATIONS).expect(200).await["data"][0]["handle"], "bob");
    accept(&bob, &id).expect(200).await;
}

/// Nobody comes in on the word of who has left or lost the right to give it.
#[tokio::test]
async fn an_invitation_is_as_good_as_its_sender_at_the_time_of_accepting() {
    let app = TestApp::new().await;
    let (ann, bob, eve) = (register(&app, "ann").await, register(&app, "bob").await, register(&app, "eve").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "owner").await;
    let as_owner = invite(&bob, json!({ "handle": "eve", "role": "owner" })).await;
    ann.http.patch("/api/v1/organizations/acme/members/bob").json(&json!({ "role": "admin" })).expect(200).await;
    accept(&eve, &as_owner).expect_problem(404, "not_found").await;
    ann.http.delete(&format!("{INVITATIONS}/{as_owner}")).expect(204).await;
    let as_member = invite(&bob, json!({ "handle": "eve", "role": "member" })).await;
    ann.http.delete("/api/v1/organizations/acme/members/bob").expect(204).await;
    accept(&eve, &as_member).expect_problem(404, "not_found").await;
    join(&ann, "acme", &bob, "owner").await;
    accept(&eve, &as_member).expect_problem(404, "not_found").await;
}

#[tokio::test]
async fn accepting_twice_at_once_joins_once() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    let (by_handle, by_email) = (
        invite(&ann, json!({ "handle": "bob", "role": "member" })).await,
        invite(&ann, json!({ "email": bob.email, "role": "admin" })).await,
    );
    let answers = join_all([&by_handle, &by_email, &by_handle, &by_email].map(|id| accept(&bob, id).answer())).await;
    let joined = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(joined, 1);
    assert!(answers.iter().all(|answer| [200, 404, 409].contains(&answer.status.as_u16())));
    let members = ann.http.get("/api/v1/organizations/acme/members").expect(200).await;
    assert_eq!(members["data"].as_array().unwrap().len(), 2);
}
