//! The benchmark tool's uploads, driven as the real tool drives them: idempotent by `run_id` or content, and every answer one it can read.

use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::web::rate_limit;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{bytes, value};
use crate::support::hosts::{self, Person, account_id, machine, person};
use crate::support::http::Http;
use crate::support::lil_bench::{LilBench, Outcome, gzip};
use crate::support::{Program, TempDir, TestApp, wait_for};

/// An account with a token of the tool.
struct Uploader {
    person: Person,
    tool: LilBench,
    token_id: String,
}

async fn make_token(http: &Http, form: &Value) -> (String, String) {
    let made = http.post("/api/v1/upload-tokens").json(form).expect(201).await;
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

async fn uploader_with(app: &TestApp, handle: &str, form: &Value) -> Uploader {
    let person = person(app, handle).await;
    let (token, token_id) = make_token(&person.http, form).await;
    Uploader { tool: LilBench::new(app.http.base_url(), &token), token_id, person }
}

async fn uploader(app: &TestApp, handle: &str) -> Uploader {
    uploader_with(app, handle, &json!({ "name": "bench" })).await
}

fn wrapped() -> Value {
    value("synthetic_lil_bench_wrapped.json")
}

async fn run_of(app: &TestApp, outcome: &Outcome) -> Value {
    app.http.get(&format!("/api/v1/matrix-runs/{}", outcome.body["id"].as_str().unwrap())).expect(200).await
}

async fn runs_stored(app: &TestApp) -> i64 {
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = sql::BigInt)]
        count: i64,
    }
    let row: Row = sql_query("SELECT count(*) FROM runs").get_result(&mut app.connect().await).await.unwrap();
    row.count
}

#[tokio::test]
async fn the_tool_uploads_and_shows_the_page_of_the_run() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let login = ann.tool.whoami().await;
    assert_eq!((login.status, &login.body, login.tries), (200, &json!({ "login": "ann", "machine_id": null }), 1));

    for (name, document) in [("wrapped", wrapped()), ("plain", value("v04_queued.json"))] {
        let first = ann.tool.upload(&document).await;
        assert_eq!((first.status, first.tries), (201, 1), "{name}: {first:?}");
        let run = run_of(&app, &first).await;
        assert_eq!(
            (&run["status"], &run["evidence_level"], &run["by"]),
            (&json!("verified"), &json!("document"), &json!("@ann")),
            "{name}"
        );
        assert_eq!((&run["machine_id"], &run["challenge_id"]), (&Value::Null, &Value::Null));
        let path = first.url().strip_prefix(app.http.base_url()).expect("the url is absolute, at the public address").to_owned();
        assert!(app.http.get(&path).answer().await.body.contains(run["title"].as_str().unwrap()), "{path} shows the run");
        // The same once more, and in other spelling, as `lil-bench upload FILE` may send it.
        let again = ann.tool.upload(&document).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{name}");
        let pretty = serde_json::to_vec_pretty(&document).unwrap();
        for (encoding, body) in [(Some("gzip"), gzip(&pretty)), (None, pretty.clone()), (None, gzip(&pretty))] {
            let again = ann.tool.call(ann.tool.post("application/json; charset=utf-8", encoding, &body)).await;
            assert_eq!((again.status, &again.body), (200, &first.body), "{name}");
        }
    }
    assert_eq!(runs_stored(&app).await, 2);
}

/// Redaction, verdict, findings and figures are those of the other way in.
#[tokio::test]
async fn both_ways_in_lead_to_the_same_run() {
    for name in ["synthetic_lil_bench_wrapped.json", "v04_queued.json", "page-transcribed.json", "real_llamacpp_cpu_completed.json"] {
        let app = TestApp::new().await;
        let ann = uploader(&app, "ann").await;
        let body = json!({ "document": value(name) });
        let direct = ann.person.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
        // The same bytes of the same account are the same run, whichever way they come.
        let same = ann.tool.call(ann.tool.post("application/json", None, body["document"].to_string().as_bytes())).await;
        assert_eq!((same.status, &same.body["id"]), (200, &direct["id"]), "{name}");

        let app = TestApp::new().await;
        let ann = uploader(&app, "ann").await;
        let outcome = ann.tool.upload(&value(name)).await;
        assert_eq!(outcome.status, 201, "{name}: {outcome:?}");
        let run = run_of(&app, &outcome).await;
        for member in ["status", "title", "summary", "checks", "decode", "prefill", "document_sha256", "hardware", "rules_version"] {
            assert_eq!(run[member], direct[member], "{name} {member}");
        }
        assert_eq!(outcome.body["status"], direct["status"]);
    }
}

#[tokio::test]
async fn a_failed_or_empty_run_is_taken_in_all_the_same() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let failed = value("synthetic_lil_bench_failed.json");
    let mut documents = vec![failed.clone()];
    for bench in [Value::Null, json!({})] {
        let mut crashed = failed.clone();
        crashed["results"]["bench"] = bench.clone();
        crashed["run_id"] = json!(format!("crashed {bench}"));
        documents.push(crashed);
    }
    let mut without = failed;
    without["results"].as_object_mut().unwrap().remove("bench");
    without["run_id"] = json!("without");
    documents.push(without);
    for document in &documents {
        let outcome = ann.tool.upload(document).await;
        assert_eq!((outcome.status, outcome.tries), (201, 1), "{outcome:?}");
        assert_eq!(run_of(&app, &outcome).await["status"], "needs_review");
        assert_eq!(ann.tool.upload(document).await.url(), outcome.url());
    }
}

#[tokio::test]
async fn an_upload_that_was_cut_off_is_resumed() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let request = ann.tool.upload_bytes(&wrapped());
    for part in [10, request.len() / 2, request.len() - 1, request.len()] {
        let mut stream = ann.tool.connect().await;
        stream.write_all(&request[..part]).await.unwrap();
        // The client is gone before it has an answer.
        drop(stream);
    }
    let first = ann.tool.call(request.clone()).await;
    assert!([200, 201].contains(&first.status), "{first:?}");
    let again = ann.tool.call(request).await;
    assert_eq!((again.status, again.url()), (200, first.url()));
    assert_eq!(runs_stored(&app).await, 1);
}

#[tokio::test]
async fn the_same_upload_many_times_at_once_is_one_run() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let (token, _) = make_token(&ann.person.http, &json!({ "name": "another" })).await;
    let other = LilBench::new(app.http.base_url(), &token);
    let document = wrapped();
    let tools = [&ann.tool, &other, &ann.tool, &other, &ann.tool, &other];
    let outcomes = futures::future::join_all(tools.iter().map(|tool| tool.upload(&document))).await;
    let urls: std::collections::BTreeSet<&str> = outcomes.iter().map(Outcome::url).collect();
    assert_eq!(urls.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| outcome.status == 201).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| outcome.status == 200).count(), 5, "{outcomes:?}");
    assert_eq!(runs_stored(&app).await, 1);
}

#[tokio::test]
async fn two_contents_of_one_run_id_at_once_are_one_run_and_a_conflict() {
    let app = TestApp::new().await;
    let (ann, bob) = (uploader(&app, "ann").await, uploader(&app, "bob").await);
    let mut other = wrapped();
    other["client"]["note"] = json!("another");
    let documents = [wrapped(), other, wrapped()];
    let calls = [(&ann, &documents[0]), (&ann, &documents[1]), (&bob, &documents[2])];
    let outcomes = futures::future::join_all(calls.map(|(who, document)| who.tool.upload(document))).await;
    let mut statuses: Vec<u16> = outcomes.iter().map(|outcome| outcome.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409], "{outcomes:?}");
    assert_eq!(runs_stored(&app).await, 1);
}

#[tokio::test]
async fn an_id_belongs_to_one_account_and_one_content() {
    let app = TestApp::new().await;
    let (ann, bob) = (uploader(&app, "ann").await, uploader(&app, "bob").await);
    let first = ann.tool.upload(&wrapped()).await;
    let foreign = bob.tool.upload(&wrapped()).await;
    assert_eq!((foreign.status, foreign.tries), (409, 1));
    assert!(foreign.error().contains("another account") && !foreign.body.to_string().contains("ann"), "{foreign:?}");
    let mut changed = wrapped();
    changed["results"]["bench"]["metadata"]["model"] = json!("another");
    let other = ann.tool.upload(&changed).await;
    assert_eq!((other.status, other.error()), (409, "This run was uploaded before with other content."));

    // A plain file is its own id.
    let plain = value("v04_queued.json");
    let own = ann.tool.upload(&plain).await;
    assert_eq!(own.status, 201);
    assert_eq!(bob.tool.upload(&plain).await.status, 409);
    // A `run_id` in a plain file is a member like any other.
    let mut named = plain.clone();
    named["run_id"] = wrapped()["run_id"].clone();
    let outcome = ann.tool.upload(&named).await;
    assert_eq!(outcome.status, 201);
    assert!(outcome.url() != first.url() && outcome.url() != own.url());
    assert_eq!(runs_stored(&app).await, 3);
}

#[tokio::test]
async fn who_has_no_good_token_is_told_so_before_measuring() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let soon = chrono::Utc::now() + chrono::TimeDelta::hours(1);
    let (expiring, _) = make_token(&ann.person.http, &json!({ "name": "short", "expires_at": soon })).await;
    let expiring = LilBench::new(app.http.base_url(), &expiring);
    assert_eq!(expiring.whoami().await.status, 200);
    assert_eq!(ann.tool.whoami().await.status, 200);
    ann.person.http.delete(&format!("/api/v1/upload-tokens/{}", ann.token_id)).expect(204).await;
    let key = ann.person.http.post("/api/v1/api-keys").json(&json!({ "name": "k", "scopes": ["runs:write"] })).expect(201).await;
    let form = json!({ "email": "ann@example.org", "password": "correct horse battery" });
    let session = app.http.post("/api/v1/auth/login").json(&form).expect(200).await;
    let with = |token: &str| LilBench::new(app.http.base_url(), token);
    let mut tools = vec![("revoked", ann.tool.clone())];
    tools.push(("no token", with("")));
    tools.push(("made up", with("lilb_0123456789abcdefghijklmnopqrstuvwxyz")));
    tools.push(("nonsense", with("x")));
    tools.push(("an API key", with(key["key"].as_str().unwrap())));
    tools.push(("an access token", with(session["access_token"].as_str().unwrap())));
    app.shift_wall(3_601);
    tools.push(("expired", expiring));
    for (name, tool) in tools {
        for outcome in [tool.whoami().await, tool.upload(&wrapped()).await] {
            assert_eq!((outcome.status, outcome.tries), (401, 1), "{name}: {outcome:?}");
            assert!(outcome.error().contains("token"), "{name}: {outcome:?}");
        }
    }
    assert_eq!(runs_stored(&app).await, 0);
}

#[tokio::test]
async fn a_bound_token_binds_its_runs_to_the_machine() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let machine = machine(&ann.person, None).await;
    let form = json!({ "name": "garage", "machine_id": machine });
    let (token, _) = make_token(&ann.person.http, &form).await;
    let tool = LilBench::new(app.http.base_url(), &token);
    assert_eq!(tool.whoami().await.body, json!({ "login": "ann", "machine_id": machine }));
    let outcome = tool.upload(&wrapped()).await;
    let run = run_of(&app, &outcome).await;
    assert_eq!((&run["machine_id"], &run["evidence_level"]), (&json!(machine), &json!("document")), "{run}");
    // Its hardware stands for what the tool cannot say.
    assert_eq!(run["hardware"]["slug"], "rtx-3090", "{run}");

    ann.person.http.delete(&format!("/api/v1/machines/{machine}")).expect(204).await;
    for outcome in [tool.whoami().await, tool.upload(&value("v04_queued.json")).await, tool.upload(&wrapped()).await] {
        assert_eq!((outcome.status, outcome.tries), (403, 1), "{outcome:?}");
        assert!(outcome.error().contains("deleted"), "{outcome:?}");
    }
    assert_eq!(runs_stored(&app).await, 1);
}

#[tokio::test]
async fn hardware_of_another_kind_is_found_as_in_the_other_way_in() {
    let form = json!({ "name": "big", "hardware": { "gpu": "H100 SXM", "gpu_count": 8 } });
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = ann.http.post("/api/v1/machines").json(&form).expect(201).await;
    let body = json!({ "document": wrapped(), "machine_id": machine["id"] });
    let direct = ann.http.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    assert_eq!(direct["status"], "rejected", "a run of an RTX 3090 on a machine of H100s");

    // Elsewhere, where it is no copy.
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = ann.http.post("/api/v1/machines").json(&form).expect(201).await;
    let (token, _) = make_token(&ann.http, &json!({ "name": "big", "machine_id": machine["id"] })).await;
    let outcome = LilBench::new(app.http.base_url(), &token).upload(&wrapped()).await;
    assert_eq!((outcome.status, outcome.tries, &outcome.body["status"]), (201, 1, &json!("rejected")), "rejected is no fault: {outcome:?}");
    let run = run_of(&app, &outcome).await;
    assert_eq!((&run["status"], &run["checks"]), (&direct["status"], &direct["checks"]));
}

#[tokio::test]
async fn every_refusal_is_one_that_the_tool_can_read() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    let tool = &ann.tool;
    let json_post = |body: &[u8]| tool.post("application/json", None, body);
    let good = gzip(wrapped().to_string().as_bytes());
    let mut broken = good.clone();
    broken[good.len() / 2] ^= 0xff;
    let bomb = gzip(&vec![b' '; 65_000_000]);
    let too_long = tool.head("POST", "/api/bench/runs", &[("Content-type", "application/json"), ("Content-length", "64000001")]);
    let long_packed = [("Content-type", "application/json"), ("Content-encoding", "gzip"), ("Content-length", "16000001")];
    let mut ids = wrapped();
    ids["run_id"] = json!(7);
    let cases: Vec<(&str, u16, Vec<u8>)> = vec![
        ("a path that is not there", 404, tool.head("GET", "/api/bench/nothing", &[])),
        ("the folder", 404, tool.head("GET", "/api/bench", &[])),
        ("a method", 405, tool.head("GET", "/api/bench/runs", &[])),
        ("a method", 405, tool.head("POST", "/api/bench/whoami", &[("Content-length", "0")])),
        ("a query", 422, tool.head("GET", "/api/bench/whoami?x=1", &[])),
        ("a type", 415, tool.post("text/plain", None, b"{}")),
        ("an encoding", 415, tool.post("application/json", Some("zstd"), &good)),
        ("a declared length", 413, too_long),
        ("a declared packed length", 413, tool.head("POST", "/api/bench/runs", &long_packed)),
        ("a bomb", 413, tool.post("application/json", Some("gzip"), &bomb)),
        ("broken gzip", 400, tool.post("application/json", Some("gzip"), &broken)),
        ("half of a gzip", 400, tool.post("application/json", Some("gzip"), &good[..good.len() / 2])),
        ("no gzip", 400, tool.post("application/json", Some("gzip"), b"{}")),
        ("gzip in disguise, broken", 422, json_post(&broken)),
        ("nothing", 422, json_post(b"")),
        ("no JSON", 422, json_post(b"<html>")),
        ("half of a document", 422, json_post(&bytes("v04_queued.json")[..20_000])),
        ("no text", 422, json_post(&[0xff, 0xfe, 0x00])),
        ("a list", 422, json_post(b"[]")),
        ("a number", 422, json_post(b"1")),
        ("another object", 422, json_post(b"{}")),
        ("a key twice", 422, json_post(br#"{"metadata": {}, "metadata": {}}"#)),
        ("too deep", 422, json_post("[".repeat(100_000).as_bytes())),
        ("another schema", 422, json_post(br#"{"schema": "other/1", "results": {}}"#)),
        ("a run_id that is no text", 422, json_post(ids.to_string().as_bytes())),
        ("the envelope of the other way in", 422, json_post(json!({ "document": wrapped() }).to_string().as_bytes())),
    ];
    for (name, status, request) in cases {
        let outcome = tool.call(request).await;
        assert_eq!((outcome.status, outcome.tries), (status, 1), "{name}: {outcome:?}");
        assert!(!outcome.error().is_empty() && outcome.error().len() < 1_000, "{name}: {outcome:?}");
        assert!(outcome.body["request_id"].is_string() && outcome.body["code"].is_string(), "{name}: {outcome:?}");
    }
    // Also for a client that would unpack: nothing is packed.
    let mut head = String::from_utf8(tool.head("GET", "/api/bench/whoami", &[])).unwrap();
    head = head.replace("identity", "gzip, br");
    for request in [head.clone(), head.replace("lilb_", "lilb_x")] {
        let wire = tool.once(request.as_bytes()).await.unwrap();
        assert!(!wire.head.contains("content-encoding"), "{}", wire.head);
    }
    assert_eq!(runs_stored(&app).await, 0);
}

#[tokio::test]
async fn faults_of_the_service_are_objects_and_are_tried_again() {
    let app = TestApp::new().await;
    let ann = uploader(&app, "ann").await;
    hosts::execute(&app, "ALTER TABLE run_documents RENAME TO hidden").await;
    let broken = ann.tool.upload(&wrapped()).await;
    assert_eq!((broken.status, broken.tries, &broken.body["code"]), (500, 3, &json!("internal")));
    assert!(!broken.error().contains("run_documents"), "{broken:?}");
    hosts::execute(&app, "ALTER TABLE hidden RENAME TO run_documents").await;
    let mended = ann.tool.upload(&wrapped()).await;
    assert_eq!(mended.status, 201, "what failed left nothing behind: {mended:?}");

    let account = account_id(&app, &ann.person).await.to_string();
    while app.ctx().limits.take(rate_limit::UPLOADS, &account).await.allowed {}
    let limited = ann.tool.upload(&wrapped()).await;
    assert_eq!((limited.status, limited.tries, &limited.body["code"]), (429, 3, &json!("rate_limited")));
    assert!(limited.error().contains("uploads"), "{limited:?}");
    // One limit for both ways in.
    ann.person.http.post("/api/v1/matrix-runs").json(&json!({ "document": wrapped() })).expect_problem(429, "rate_limited").await;
    assert_eq!(ann.tool.whoami().await.status, 200);
}

#[tokio::test]
async fn no_log_has_a_token() {
    let folder = TempDir::new();
    let program = Program::serve(folder.path(), &["--log", "trace"]);
    let http = Http::new(&program.base_url);
    let form = json!({ "email": "ann@example.org", "password": "correct horse battery", "handle": "ann" });
    let session = http.post("/api/v1/auth/register").json(&form).expect(201).await;
    let (token, _) = make_token(&http.with_bearer(session["access_token"].as_str().unwrap()), &json!({ "name": "bench" })).await;
    let tool = LilBench::new(&program.base_url, &token);
    assert_eq!(tool.whoami().await.status, 200);
    assert_eq!(tool.upload(&json!({ "not": "a document" })).await.status, 422);
    assert_eq!(tool.upload(&wrapped()).await.status, 201);
    let log = || std::fs::read_to_string(folder.path().join("test-stderr.log")).unwrap();
    wait_for("the upload in the log", std::time::Duration::from_secs(10), async || log().matches("/api/bench/runs").count() >= 2).await;
    let log = log();
    let secret = token.strip_prefix("lilb_").unwrap();
    assert!(!log.contains(secret) && !log.contains(&secret.to_uppercase()), "a token stands in the log");
}

/// A public document shows its `run_id`; whoever has read it cannot take it before the uploader uses the tool.
#[tokio::test]
async fn the_run_id_of_a_run_that_came_otherwise_is_taken() {
    let app = TestApp::new().await;
    let (ann, bob) = (uploader(&app, "ann").await, uploader(&app, "bob").await);
    ann.person.http.post("/api/v1/matrix-runs").json(&json!({ "document": wrapped() })).expect(201).await;
    let mut stolen = wrapped();
    stolen["client"] = json!({ "note": "mine" });
    let thief = bob.tool.upload(&stolen).await;
    assert_eq!(thief.status, 409, "{thief:?}");
    let honest = ann.tool.upload(&wrapped()).await;
    assert_eq!(honest.status, 200, "{honest:?}");
    assert_eq!(runs_stored(&app).await, 1);
}

/// An id that somebody took otherwise, as before it was taken with every upload: the account whose run had it first keeps it.
#[tokio::test]
async fn an_id_is_the_account_s_whose_run_had_it_first() {
    let app = TestApp::new().await;
    let (ann, bob) = (uploader(&app, "ann").await, uploader(&app, "bob").await);
    let first = ann.person.http.post("/api/v1/matrix-runs").json(&json!({ "document": wrapped() })).expect(201).await;
    hosts::execute(&app, "DELETE FROM tool_uploads").await;
    let mut stolen = wrapped();
    stolen["client"] = json!({ "note": "mine" });
    let thief = bob.tool.upload(&stolen).await;
    assert_eq!(thief.status, 409, "{thief:?}");
    // The other way in stores it, as a copy; the id is then held by the thief, and the honest upload still finds its run.
    let copy = bob.person.http.post("/api/v1/matrix-runs").json(&json!({ "document": stolen })).expect(201).await;
    let codes: Vec<&str> = copy["checks"].as_array().unwrap().iter().filter_map(|check| check["code"].as_str()).collect();
    assert!(copy["status"] == "needs_review" && codes.contains(&"run_replayed"), "{copy}");
    let honest = ann.tool.upload(&wrapped()).await;
    assert_eq!((honest.status, &honest.body["id"]), (200, &first["id"]), "{honest:?}");
    assert_eq!(bob.tool.upload(&wrapped()).await.status, 409);
}

/// Who has to say who they are hears that first, whatever else is wrong with the request.
#[tokio::test]
async fn a_stranger_hears_first_that_a_token_is_missing() {
    let app = TestApp::new().await;
    for (path, http) in [("/api/bench/runs?x=1", &app.http), ("/api/v1/matrix-runs?x=1", &app.http)] {
        assert_eq!(http.post(path).json(&json!({})).answer().await.status, 401, "{path}");
    }
    let ann = uploader(&app, "ann").await;
    ann.person.http.post("/api/v1/matrix-runs?x=1").json(&json!({})).expect_problem(422, "invalid_input").await;
    app.http.post("/api/v1/auth/login?x=1").json(&json!({})).expect_problem(422, "invalid_input").await;
}

/// Where the tool sends people for a token.
#[tokio::test]
async fn the_tools_address_for_people_says_how_to_make_a_token() {
    let app = TestApp::new().await;
    let answer = app.http.get("/bench/token").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("location").as_deref()), (302, Some("/en/upload-tokens")));
    let page = app.http.get("/en/upload-tokens").answer().await;
    assert!(page.status == 200 && page.body.contains("/api/v1/upload-tokens") && page.body.contains("LIL_BENCH_SITE="), "{}", page.body);
}

/// What is said to be the most is what is refused, whoever reads the document.
#[tokio::test]
async fn one_pair_of_limits_holds_for_every_way_in() {
    use rigmark::benchmarks::document::{PACKED_BYTES_MAX, UNPACKED_BYTES_MAX};
    use rigmark::web::body;
    let app = TestApp::new().await;
    let stated = app.http.get("/api/v1/benchmarks").expect(200).await["documents"].clone();
    assert_eq!((&stated["packed_bytes_max"], &stated["unpacked_bytes_max"]), (&json!(PACKED_BYTES_MAX), &json!(UNPACKED_BYTES_MAX)));
    assert_eq!((PACKED_BYTES_MAX, UNPACKED_BYTES_MAX), (body::PACKED_BYTES_MAX, body::RUN_BYTES_MAX));
}
