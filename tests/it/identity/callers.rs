//! Who a call counts as: credentials, `Rigmark-Account`, and nothing else (cases.md 22).

use rigmark::base::Code;
use rigmark::identity::{self, Actor, By, Caller, service};
use serde_json::json;

use super::{Person, create_key, create_key_for, found, join, register};
use crate::support::TestApp;

async fn caller(app: &TestApp, secret: &str, acting_for: Option<&str>) -> Caller {
    identity::authenticate(app.ctx(), &mut app.connect().await, secret, acting_for).await.unwrap()
}

async fn refresh(app: &TestApp, caller: &Caller) -> Result<Caller, Code> {
    identity::caller_refresh(app.ctx(), &mut app.connect().await, caller).await.map_err(|error| error.code())
}

#[tokio::test]
async fn bad_credentials_are_401_where_some_are_needed_and_where_none_are() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    found(&ann, "acme").await;
    let token = ann.access_token.as_str();
    let (key, _) = create_key(&ann.http, &["account:read"]).await;
    let bad = [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic YTpi",
        token,
        "Bearer rmk_nonsense",
        "Bearer rmk_",
        &format!("Token {token}"),
        &format!("Bearer {token} {token}"),
        &format!("Bearer {}", key.to_uppercase()),
        &format!("Bearer {}", ann.refresh_token),
        "",
    ];
    for value in bad {
        for path in ["/api/v1/me", "/api/v1/organizations/acme"] {
            app.http.get(path).header("Authorization", value).expect_problem(401, "unauthenticated").await;
        }
    }
    let answer = app.http.get("/api/v1/me").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate").unwrap().starts_with("Bearer")), (401, true));
    let twice = ann.http.get("/api/v1/me").header("Authorization", format!("Bearer {token}"));
    twice.expect_problem(401, "unauthenticated").await;
    for good in [format!("bearer {token}"), format!("BEARER  {token}"), format!("Bearer {key}")] {
        app.http.get("/api/v1/me").header("Authorization", good).expect(200).await;
    }
    app.http.get("/api/v1/me").header("X-Api-Key", &key).expect(200).await;
}

#[tokio::test]
async fn other_headers_and_bodies_never_change_identity() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    let org = found(&bob, "acme").await["id"].as_str().unwrap().to_owned();
    let headers = [
        "X-User-Id",
        "X-Account-Id",
        "X-Org-Id",
        "X-Organization",
        "X-Forwarded-User",
        "X-Remote-User",
        "X-Rigmark-Account",
        "Rigmark-User",
    ];
    for header in headers {
        for value in [bob.id.as_str(), bob.handle.as_str(), org.as_str(), "@acme"] {
            let me = ann.http.get("/api/v1/me").header(header, value).expect(200).await;
            assert_eq!(me["id"], ann.id.as_str(), "{header}: {value}");
            app.http.get("/api/v1/me").header(header, value).expect_problem(401, "unauthenticated").await;
        }
    }
    for field in ["user_id", "account_id", "org_id", "created_by", "owner"] {
        let form = json!({ "name": "k", "scopes": [], field: bob.id });
        ann.http.post("/api/v1/api-keys").json(&form).expect_problem(422, "invalid_input").await;
    }
    ann.http.get(&format!("/api/v1/me?user_id={}", bob.id)).expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn rigmark_account_names_an_account_of_the_caller_or_nothing() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    found(&bob, "other").await;
    let me = |person: &Person, account: &str| person.http.get("/api/v1/me").header("Rigmark-Account", account);
    for own in ["@acme", "acme", "@ACME"] {
        let body = me(&ann, own).expect(200).await;
        assert_eq!((body["handle"].as_str(), body["kind"].as_str(), body.get("email")), (Some("acme"), Some("organization"), None));
    }
    assert_eq!(me(&ann, "@ann").expect(200).await["handle"], "ann");
    for foreign in ["@other", "@bob", "@no-such-one", "", "@", "a--b", "@acme, @other", "%00", "acme\u{e9}"] {
        me(&ann, foreign).expect_problem(404, "not_found").await;
    }
    let twice = me(&ann, "@acme").header("Rigmark-Account", "@ann");
    twice.expect_problem(404, "not_found").await;

    let (own, _) = create_key(&ann.http, &["account:read"]).await;
    let (orgs, _) = create_key_for(&ann, "acme", &["account:read"]).await;
    let by_key = |key: &str, account: &str| app.http.with_bearer(key).get("/api/v1/me").header("Rigmark-Account", account);
    by_key(&own, "@ann").expect(200).await;
    by_key(&orgs, "@acme").expect(200).await;
    for (key, foreign) in [(&own, "@acme"), (&orgs, "@ann"), (&own, "@other"), (&orgs, "@no-such-one"), (&orgs, "")] {
        by_key(key, foreign).expect_problem(404, "not_found").await;
    }
}

#[tokio::test]
async fn a_caller_is_what_its_credentials_say() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "billing").await;
    let own = caller(&app, &bob.access_token, None).await;
    assert_eq!((own.actor, own.is_organization, own.account_id), (Actor::User, false, own.user_id));
    assert_eq!(own.scopes, rigmark::identity::scope::ScopeSet::all());
    let acting = caller(&app, &bob.access_token, Some("@acme")).await;
    assert_eq!((acting.user_id, acting.is_organization, acting.account_handle.as_str()), (own.user_id, true, "acme"));
    assert_eq!(acting.scopes, rigmark::identity::scope::Role::Billing.scopes());
    let (key, _) = create_key_for(&bob, "acme", &["billing:read"]).await;
    let by_key = caller(&app, &key, None).await;
    assert_eq!((by_key.account_id, by_key.user_id), (acting.account_id, own.user_id));
    assert!(matches!(by_key.actor, Actor::ApiKey(_)) && by_key.session_id.is_none());
}

/// What an open stream asks every second.
#[tokio::test]
async fn a_long_answer_learns_that_its_caller_is_gone() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "member").await;
    let (orgs, _) = create_key_for(&bob, "acme", &["inference"]).await;
    let (own, own_id) = create_key(&bob.http, &["inference"]).await;
    let by_session = caller(&app, &bob.access_token, None).await;
    let acting = caller(&app, &bob.access_token, Some("@acme")).await;
    let by_org_key = caller(&app, &orgs, None).await;
    let by_own_key = caller(&app, &own, None).await;
    for caller in [&by_session, &acting, &by_org_key, &by_own_key] {
        assert_eq!(refresh(&app, caller).await.unwrap().scopes, caller.scopes);
    }
    // An access token that expires does not cut a stream that it opened; the end of its session does.
    app.shift_wall(901);
    assert!(refresh(&app, &by_session).await.is_ok());
    let bob = super::login(&app, &bob.email, super::PASSWORD).await;
    let ann = super::login(&app, &ann.email, super::PASSWORD).await;
    ann.http.delete("/api/v1/organizations/acme/members/bob").expect(204).await;
    assert_eq!(refresh(&app, &by_org_key).await.unwrap_err(), Code::Unauthenticated);
    assert_eq!(refresh(&app, &acting).await.unwrap_err(), Code::NotFound);
    assert!(refresh(&app, &by_own_key).await.is_ok());
    bob.http.delete(&format!("/api/v1/api-keys/{own_id}")).expect(204).await;
    assert_eq!(refresh(&app, &by_own_key).await.unwrap_err(), Code::Unauthenticated);
    let change = json!({ "current_password": super::PASSWORD, "new_password": "another password" });
    bob.http.post("/api/v1/me/password").json(&change).expect(204).await;
    assert_eq!(refresh(&app, &by_session).await.unwrap_err(), Code::Unauthenticated);
}

#[tokio::test]
async fn operators_are_people_who_have_signed_in() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (key, _) = create_key(&ann.http, &["account:read", "billing:write"]).await;
    let code = |caller: &Caller| caller.require_operator().err().map(|error| error.code());
    assert_eq!(code(&caller(&app, &ann.access_token, None).await), Some(Code::Forbidden));
    service::grant_operator(app.ctx(), "@Ann").await.unwrap();
    assert_eq!(code(&caller(&app, &ann.access_token, None).await), None);
    assert_eq!(code(&caller(&app, &key, None).await), Some(Code::InsufficientScope));
    assert_eq!(ann.http.get("/api/v1/me").expect(200).await["is_operator"], true);
    service::revoke_operator(app.ctx(), "ann").await.unwrap();
    assert_eq!(code(&caller(&app, &ann.access_token, None).await), Some(Code::Forbidden));
    found(&ann, "acme").await;
    for nobody in ["acme", "nobody", "-"] {
        assert_eq!(service::grant_operator(app.ctx(), nobody).await.unwrap_err().code(), Code::NotFound);
    }
}

#[tokio::test]
async fn a_closed_account_is_nobody() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "member").await;
    let (own, _) = create_key(&bob.http, &["account:read"]).await;
    let (orgs, _) = create_key_for(&bob, "acme", &["account:read"]).await;
    let id = caller(&app, &bob.access_token, None).await.user_id;
    let now = app.ctx().clock.wall_now();
    app.ctx().db.tx("test", async |tx| service::account_close(tx, By::User(id), id, now).await).await.unwrap();
    for secret in [&bob.access_token, &own, &orgs] {
        app.http.with_bearer(secret).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    }
    let refresh = app.http.post("/api/v1/auth/refresh").json(&json!({ "refresh_token": bob.refresh_token }));
    refresh.expect_problem(401, "unauthenticated").await;
    let login = app.http.post("/api/v1/auth/login").json(&json!({ "email": bob.email, "password": super::PASSWORD }));
    login.expect_problem(401, "invalid_credentials").await;
    assert_eq!(ann.http.get("/api/v1/organizations/acme/members").expect(200).await["data"].as_array().unwrap().len(), 1);
    // The name and the address are free again.
    register(&app, "bob").await;
}
