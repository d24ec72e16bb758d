//! Registering in the sandbox: the account is there at once.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{PASSWORD, login, mailed_token, register};
use crate::support::TestApp;

fn form(changes: &Value) -> Value {
    let mut form = json!({ "email": "ann@example.org", "password": PASSWORD, "handle": "ann" });
    for (name, value) in changes.as_object().unwrap() {
        form[name] = value.clone();
    }
    form
}

#[tokio::test]
async fn registering_answers_with_the_account_and_a_session() {
    let app = TestApp::new().await;
    let body =
        app.http.post("/api/v1/auth/register").json(&form(&json!({ "email": "Ann@Example.org", "handle": "@Ann" }))).expect(201).await;
    let account = &body["account"];
    assert!(account["id"].as_str().unwrap().starts_with("usr_"), "{body}");
    assert_eq!((account["handle"].as_str(), account["display_name"].as_str()), (Some("ann"), Some("ann")));
    assert_eq!((account["email"].as_str(), account["email_confirmed"].as_bool()), (Some("ann@example.org"), Some(false)));
    assert_eq!((account["kind"].as_str(), account["role"].as_str()), (Some("user"), Some("owner")));
    assert_eq!((account["is_operator"].as_bool(), account["is_pro"].as_bool()), (Some(false), Some(false)));
    assert_eq!(body["expires_in"], 900);
    assert!(account["created_at"].as_str().unwrap().ends_with('Z'));
    let me = app.http.with_bearer(body["access_token"].as_str().unwrap()).get("/api/v1/me").expect(200).await;
    assert_eq!(me, *account);
}

#[tokio::test]
async fn a_form_with_faults_is_answered_with_all_of_them() {
    let app = TestApp::new().await;
    let faulty = json!({ "email": "ann", "password": "short", "handle": "-", "display_name": " " });
    let problem = app.http.post("/api/v1/auth/register").json(&faulty).expect_problem(422, "invalid_input").await;
    let mut pointers: Vec<&str> = problem["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/display_name", "/email", "/handle", "/password"]);
    let refused = [
        (json!({ "org_id": "org_01h455vb4pex5vsknk084sn02q" }), "/org_id"),
        (json!({ "is_operator": true }), "/is_operator"),
        (json!({ "password": "1234567" }), "/password"),
        (json!({ "password": "x".repeat(257) }), "/password"),
        (json!({ "handle": "ab" }), "/handle"),
        (json!({ "handle": "a--b" }), "/handle"),
        (json!({ "display_name": "Ann\u{202e}nnA" }), "/display_name"),
        (json!({ "display_name": "x".repeat(81) }), "/display_name"),
        (json!({ "email": "ann\u{0}@example.org" }), "/email"),
        (json!({ "email": null }), "/email"),
    ];
    for (change, pointer) in refused {
        let problem = app.http.post("/api/v1/auth/register").json(&form(&change)).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    for good in [json!({ "password": "x".repeat(256), "handle": "ann1", "email": "b@example.org" }), json!({ "password": "пароль🔑🔑" })]
    {
        app.http.post("/api/v1/auth/register").json(&form(&good)).expect(201).await;
    }
    // The same password typed on a keyboard that writes letters and accents apart.
    let apart = json!({ "email": "c@example.org", "handle": "carol", "password": "caf\u{e9} au lait" });
    app.http.post("/api/v1/auth/register").json(&form(&apart)).expect(201).await;
    login(&app, "c@example.org", "cafe\u{301} au lait").await;
}

#[tokio::test]
async fn an_address_and_a_handle_have_one_account() {
    let app = TestApp::new().await;
    register(&app, "ann").await;
    let with = |change: Value| app.http.post("/api/v1/auth/register").json(&form(&change));
    with(json!({ "handle": "bob" })).expect_problem(409, "email_taken").await;
    with(json!({ "handle": "bob", "email": "ANN@EXAMPLE.ORG" })).expect_problem(409, "email_taken").await;
    with(json!({ "email": "bob@example.org" })).expect_problem(409, "handle_taken").await;
    // What was refused has left nothing behind.
    with(json!({ "handle": "bob", "email": "bob@example.org" })).expect(201).await;
}

#[tokio::test]
async fn of_ten_at_once_for_one_handle_one_gets_it() {
    let app = TestApp::new().await;
    let answers = join_all((0..10).map(|i| {
        let change = json!({ "email": format!("p{i}@example.org"), "handle": if i % 2 == 0 { "acme" } else { "ac-me" } });
        app.http.post("/api/v1/auth/register").json(&form(&change)).answer()
    }))
    .await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn a_hundred_registrations_from_one_address_are_welcome() {
    let app = TestApp::new().await;
    let answers = join_all((0..100).map(|i| {
        let change = json!({ "email": format!("p{i}@example.org"), "handle": format!("person-{}", words(i)) });
        app.http.post("/api/v1/auth/register").json(&form(&change)).answer()
    }))
    .await;
    for answer in answers {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
}

/// Two letters for a number, none of which looks like another.
fn words(i: usize) -> String {
    let letters: Vec<char> = "abcdefghkm".chars().collect();
    format!("{}{}", letters[i / 10], letters[i % 10])
}

#[tokio::test]
async fn the_mailed_link_confirms_the_address_once() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let token = mailed_token(&app, &ann.email, "Confirm").await;
    let confirm = |token: &str| app.http.post("/api/v1/auth/email-confirmation/confirm").json(&json!({ "token": token }));
    confirm("made up").expect_problem(422, "invalid_input").await;
    confirm(&token).expect(204).await;
    assert_eq!(ann.http.get("/api/v1/me").expect(200).await["email_confirmed"], true);
    confirm(&token).expect_problem(422, "invalid_input").await;
    // Nobody is written to about an address that is confirmed.
    let before = super::letters(&app).await.len();
    ann.http.post("/api/v1/auth/email-confirmation").expect(202).await;
    assert_eq!(super::letters(&app).await.len(), before);
}

#[tokio::test]
async fn a_confirmation_link_can_be_asked_for_again_and_runs_out() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let first = mailed_token(&app, &ann.email, "Confirm").await;
    ann.http.post("/api/v1/auth/email-confirmation").expect(202).await;
    let second = mailed_token(&app, &ann.email, "Confirm").await;
    assert_ne!(first, second);
    app.shift_wall(7 * 86_400);
    let confirm = app.http.post("/api/v1/auth/email-confirmation/confirm").json(&json!({ "token": second }));
    confirm.expect_problem(422, "invalid_input").await;
}
