//! Endpoints over the API: what may be written, who may write it, and the log.

use serde_json::{Value, json};

use super::{ENDPOINTS, Hooks, endpoint, key, text};
use crate::support::{TestApp, hosts::person};

#[tokio::test]
async fn an_endpoint_is_made_changed_listed_and_deleted() {
    let hooks = Hooks::new().await;
    let shown = hooks.show().await;
    assert_eq!((&shown["events"], &shown["is_enabled"], &shown["disabled_reason"]), (&json!(["*"]), &json!(true), &Value::Null));
    let form = json!({ "events": ["rental.ended", "rental.started", "rental.ended"], "description": "the team's", "is_enabled": false });
    let changed = hooks.http.patch(&hooks.path("")).json(&form).expect(200).await;
    assert_eq!(changed["events"], json!(["rental.started", "rental.ended"]));
    assert_eq!((&changed["description"], &changed["is_enabled"], &changed["url"]), (&json!("the team's"), &json!(false), &shown["url"]));

    let second = endpoint(&hooks.http, "https://example.org/b", &["top_up.failed"]).await;
    let first_page = hooks.http.get(&format!("{ENDPOINTS}?limit=1")).expect(200).await;
    assert_eq!(first_page["data"][0]["id"], second["id"]);
    let cursor = text(&first_page["next_cursor"]);
    let next_page = hooks.http.get(&format!("{ENDPOINTS}?limit=1&cursor={cursor}")).expect(200).await;
    assert_eq!((&next_page["data"][0], &next_page["next_cursor"]), (&changed, &Value::Null));

    hooks.http.delete(&hooks.path("")).expect(204).await;
    hooks.http.get(&hooks.path("")).expect_problem(404, "not_found").await;
    hooks.http.delete(&hooks.path("")).expect_problem(404, "not_found").await;
    assert_eq!(super::count(&hooks.app, "audit_events WHERE action LIKE 'webhook_endpoint.%'").await, 4);
}

#[tokio::test]
async fn every_fault_of_an_endpoint_is_named() {
    let hooks = Hooks::new().await;
    let refused = async |form: Value, pointer: &str, code: &str| {
        let problem = hooks.http.post(ENDPOINTS).json(&form).expect_problem(422, "invalid_input").await;
        let faults = problem["errors"].as_array().unwrap();
        assert!(faults.iter().any(|fault| fault["pointer"] == pointer && fault["code"] == code), "{form}: {problem}");
    };
    let at = |url: &str| json!({ "url": url, "events": ["*"] });
    refused(at("ftp://example.org/"), "/url", "invalid_url").await;
    refused(at("https://exa mple.org/"), "/url", "invalid_url").await;
    refused(at("https://example.org:0/"), "/url", "invalid_url").await;
    refused(at("https://ada:secret@example.org/"), "/url", "url_with_credentials").await;
    refused(at("https://example.org/#part"), "/url", "url_with_fragment").await;
    refused(at("http://example.org/"), "/url", "https_required").await;
    refused(at("http://192.168.0.1/"), "/url", "https_required").await;
    refused(at(&format!("https://example.org/{}", "a".repeat(2_048))), "/url", "too_long").await;
    refused(json!({ "url": "https://example.org/", "events": [] }), "/events", "length").await;
    refused(json!({ "url": "https://example.org/", "events": ["*", "rental.paused"] }), "/events/1", "unknown_event").await;
    refused(json!({ "url": "https://example.org/", "events": ["*"], "description": "a".repeat(201) }), "/description", "length").await;
    // A test is sent when it is asked for; nobody subscribes to it.
    refused(json!({ "url": "https://example.org/", "events": ["webhook.test"] }), "/events/0", "unknown_event").await;
    for private in ["https://169.254.169.254/", "https://10.0.0.1/", "https://[fd00:ec2::254]/", "https://0xa9fea9fe/"] {
        hooks.http.post(ENDPOINTS).json(&at(private)).expect_problem(422, "forbidden_address").await;
        hooks.http.patch(&hooks.path("")).json(&json!({ "url": private })).expect_problem(422, "forbidden_address").await;
    }
    // The sandbox on loopback: this machine, by http too.
    for own in ["http://localhost:1/", "http://[::1]:1/", "https://127.0.0.1:1/"] {
        endpoint(&hooks.http, own, &["*"]).await;
    }
}

#[tokio::test]
async fn whoever_sets_up_an_endpoint_has_the_write_scopes_of_what_it_tells() {
    let hooks = Hooks::new().await;
    let reader = key(&hooks.app, &hooks.ada, &["account:read", "rentals:read"]).await;
    let renter = key(&hooks.app, &hooks.ada, &["rentals:write"]).await;
    let rentals = json!({ "url": "https://example.org/", "events": ["rental.started"] });
    reader.post(ENDPOINTS).json(&rentals).expect_problem(403, "insufficient_scope").await;
    let made = text(&renter.post(ENDPOINTS).json(&rentals).expect(201).await["id"]);
    for events in [json!(["*"]), json!(["rental.started", "top_up.failed"]), json!(["run.verdict"]), json!(["badge.stale"])] {
        let form = json!({ "url": "https://example.org/", "events": events });
        renter.post(ENDPOINTS).json(&form).expect_problem(403, "insufficient_scope").await;
        let path = format!("{ENDPOINTS}/{made}");
        renter.patch(&path).json(&json!({ "events": events })).expect_problem(403, "insufficient_scope").await;
    }
    // What tells of more than the key may do is not the key's to change.
    for (method, rest) in [("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rotate-secret")] {
        let request = renter.request(method.parse().unwrap(), &hooks.path(rest));
        request.expect_problem(403, "insufficient_scope").await;
    }
    // Reading is for `account:read`.
    reader.get(&hooks.path("")).expect(200).await;
    renter.get(&hooks.path("")).expect_problem(403, "insufficient_scope").await;
}

#[tokio::test]
async fn an_organization_has_endpoints_of_its_own_and_its_roles_decide() {
    let app = TestApp::new().await;
    let (ada, eve) = (person(&app, "ada").await, person(&app, "eve").await);
    ada.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
    let form = json!({ "url": "https://example.org/", "events": ["*"] });
    let made = ada.http.post(ENDPOINTS).header("Rigmark-Account", "@guild").json(&form).expect(201).await;
    let path = format!("{ENDPOINTS}/{}", text(&made["id"]));
    ada.http.get(&path).header("Rigmark-Account", "@guild").expect(200).await;
    ada.http.get(&path).expect_problem(404, "not_found").await;
    eve.http.get(&path).header("Rigmark-Account", "@guild").expect_problem(404, "not_found").await;
    assert_eq!(ada.http.get(ENDPOINTS).expect(200).await["data"], json!([]));

    let form = json!({ "handle": "eve", "role": "billing" });
    let invitation = ada.http.post("/api/v1/organizations/guild/invitations").json(&form).expect(201).await;
    eve.http.post(&format!("/api/v1/organizations/guild/invitations/{}/accept", text(&invitation["id"]))).expect(200).await;
    eve.http.get(&path).header("Rigmark-Account", "@guild").expect(200).await;
    eve.http.delete(&path).header("Rigmark-Account", "@guild").expect_problem(403, "forbidden").await;
    let money = json!({ "url": "https://example.org/", "events": ["top_up.succeeded"] });
    eve.http.post(ENDPOINTS).header("Rigmark-Account", "@guild").json(&money).expect(201).await;
}

#[tokio::test]
async fn an_account_has_at_most_twenty_endpoints() {
    let hooks = Hooks::new().await;
    for _ in 1..20 {
        endpoint(&hooks.http, "https://example.org/", &["*"]).await;
    }
    let form = json!({ "url": "https://example.org/", "events": ["*"] });
    hooks.http.post(ENDPOINTS).json(&form).expect_problem(409, "invalid_state").await;
    hooks.http.delete(&hooks.path("")).expect(204).await;
    hooks.http.post(ENDPOINTS).json(&form).expect(201).await;
}

#[tokio::test]
async fn the_log_goes_by_pages_and_shows_no_answer_of_a_receiver() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(crate::support::scripted::Manner::Answer(500, "a secret of the receiver".to_owned()));
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(hooks.test().await);
    }
    hooks.tried(1).await;
    let first = hooks.http.get(&hooks.path("/deliveries?limit=2")).expect(200).await;
    let ids: Vec<String> = first["data"].as_array().unwrap().iter().map(|row| text(&row["event_id"])).collect();
    assert_eq!(ids, [events[2].clone(), events[1].clone()]);
    let cursor = text(&first["next_cursor"]);
    let next = hooks.http.get(&hooks.path(&format!("/deliveries?limit=2&cursor={cursor}"))).expect(200).await;
    assert_eq!((&next["data"][0]["event_id"], &next["next_cursor"]), (&json!(events[0]), &Value::Null));
    let row = &first["data"][0];
    assert_eq!(
        (&row["type"], &row["status"], &row["status_code"], &row["error"]),
        (&json!("webhook.test"), &json!("pending"), &json!(500), &json!("status"))
    );
    assert!(row["duration_ms"].is_i64() && row["next_try_at"].is_string() && row["tried_at"].is_string(), "{row}");
    assert!(!first.to_string().contains("a secret of the receiver"));
    // The cursor of another list.
    hooks.http.get(&format!("{ENDPOINTS}?limit=2&cursor={cursor}")).expect_problem(400, "invalid_cursor").await;
}
