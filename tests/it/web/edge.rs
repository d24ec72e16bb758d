//! What every answer carries, and how errors look.

use actix_web::web::{ServiceConfig, get, post};
use actix_web::{HttpRequest, HttpResponse, Responder};
use rigmark::base::{Code, Error, Result};
use rigmark::web::{event_stream, request_id};

use super::server::Server;
use crate::support::TestApp;

async fn hello() -> impl Responder {
    HttpResponse::Ok().content_type("application/json").body(format!("{{\"text\": \"{}\"}}", "hello ".repeat(200)))
}
async fn who(req: HttpRequest) -> String {
    request_id(&req)
}
async fn broken() -> Result<String> {
    Err(Error::internal("the secret cause"))
}
async fn panics() -> Result<String> {
    panic!("the secret cause")
}
async fn stranger() -> Result<String> {
    Err(Error::new(Code::Unauthenticated, "Sign in."))
}
async fn unmet() -> Result<String> {
    Err(Error::new(Code::ListingNotMeasured, "Not yet.").with_extra("unmet", serde_json::json!([{"code": "no_run"}])).with_retry_after(7))
}
async fn bare() -> impl Responder {
    HttpResponse::Conflict().finish()
}
async fn foreign(body: actix_web::web::Json<serde_json::Value>) -> impl Responder {
    body.into_inner().to_string()
}
async fn events() -> impl Responder {
    event_stream(futures::stream::iter([Ok("data: one\n\n".into()), Ok("data: two\n\n".into())]))
}

fn routes(config: &mut ServiceConfig) {
    config
        .route("/api/v1/hello", get().to(hello))
        .route("/api/v1/who", get().to(who))
        .route("/api/v1/broken", get().to(broken))
        .route("/api/v1/panics", get().to(panics))
        .route("/api/v1/panics", post().to(panics))
        .route("/api/plain/panics", get().to(panics))
        .route("/api/plain/panics", post().to(panics))
        .route("/api/v1/stranger", get().to(stranger))
        .route("/api/v1/unmet", get().to(unmet))
        .route("/api/v1/bare", get().to(bare))
        .route("/api/v1/foreign", post().to(foreign))
        .route("/api/v1/events", get().to(events))
        .route("/v1/models", get().to(stranger));
}

#[actix_web::test]
async fn a_request_id_is_taken_or_made_and_always_returned() {
    let server = Server::start(routes);
    let given = |id: &'static str| server.http.get("/api/v1/who").header("x-request-id", id);
    let answer = given("abc.DEF_123-").answer().await;
    assert_eq!(answer.header("x-request-id").as_deref(), Some("abc.DEF_123-"));
    assert_eq!(answer.body, "abc.DEF_123-");
    let long = "x".repeat(129);
    for bad in ["", "a b", "<script>", long.as_str()] {
        let answer = server.http.get("/api/v1/who").header("x-request-id", bad).answer().await;
        assert!(answer.body.starts_with("req_"), "{bad:?} gave {}", answer.body);
        assert_eq!(answer.header("x-request-id").as_deref(), Some(answer.body.as_str()));
    }
}

#[actix_web::test]
async fn every_answer_names_the_mode_and_is_guarded() {
    let server = Server::start(routes);
    for path in ["/api/v1/hello", "/api/v1/broken", "/nowhere"] {
        let answer = server.http.get(path).answer().await;
        assert_eq!(answer.header("rigmark-mode").as_deref(), Some("sandbox"), "{path}");
        assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"), "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
    }
}

#[actix_web::test]
async fn our_own_faults_show_nothing_but_the_request_id() {
    let server = Server::start(routes);
    let requests = [server.http.get("/api/v1/broken"), server.http.get("/api/v1/panics"), server.http.post("/api/v1/panics")];
    for request in requests {
        let answer = request.header("x-request-id", "r-1").answer().await;
        assert_eq!(answer.status, 500);
        assert_eq!(answer.header("content-type").as_deref(), Some("application/problem+json"));
        assert!(!answer.body.contains("secret"), "{}", answer.body);
        let problem = answer.json();
        assert_eq!((problem["code"].as_str(), problem["request_id"].as_str()), (Some("internal"), Some("r-1")));
    }
    // Where only one shape can be read, a panic has it too.
    for request in [server.http.get("/api/plain/panics"), server.http.post("/api/plain/panics")] {
        let answer = request.answer().await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (500, "error: internal"));
    }
    // The worker has survived.
    assert_eq!(server.http.get("/api/v1/hello").answer().await.status, 200);
}

#[actix_web::test]
async fn problems_have_their_members_and_headers() {
    let server = Server::start(routes);
    let answer = server.http.get("/api/v1/unmet").answer().await;
    assert_eq!(answer.header("retry-after").as_deref(), Some("7"));
    let problem = answer.json();
    assert_eq!(problem["type"], "/problems/listing_not_measured");
    assert_eq!(problem["status"], 409);
    assert_eq!(problem["unmet"][0]["code"], "no_run");
    assert!(problem["title"].is_string() && problem.get("errors").is_none(), "{problem}");
    let answer = server.http.get("/api/v1/stranger").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate").as_deref()), (401, Some("Bearer realm=\"rigmark\"")));
}

#[actix_web::test]
async fn nothing_below_api_answers_an_error_of_another_shape() {
    let server = Server::start(routes);
    server.http.get("/api/v1/bare").expect_problem(409, "invalid_state").await;
    server.http.get("/api/v1/none").expect_problem(404, "not_found").await;
    server.http.get("/api").expect_problem(404, "not_found").await;
    let foreign = |kind: &'static str, body: String| server.http.post("/api/v1/foreign").header("content-type", kind).body(body);
    foreign("application/json", "{".to_owned()).expect_problem(400, "malformed_request").await;
    foreign("text/plain", "{}".to_owned()).expect_problem(415, "unsupported_media_type").await;
    let large = format!("\"{}\"", "x".repeat(3_000_000));
    foreign("application/json", large).expect_problem(413, "payload_too_large").await;
}

#[actix_web::test]
async fn who_owns_a_path_decides_how_its_errors_look() {
    let server = Server::start(routes);
    for (path, status, body) in [("/v1/models", 401, "error: unauthenticated"), ("/v1/none", 404, "error: not_found")] {
        let answer = server.http.get(path).answer().await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (status, body));
    }
    server.http.get("/v1x").expect_problem(404, "not_found").await;
}

#[actix_web::test]
async fn an_unchanged_body_is_not_sent_again() {
    let server = Server::start(routes);
    let first = server.http.get("/api/v1/hello").answer().await;
    let tag = first.header("etag").unwrap();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert_eq!(first.header("cache-control").as_deref(), Some("public, no-cache"));
    let again = |tags: String| server.http.get("/api/v1/hello").header("if-none-match", tags);
    for tags in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let answer = again(tags.clone()).answer().await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (304, ""), "{tags}");
        assert!(answer.header("etag").unwrap().contains(tag.trim_matches('"')), "{tags}");
        assert!(answer.header("x-request-id").is_some());
    }
    assert_eq!(again("\"other\"".to_owned()).answer().await.status, 200);
    let mine = server.http.with_bearer("token").get("/api/v1/hello").answer().await;
    assert_eq!(mine.header("cache-control").as_deref(), Some("private, no-cache"));
    assert!(server.http.get("/api/v1/broken").answer().await.header("etag").is_none());
}

#[actix_web::test]
async fn a_compressed_answer_has_a_tag_of_its_own_that_is_known_again() {
    let server = Server::start(routes);
    let plain = server.http.get("/api/v1/hello").answer().await.header("etag").unwrap();
    for encoding in ["gzip", "br"] {
        let get = || server.http.get("/api/v1/hello").header("accept-encoding", encoding);
        let answer = get().send().await;
        assert_eq!(answer.headers()["content-encoding"], encoding);
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        assert_eq!(tag, format!("{}.{encoding}\"", plain.trim_end_matches('"')));
        let body = answer.bytes().await.unwrap();
        assert!(body.len() < 600, "{} bytes", body.len());
        let again = get().header("if-none-match", &tag).send().await;
        assert_eq!(again.status(), 304);
        assert_eq!(again.headers()["etag"].to_str().unwrap(), tag);
    }
}

#[actix_web::test]
async fn head_is_answered_as_get_without_the_body() {
    let server = Server::start(routes);
    let answer = server.http.request(reqwest::Method::HEAD, "/api/v1/hello").answer().await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, ""));
    assert!(answer.header("etag").is_some());
    let missing = server.http.request(reqwest::Method::HEAD, "/api/v1/none").answer().await;
    assert_eq!((missing.status.as_u16(), missing.body.as_str()), (404, ""));
}

#[actix_web::test]
async fn streams_are_neither_compressed_nor_tagged() {
    let server = Server::start(routes);
    let answer = server.http.get("/api/v1/events").header("accept-encoding", "gzip, br").answer().await;
    assert_eq!(answer.body, "data: one\n\ndata: two\n\n");
    assert_eq!(answer.header("content-type").as_deref(), Some("text/event-stream"));
    assert!(answer.header("content-encoding").is_none() && answer.header("etag").is_none());
}

#[actix_web::test]
async fn the_program_answers_health_problems_and_wrong_methods() {
    let app = TestApp::new().await;
    assert_eq!(app.http.get("/healthz").expect(200).await["status"], "ok");
    assert_eq!(app.http.get("/readyz").expect(200).await["status"], "ok");
    let kinds = app.http.get("/problems").expect(200).await;
    let first = &kinds["data"][0];
    assert_eq!(&app.http.get(first["type"].as_str().unwrap()).expect(200).await, first);
    app.http.get("/problems/none").expect_problem(404, "not_found").await;
    let answer = app.http.delete("/problems/internal").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("allow").as_deref()), (405, Some("GET, HEAD")));
    assert_eq!(answer.json()["code"], "method_not_allowed");
}

#[actix_web::test]
async fn a_database_that_is_away_makes_the_process_unready_but_alive() {
    let server = Server::start(|config| {
        config.service(rigmark::web::health::healthz).service(rigmark::web::health::readyz);
    });
    server.http.get("/healthz").expect(200).await;
    server.http.get("/readyz").expect_problem(503, "unavailable").await;
}

#[actix_web::test]
async fn metrics_tell_routes_apart_by_their_pattern() {
    rigmark::web::metrics::install();
    rigmark::web::metrics::install();
    let server = Server::start(|config| {
        routes(config);
        config.route("/api/v1/things/{id}", get().to(hello)).service(rigmark::web::metrics::metrics_show);
    });
    for id in 0..3 {
        server.http.get(&format!("/api/v1/things/{id}")).send().await;
    }
    let text = server.http.get("/metrics").answer().await.body;
    let count = "rigmark_http_request_duration_seconds_count{method=\"GET\",route=\"/api/v1/things/{id}\",status=\"200\"} 3";
    assert!(text.contains(count), "{text}");
    assert!(!text.contains("things/0"));
}
