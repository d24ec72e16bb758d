//! Live mode: an account begins with its confirmed address, and registering does not tell whether an address is known.

use rigmark::config::Mode;
use serde_json::{Value, json};

use super::{PASSWORD, Person, letters, mailed_token};
use crate::support::TestApp;

async fn live() -> TestApp {
    TestApp::with(|config| config.mode = Mode::Live).await
}

fn form(handle: &str) -> Value {
    json!({ "email": format!("{handle}@example.org"), "password": PASSWORD, "handle": handle })
}

async fn register(app: &TestApp, handle: &str) -> Person {
    app.http.post("/api/v1/auth/register").json(&form(handle)).expect(202).await;
    let email = format!("{handle}@example.org");
    let token = mailed_token(app, &email, "Confirm").await;
    let body = app.http.post("/api/v1/auth/register/confirm").json(&json!({ "token": token })).expect(201).await;
    Person::of(app, &email, &body)
}

#[tokio::test]
async fn the_account_begins_with_the_mailed_link() {
    let app = live().await;
    app.http.post("/api/v1/auth/register").json(&form("ann")).expect(202).await;
    let login = || app.http.post("/api/v1/auth/login").json(&json!({ "email": "ann@example.org", "password": PASSWORD }));
    login().expect_problem(401, "invalid_credentials").await;
    let token = mailed_token(&app, "ann@example.org", "Confirm").await;
    let confirm = |form: Value| app.http.post("/api/v1/auth/register/confirm").json(&form);
    confirm(json!({ "token": "made up" })).expect_problem(422, "invalid_input").await;
    let body = confirm(json!({ "token": token })).expect(201).await;
    assert_eq!((body["account"]["handle"].as_str(), body["account"]["email_confirmed"].as_bool()), (Some("ann"), Some(true)));
    confirm(json!({ "token": token })).expect_problem(422, "invalid_input").await;
    login().expect(200).await;
    app.work().await;
    assert_eq!(letters(&app).await.len(), 1);
}

/// The same status, body and work, whether the address has an account; the letters differ.
#[tokio::test]
async fn registering_a_known_address_answers_the_same() {
    let app = live().await;
    register(&app, "ann").await;
    let mut seen = Vec::new();
    for email in ["ann@example.org", "unknown@example.org"] {
        let mut conn = app.connect().await;
        let (hashed, open) = (app.ctx().password_hashing.started_count(), rigmark::jobs::jobs_open_count(&mut conn).await.unwrap());
        let form = json!({ "email": email, "password": PASSWORD, "handle": "zoe" });
        let answer = app.http.post("/api/v1/auth/register").json(&form).answer().await;
        let jobs = rigmark::jobs::jobs_open_count(&mut conn).await.unwrap() - open;
        seen.push((answer.status.as_u16(), answer.body, app.ctx().password_hashing.started_count() - hashed, jobs));
    }
    assert_eq!(seen[0].0, 202);
    assert_eq!(seen[0], seen[1]);
    let written = letters(&app).await;
    let about = |email: &str| written.iter().rev().find(|letter| letter.starts_with(&format!("To: {email}\n"))).unwrap();
    assert!(
        about("ann@example.org").contains("Subject: You have a Rigmark account already") && !about("ann@example.org").contains("token")
    );
    assert!(about("unknown@example.org").contains("Subject: Confirm your e-mail address"));
}

/// A registration reserves nothing, or a second one would tell about the first.
#[tokio::test]
async fn a_handle_taken_meanwhile_can_be_chosen_anew() {
    let app = live().await;
    for email in ["first@example.org", "second@example.org"] {
        app.http.post("/api/v1/auth/register").json(&json!({ "email": email, "password": PASSWORD, "handle": "zoe" })).expect(202).await;
    }
    let confirm = |form: Value| app.http.post("/api/v1/auth/register/confirm").json(&form);
    let first = mailed_token(&app, "first@example.org", "Confirm").await;
    let second = mailed_token(&app, "second@example.org", "Confirm").await;
    confirm(json!({ "token": second })).expect(201).await;
    confirm(json!({ "token": first })).expect_problem(409, "handle_taken").await;
    confirm(json!({ "token": first, "handle": "z0e" })).expect_problem(409, "handle_taken").await;
    confirm(json!({ "token": first, "handle": "admin" })).expect_problem(409, "handle_taken").await;
    let body = confirm(json!({ "token": first, "handle": "zoe-two" })).expect(201).await;
    assert_eq!(body["account"]["handle"], "zoe-two");
    let taken = json!({ "email": "third@example.org", "password": PASSWORD, "handle": "zoe" });
    app.http.post("/api/v1/auth/register").json(&taken).expect_problem(409, "handle_taken").await;
}

#[tokio::test]
async fn a_link_runs_out_after_a_day_and_common_passwords_are_refused() {
    let app = live().await;
    app.http.post("/api/v1/auth/register").json(&form("ann")).expect(202).await;
    let token = mailed_token(&app, "ann@example.org", "Confirm").await;
    app.shift_wall(86_400);
    app.http.post("/api/v1/auth/register/confirm").json(&json!({ "token": token })).expect_problem(422, "invalid_input").await;
    let common = json!({ "email": "bob@example.org", "password": "Password123", "handle": "bob" });
    let problem = app.http.post("/api/v1/auth/register").json(&common).expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["code"], "common_password");
}
