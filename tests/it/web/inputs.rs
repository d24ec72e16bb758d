//! What extractors refuse, and where they point.

use actix_web::web::{ServiceConfig, get, post};
use rigmark::base::Result;
use rigmark::base::id::MachineId;
use rigmark::web::{Json, Path, Query};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::server::Server;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    #[serde(default)]
    count: u32,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    extra: Option<Box<serde_json::value::RawValue>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Part {
    #[serde(rename = "a/b~c")]
    odd: i64,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Plain,
    Other,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    gpu_count: Option<u32>,
    kind: Option<Kind>,
    q: Option<String>,
}

async fn echo(body: Json<Input>) -> Result<actix_web::HttpResponse> {
    Ok(actix_web::HttpResponse::Ok().json(body.into_inner()))
}
async fn filter(query: Query<Filter>) -> Result<actix_web::HttpResponse> {
    Ok(actix_web::HttpResponse::Ok().json(query.into_inner()))
}
async fn machine(id: Path<MachineId>) -> Result<String> {
    Ok(id.to_string())
}
async fn slug(slug: Path<String>) -> Result<String> {
    Ok(slug.into_inner())
}
async fn nothing() -> &'static str {
    "done"
}

fn routes(config: &mut ServiceConfig) {
    config
        .route("/api/v1/echo", post().to(echo))
        .route("/api/v1/filter", get().to(filter))
        .route("/api/v1/machines/{id}", get().to(machine))
        .route("/api/v1/models/{slug}", get().to(slug))
        .route("/api/v1/nothing", get().to(nothing))
        .route("/api/v1/nothing", post().to(nothing));
}

async fn fault(server: &Server, body: &str) -> (String, String) {
    let request = server.http.post("/api/v1/echo").header("content-type", "application/json").body(body.to_owned());
    let problem = request.expect_problem(422, "invalid_input").await;
    let one = &problem["errors"][0];
    (one["pointer"].as_str().unwrap().to_owned(), one["code"].as_str().unwrap().to_owned())
}

#[actix_web::test]
async fn faults_in_a_body_are_pointed_at() {
    let server = Server::start(routes);
    for (body, pointer, code) in [
        (r#"{"name": "x", "color": 1}"#, "/color", "unknown_field"),
        (r#"{"name": "x", "parts": [{"a/b~c": 1}, {"a/b~c": 2, "b": 3}]}"#, "/parts/1/b", "unknown_field"),
        (r#"{"name": "x", "parts": [{"a/b~c": "two"}]}"#, "/parts/0/a~1b~0c", "wrong_type"),
        (r#"{"name": "x", "parts": [{}]}"#, "/parts/0/a~1b~0c", "missing_field"),
        (r#"{"count": 1}"#, "/name", "missing_field"),
        ("", "/name", "missing_field"),
        (r#"{"name": 5}"#, "/name", "wrong_type"),
        (r#"{"name": "x", "count": -1}"#, "/count", "invalid_value"),
        (r#"{"name": "x", "count": 1.5}"#, "/count", "wrong_type"),
        (r#"{"name": "x", "kind": "third"}"#, "/kind", "unknown_value"),
        (r#"{"name": "x", "name": "y"}"#, "/name", "duplicate_field"),
        (r#"{"name": "x", "extra": {"deep": [{"k": 1, "\u006b": 2}]}}"#, "/extra/deep/0/k", "duplicate_field"),
        (r#"{"name": "a\u0000b"}"#, "/name", "nul_character"),
        (r#"{"name": "x", "extra": {"a": ["b", "\u0000"]}}"#, "/extra/a/1", "nul_character"),
        ("null", "", "wrong_type"),
        ("[]", "", "wrong_type"),
    ] {
        assert_eq!(fault(&server, body).await, (pointer.to_owned(), code.to_owned()), "{body}");
    }
}

#[actix_web::test]
async fn a_good_body_passes_with_any_json_content_type() {
    let server = Server::start(routes);
    let body = r#"{"name": "é", "count": 3, "parts": [{"a/b~c": -1}], "kind": "other", "extra": {"n": 0.10}}"#;
    for kind in ["application/json", "application/json; charset=UTF-8", "application/merge-patch+json"] {
        let answer = server.http.post("/api/v1/echo").header("content-type", kind).body(body).answer().await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.body);
        assert!(answer.body.contains(r#"{"n": 0.10}"#), "the raw value is kept: {}", answer.body);
    }
    // No content type at all is taken for JSON.
    server.http.post("/api/v1/echo").body(body).expect(200).await;
}

#[actix_web::test]
async fn a_body_that_is_no_json_says_where() {
    let server = Server::start(routes);
    let post = |body: &'static [u8]| server.http.post("/api/v1/echo").header("content-type", "application/json").body(body);
    let problem = post(b"{\"name\":\n  oops}").expect_problem(400, "malformed_request").await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("line 2, column 3"), "{detail}");
    post(b"{\"name\": \"x\"} {}").expect_problem(400, "malformed_request").await;
    post(b"{\"name\": \"\xff\"}").expect_problem(400, "malformed_request").await;
    post(b"{\"name\": \"x\", \"count\": 1e999}").expect_problem(400, "malformed_request").await;
    let deep = format!(r#"{{"name": "x", "extra": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    server.http.post("/api/v1/echo").body(deep).expect_problem(400, "malformed_request").await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"] {
        let request = server.http.post("/api/v1/echo").header("content-type", kind).body("{}");
        request.expect_problem(415, "unsupported_media_type").await;
    }
}

#[actix_web::test]
async fn an_error_that_quotes_the_client_is_of_bounded_length() {
    let server = Server::start(routes);
    let body = format!(r#"{{"name": "x", "count": "{}"}}"#, "y".repeat(100_000));
    let answer = server.http.post("/api/v1/echo").body(body).answer().await;
    assert_eq!(answer.status, 422);
    assert!(answer.body.len() < 2_000, "{} bytes", answer.body.len());
}

#[actix_web::test]
async fn faults_in_a_query_are_pointed_at() {
    let server = Server::start(routes);
    for (query, pointer, code) in [
        ("color=red", "?color", "unknown_field"),
        ("gpu_count=two", "?gpu_count", "wrong_type"),
        ("gpu_count=-1", "?gpu_count", "wrong_type"),
        ("gpu_count=", "?gpu_count", "wrong_type"),
        ("gpu_count=99999999999", "?gpu_count", "wrong_type"),
        ("kind=third", "?kind", "unknown_value"),
        ("q=a&q=b", "?q", "duplicate_field"),
        ("q=a%00b", "?q", "nul_character"),
        ("q=%ff", "?q", "invalid_value"),
    ] {
        let problem = server.http.get(&format!("/api/v1/filter?{query}")).expect_problem(422, "invalid_input").await;
        let one = &problem["errors"][0];
        assert_eq!((one["pointer"].as_str(), one["code"].as_str()), (Some(pointer), Some(code)), "{query}: {problem}");
    }
    let answer = server.http.get("/api/v1/filter?gpu_count=2&kind=other&q=a%20b%2Bc").expect(200).await;
    assert_eq!(answer, json!({"gpu_count": 2, "kind": "other", "q": "a b+c"}));
}

#[actix_web::test]
async fn parameters_that_nobody_reads_are_refused() {
    let server = Server::start(routes);
    for request in [server.http.get("/api/v1/nothing?x=1"), server.http.post("/api/v1/nothing?x=1")] {
        let problem = request.expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "?x");
    }
    assert_eq!(server.http.get("/api/v1/nothing").answer().await.status, 200);
    // What is not there is not there, whatever was asked.
    server.http.get("/api/v1/none?x=1").expect_problem(404, "not_found").await;
}

#[actix_web::test]
async fn a_path_that_cannot_exist_is_not_found() {
    let server = Server::start(routes);
    let id = MachineId::new();
    let answer = server.http.get(&format!("/api/v1/machines/{id}")).answer().await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, id.to_string().as_str()));
    let wrong = ["mch_short", "run_01h455vb4pex5vsknk084sn02q", "x%00y", "%ff", "..%2f..%2fetc"];
    for path in wrong {
        server.http.get(&format!("/api/v1/machines/{path}")).expect_problem(404, "not_found").await;
    }
    for path in ["a%00b".to_owned(), "%ff".to_owned(), "x".repeat(300)] {
        server.http.get(&format!("/api/v1/models/{path}")).expect_problem(404, "not_found").await;
    }
    for (path, text) in [("qwen2.5%20x", "qwen2.5 x"), ("%2500", "%00")] {
        assert_eq!(server.http.get(&format!("/api/v1/models/{path}")).answer().await.body, text, "decoded once");
    }
}

#[actix_web::test]
async fn every_code_has_a_row_and_a_status() {
    let problems = rigmark::web::problem::problems();
    assert_eq!(problems.len(), rigmark::base::Code::ALL.len());
    for problem in &problems {
        assert!((400..600).contains(&problem.status), "{problem:?}");
    }
    let codes: std::collections::BTreeSet<_> = problems.iter().map(|p| p.code).collect();
    assert_eq!(codes.len(), problems.len(), "a code stands twice");
}
