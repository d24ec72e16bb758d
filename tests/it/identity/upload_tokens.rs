//! Upload tokens: made, listed and revoked as API keys are, and never mistaken for one. What they open is in `benchmarks::uploads`.

use chrono::{TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::{Person, create_key, found, join, register};
use crate::support::http::{Http, Request};
use crate::support::lil_bench::LilBench;
use crate::support::{TestApp, hosts};

const PATH: &str = "/api/v1/upload-tokens";

fn acting(request: Request, organization: Option<&str>) -> Request {
    organization.into_iter().fold(request, |request, handle| request.header("Rigmark-Account", format!("@{handle}")))
}

async fn create(http: &Http, organization: Option<&str>) -> (String, String) {
    let body = acting(http.post(PATH), organization).json(&json!({ "name": "bench" })).expect(201).await;
    (body["token"].as_str().unwrap().to_owned(), body["id"].as_str().unwrap().to_owned())
}

async fn names(http: &Http, path: &str) -> Vec<String> {
    let listed = http.get(path).expect(200).await;
    listed["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

async fn whoami(app: &TestApp, token: &str) -> u16 {
    LilBench::new(app.http.base_url(), token).whoami().await.status
}

#[tokio::test]
async fn a_token_is_shown_once_and_stored_as_a_hash() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let machine = ann.http.post("/api/v1/machines").json(&json!({ "name": "garage", "hardware": { "gpu": "RTX 3090", "gpu_count": 1 } }));
    let machine = machine.expect(201).await["id"].clone();
    let ends = Utc::now() + TimeDelta::days(30);
    let form = json!({ "name": " bench ", "machine_id": machine, "expires_at": ends });
    let body = ann.http.post(PATH).json(&form).expect(201).await;
    let token = body["token"].as_str().unwrap();
    // What the tool itself asks of a token before it sends it.
    let rest = token.strip_prefix("lilb_").unwrap();
    assert!((20..=64).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{token}");
    assert!(body["id"].as_str().unwrap().starts_with("upt_") && token.starts_with(body["prefix"].as_str().unwrap()));
    assert_eq!((&body["name"], &body["machine_id"], &body["last_used_at"]), (&json!("bench"), &machine, &Value::Null));

    assert_eq!(whoami(&app, token).await, 200);
    let listed = ann.http.get(PATH).expect(200).await;
    assert!(listed["data"][0]["last_used_at"].is_string() && !listed.to_string().contains(rest), "{listed}");
    assert_eq!(listed["data"][0]["created_by"]["handle"], "ann");

    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        stored: String,
        #[diesel(sql_type = diesel::sql_types::Bytea)]
        sha256: Vec<u8>,
    }
    let query = diesel::sql_query("SELECT api_keys::text AS stored, key_sha256 AS sha256 FROM api_keys");
    let row: Row = query.get_result(&mut app.connect().await).await.unwrap();
    assert!(!row.stored.contains(rest));
    assert_eq!(row.sha256, <sha2::Sha256 as sha2::Digest>::digest(token.as_bytes()).to_vec());
}

#[tokio::test]
async fn keys_and_tokens_are_not_mistaken_for_each_other() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (_, key) = create_key(&ann.http, &["runs:write"]).await;
    let (token, id) = create(&ann.http, None).await;
    assert_eq!(names(&ann.http, "/api/v1/api-keys").await, ["a key"]);
    assert_eq!(names(&ann.http, PATH).await, ["bench"]);
    let other = |id: &str, from: &str, to: &str| id.replacen(from, to, 1);
    for path in
        [format!("{PATH}/{}", other(&key, "key", "upt")), format!("/api/v1/api-keys/{}", other(&id, "upt", "key")), format!("{PATH}/{key}")]
    {
        ann.http.delete(&path).expect_problem(404, "not_found").await;
    }
    // A key with the other's beginning is nobody's.
    assert_eq!(whoami(&app, &token.replacen("lilb_", "rmk_", 1)).await, 401);
    app.http.with_bearer(token.replacen("lilb_", "rmk_", 1)).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    app.http.with_bearer(&token).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    for _ in 0..2 {
        ann.http.delete(&format!("{PATH}/{id}")).expect(204).await;
    }
    assert_eq!(whoami(&app, &token).await, 401);
    assert!(names(&ann.http, PATH).await.is_empty());
}

#[tokio::test]
async fn faulty_forms_are_refused_with_pointers() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, hosts::person(&app, "bob").await);
    let past = Utc::now() - TimeDelta::seconds(1);
    let cases = [
        (json!({}), "/name"),
        (json!({ "name": "" }), "/name"),
        (json!({ "name": "t", "expires_at": past }), "/expires_at"),
        (json!({ "name": "t", "scopes": ["runs:write"] }), "/scopes"),
        (json!({ "name": "t", "machine_id": "garage" }), "/machine_id"),
    ];
    for (form, pointer) in cases {
        let problem = ann.http.post(PATH).json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let foreign = hosts::machine(&bob, None).await;
    ann.http.post(PATH).json(&json!({ "name": "t", "machine_id": foreign })).expect_problem(404, "not_found").await;
    assert!(names(&ann.http, PATH).await.is_empty());
}

#[tokio::test]
async fn a_key_makes_tokens_that_end_with_it() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (key, key_id) = create_key(&ann.http, &["runs:write", "account:read"]).await;
    let by_key = app.http.with_bearer(key);
    let (token, id) = create(&by_key, None).await;
    let (own, own_id) = create(&ann.http, None).await;
    by_key.delete(&format!("{PATH}/{own_id}")).expect_problem(403, "insufficient_scope").await;
    by_key.delete(&format!("{PATH}/{id}")).expect(204).await;
    assert_eq!((whoami(&app, &token).await, whoami(&app, &own).await), (401, 200));
    let (token, _) = create(&by_key, None).await;
    ann.http.delete(&format!("/api/v1/api-keys/{key_id}")).expect(204).await;
    assert_eq!((whoami(&app, &token).await, whoami(&app, &own).await), (401, 200));
}

/// A token acts for the organization, while its maker belongs to it and may upload.
#[tokio::test]
async fn an_organizations_token_is_its_members() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "guild").await;
    join(&ann, "guild", &bob, "member").await;
    let (token, id) = create(&bob.http, Some("guild")).await;
    let tool = LilBench::new(app.http.base_url(), &token);
    assert_eq!(tool.whoami().await.body["login"], "guild");
    // Owners see it, and its maker; nobody's own list has it.
    let seen = async |person: &Person, organization: Option<&str>| {
        acting(person.http.get(PATH), organization).expect(200).await["data"].as_array().unwrap().len()
    };
    assert_eq!((seen(&ann, Some("guild")).await, seen(&bob, Some("guild")).await), (1, 1));
    assert_eq!((seen(&ann, None).await, seen(&bob, None).await), (0, 0));

    let member = "/api/v1/organizations/guild/members/bob";
    ann.http.patch(member).json(&json!({ "role": "billing" })).expect(200).await;
    let refused = tool.whoami().await;
    assert_eq!((refused.status, refused.error()), (403, "This needs runs:write."));
    acting(bob.http.post(PATH), Some("guild")).json(&json!({ "name": "t" })).expect_problem(403, "forbidden").await;
    ann.http.patch(member).json(&json!({ "role": "member" })).expect(200).await;
    assert_eq!(tool.whoami().await.status, 200);
    ann.http.delete(member).expect(204).await;
    assert_eq!(tool.whoami().await.status, 401);
    join(&ann, "guild", &bob, "member").await;
    assert_eq!(tool.whoami().await.status, 401, "what ended does not come back");
    ann.http.delete(&format!("{PATH}/{id}")).expect_problem(404, "not_found").await;
    acting(ann.http.delete(&format!("{PATH}/{id}")), Some("guild")).expect(204).await;
}
