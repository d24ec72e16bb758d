//! API keys: shown once, no wider and no longer-lived than what makes them.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::{create_key, create_key_for, found, join, register};
use crate::support::{TestApp, http::Http};

const ALL: [&str; 10] = [
    "account:read",
    "machines:read",
    "machines:write",
    "runs:write",
    "listings:write",
    "rentals:read",
    "rentals:write",
    "billing:read",
    "billing:write",
    "inference",
];

fn instant(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_key_is_shown_once_and_works() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let form = json!({ "name": " build server ", "scopes": ["account:read", "runs:write", "account:read"] });
    let body = ann.http.post("/api/v1/api-keys").json(&form).expect(201).await;
    let key = body["key"].as_str().unwrap();
    assert!(key.starts_with("rmk_") && key.len() >= 4 + 43, "{key}");
    assert!(body["id"].as_str().unwrap().starts_with("key_"));
    assert_eq!(key.get(..12), body["prefix"].as_str());
    assert_eq!((body["name"].as_str(), &body["scopes"]), (Some("build server"), &json!(["account:read", "runs:write"])));
    assert_eq!(body["created_by"]["handle"], "ann");
    assert_eq!((&body["expires_at"], &body["last_used_at"], &body["minted_by"]), (&Value::Null, &Value::Null, &Value::Null));

    let listed = app.http.with_bearer(key).get("/api/v1/api-keys").expect(200).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    assert!(listed["data"][0].get("key").is_none() && !listed.to_string().contains(key));
    assert!(listed["data"][0]["last_used_at"].is_string());
    let me = app.http.with_bearer(key).get("/api/v1/me").expect(200).await;
    assert_eq!((me["handle"].as_str(), me.get("email"), &me["scopes"]), (Some("ann"), None, &json!(["account:read", "runs:write"])));

    let id = body["id"].as_str().unwrap();
    for _ in 0..2 {
        ann.http.delete(&format!("/api/v1/api-keys/{id}")).expect(204).await;
    }
    app.http.with_bearer(key).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    assert_eq!(ann.http.get("/api/v1/api-keys").expect(200).await["data"], json!([]));
}

#[tokio::test]
async fn keys_are_stored_as_hashes() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (key, _) = create_key(&ann.http, &["inference"]).await;
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        stored: String,
        #[diesel(sql_type = diesel::sql_types::Bytea)]
        sha256: Vec<u8>,
    }
    let query = diesel::sql_query("SELECT api_keys::text AS stored, key_sha256 AS sha256 FROM api_keys");
    let stored: Row = query.get_result(&mut app.connect().await).await.unwrap();
    assert!(!stored.stored.contains(&key));
    assert_eq!(stored.sha256, <sha2::Sha256 as sha2::Digest>::digest(key.as_bytes()).to_vec());
}

#[tokio::test]
async fn faulty_forms_are_refused_with_pointers() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let past = (Utc::now() - TimeDelta::seconds(1)).to_rfc3339();
    let cases = [
        (json!({ "name": "k", "scopes": ["account:read", "account:write"] }), "/scopes/1"),
        (json!({ "name": "k", "scopes": ["*"] }), "/scopes/0"),
        (json!({ "name": "k", "scopes": ["Account:Read"] }), "/scopes/0"),
        (json!({ "name": "k" }), "/scopes"),
        (json!({ "name": "k", "scopes": null }), "/scopes"),
        (json!({ "name": "k", "scopes": "inference" }), "/scopes"),
        (json!({ "name": "", "scopes": [] }), "/name"),
        (json!({ "scopes": [] }), "/name"),
        (json!({ "name": "k", "scopes": [], "expires_at": past }), "/expires_at"),
        (json!({ "name": "k", "scopes": [], "expires_at": "tomorrow" }), "/expires_at"),
        (json!({ "name": "k", "scopes": [], "account_id": ann.id }), "/account_id"),
    ];
    for (form, pointer) in cases {
        let problem = ann.http.post("/api/v1/api-keys").json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

#[tokio::test]
async fn a_key_with_no_scope_can_do_nothing() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (key, id) = create_key(&ann.http, &[]).await;
    let http = app.http.with_bearer(key);
    http.get("/api/v1/me").expect_problem(403, "insufficient_scope").await;
    http.get("/api/v1/api-keys").expect_problem(403, "insufficient_scope").await;
    http.post("/api/v1/api-keys").json(&json!({ "name": "k", "scopes": [] })).expect_problem(403, "insufficient_scope").await;
    http.delete(&format!("/api/v1/api-keys/{id}")).expect_problem(403, "insufficient_scope").await;
    http.get("/api/v1/organizations").expect_problem(403, "insufficient_scope").await;
}

async fn mint(http: &Http, scopes: &[&str], expires_at: Option<DateTime<Utc>>) -> crate::support::http::Answer {
    let mut form = json!({ "name": "minted", "scopes": scopes });
    if let Some(at) = expires_at {
        form["expires_at"] = json!(at);
    }
    http.post("/api/v1/api-keys").json(&form).answer().await
}

/// For every pair of single scopes: a key mints the other exactly when it has it (a write has its read).
#[tokio::test]
async fn a_key_cannot_mint_a_wider_key() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    for held in ALL {
        let (key, _) = create_key(&ann.http, &[held]).await;
        let http = app.http.with_bearer(key);
        for wanted in ALL {
            let allowed = held == wanted || held.replace(":write", ":read") == wanted;
            let answer = mint(&http, &[wanted], None).await;
            let expected = if allowed { 201 } else { 403 };
            assert_eq!(answer.status, expected, "{held} mints {wanted}: {}", answer.body);
            if !allowed {
                assert_eq!(answer.json()["code"], "insufficient_scope");
            }
        }
        assert_eq!(mint(&http, &ALL, None).await.status, 403);
    }
}

#[tokio::test]
async fn a_key_cannot_mint_one_that_outlives_it() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let end = Utc::now() + TimeDelta::hours(1);
    let parent = mint(&ann.http, &["inference"], Some(end)).await.json();
    let end = instant(&parent["expires_at"]);
    let http = app.http.with_bearer(parent["key"].as_str().unwrap());
    let answer = mint(&http, &["inference"], Some(end + TimeDelta::seconds(1))).await;
    assert_eq!((answer.status.as_u16(), answer.json()["errors"][0]["pointer"].as_str()), (422, Some("/expires_at")), "{}", answer.body);
    let same = mint(&http, &["inference"], Some(end)).await.json();
    assert_eq!(instant(&same["expires_at"]), end);
    assert_eq!(same["minted_by"], parent["id"]);
    let unsaid = mint(&http, &["inference"], None).await.json();
    assert_eq!(instant(&unsaid["expires_at"]), end, "what is not said is as long as it can be");
    app.shift_wall(3_601);
    for key in [&parent, &same, &unsaid] {
        let http = app.http.with_bearer(key["key"].as_str().unwrap());
        http.delete("/api/v1/api-keys/key_01h455vb4pex5vsknk084sn02q").expect_problem(401, "unauthenticated").await;
    }
}

#[tokio::test]
async fn revoking_a_key_revokes_what_it_minted() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let root = mint(&ann.http, &["account:read"], None).await.json();
    let other = mint(&ann.http, &["account:read"], None).await.json();
    let http = |key: &Value| app.http.with_bearer(key["key"].as_str().unwrap());
    let path = |key: &Value| format!("/api/v1/api-keys/{}", key["id"].as_str().unwrap());
    let child = mint(&http(&root), &["account:read"], None).await.json();
    let grandchild = mint(&http(&child), &["account:read"], None).await.json();
    // A key revokes itself and what it made, nothing else.
    http(&child).delete(&path(&root)).expect_problem(403, "insufficient_scope").await;
    http(&child).delete(&path(&other)).expect_problem(403, "insufficient_scope").await;
    http(&root).get("/api/v1/me").expect(200).await;
    http(&root).delete(&path(&child)).expect(204).await;
    for dead in [&child, &grandchild] {
        http(dead).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    }
    http(&root).delete(&path(&root)).expect(204).await;
    http(&root).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    http(&other).get("/api/v1/me").expect(200).await;
}

#[tokio::test]
async fn keys_of_other_accounts_do_not_exist() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    let (_, id) = create_key(&ann.http, &["account:read"]).await;
    bob.http.delete(&format!("/api/v1/api-keys/{id}")).expect_problem(404, "not_found").await;
    bob.http.delete("/api/v1/api-keys/key_01h455vb4pex5vsknk084sn02q").expect_problem(404, "not_found").await;
    bob.http.delete("/api/v1/api-keys/nonsense").expect_problem(404, "not_found").await;
    assert_eq!(bob.http.get("/api/v1/api-keys").expect(200).await["data"], json!([]));
}

#[tokio::test]
async fn lists_are_paged_and_their_cursors_belong_to_the_caller() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(create_key(&ann.http, &["inference"]).await.1);
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut path = "/api/v1/api-keys?limit=2".to_owned();
    loop {
        let page = ann.http.get(&path).expect(200).await;
        seen.extend(page["data"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/api-keys?limit=2&cursor={cursor}");
        bob.http.get(&path).expect_problem(400, "invalid_cursor").await;
    }
    assert_eq!(seen, made);
    ann.http.get("/api/v1/api-keys?limit=0").expect_problem(422, "invalid_input").await;
    ann.http.get("/api/v1/api-keys?page=2").expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn a_role_bounds_the_keys_of_its_members_when_made_and_when_used() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "member").await;
    let wide = bob.http.post("/api/v1/api-keys").header("Rigmark-Account", "@acme");
    wide.json(&json!({ "name": "k", "scopes": ["billing:read"] })).expect_problem(403, "forbidden").await;
    let (key, _) = create_key_for(&bob, "acme", &["account:read", "machines:write"]).await;
    let me = app.http.with_bearer(&key).get("/api/v1/me").expect(200).await;
    assert_eq!((me["handle"].as_str(), me["kind"].as_str(), me["role"].as_str()), (Some("acme"), Some("organization"), Some("member")));
    assert_eq!(me["scopes"], json!(["account:read", "machines:read", "machines:write"]));
    assert!(me.get("email").is_none());
    // A lower role takes the wider scopes of old keys away at once.
    ann.http.patch("/api/v1/organizations/acme/members/bob").json(&json!({ "role": "billing" })).expect(200).await;
    let me = app.http.with_bearer(&key).get("/api/v1/me").expect(200).await;
    assert_eq!(me["scopes"], json!(["account:read", "machines:read"]));
    let minted = app.http.with_bearer(&key).post("/api/v1/api-keys").json(&json!({ "name": "k", "scopes": ["machines:write"] }));
    minted.expect_problem(403, "insufficient_scope").await;
    // Members see their own keys, owners all.
    let (_, anns) = create_key_for(&ann, "acme", &["inference"]).await;
    let of = |http: &Http| http.get("/api/v1/api-keys").header("Rigmark-Account", "@acme");
    assert_eq!(of(&ann.http).expect(200).await["data"].as_array().unwrap().len(), 2);
    assert_eq!(of(&bob.http).expect(200).await["data"].as_array().unwrap().len(), 1);
    let revoke = bob.http.delete(&format!("/api/v1/api-keys/{anns}")).header("Rigmark-Account", "@acme");
    revoke.expect_problem(404, "not_found").await;
    // Nor does the key of an organization belong to its maker.
    assert_eq!(bob.http.get("/api/v1/api-keys").expect(200).await["data"], json!([]));
}

#[tokio::test]
async fn use_is_noted_at_most_once_a_minute() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (key, _) = create_key(&ann.http, &["account:read"]).await;
    let http = app.http.with_bearer(key);
    let mut conn = app.connect().await;
    let mut marks = Vec::new();
    for shift in [0, 30, 40, 10] {
        app.shift_wall(shift);
        http.get("/api/v1/me").expect(200).await;
        let query = diesel::sql_query("SELECT extract(epoch FROM last_used_at - created_at)::bigint AS n FROM api_keys");
        marks.push(query.get_result::<Count>(&mut conn).await.unwrap().n);
    }
    assert!(marks[0] <= 2 && marks[1] == marks[0], "{marks:?}");
    assert!((69..=75).contains(&marks[2]) && marks[3] == marks[2], "{marks:?}");
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}
