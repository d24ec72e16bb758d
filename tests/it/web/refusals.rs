//! What is refused, and as what: kinds of faults that generated requests have found (`make fuzz-api`), held for every operation.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{TestApp, hosts, http::Http};

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"];

fn paths() -> Map<String, Value> {
    rigmark::openapi::document()["paths"].as_object().cloned().unwrap()
}

fn concrete(path: &str) -> String {
    path.replace("{id}", "lst_01h455vb4pex5vsknk084sn02q")
        .replace("{handle}", "nobody")
        .replace("{member}", "nobody")
        .replace("{slug}", "x")
}

#[actix_web::test]
async fn a_method_that_a_path_does_not_take_is_405_whatever_the_query_says() {
    let app = TestApp::new().await;
    for (path, item) in paths().iter().filter(|(path, _)| path.starts_with("/api/v1/")) {
        let mut taken: Vec<String> = item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if taken.contains(&"GET".to_owned()) {
            taken.push("HEAD".to_owned());
        }
        for method in METHODS.iter().filter(|method| !taken.contains(&(**method).to_owned())) {
            let address = format!("{}?no_such=1", concrete(path));
            let answer = app.http.request(Method::from_bytes(method.as_bytes()).unwrap(), &address).answer().await;
            let allow = answer.header("allow").unwrap_or_default();
            let allowed: Vec<&str> = allow.split(", ").collect();
            assert_eq!(answer.status.as_u16(), 405, "{method} {address}: {}", answer.body);
            assert!(
                allowed.len() >= taken.len() && taken.iter().all(|method| allowed.contains(&method.as_str())),
                "{method} {path}: {allow}"
            );
        }
    }
    // A method that is taken still refuses parameters that it does not know.
    app.http.post("/api/v1/auth/login?no_such=1").json(&json!({})).expect_problem(422, "invalid_input").await;
}

/// Whether `null` is one of the values that the document has for a member.
fn takes_null(member: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let choices = member["oneOf"].as_array().into_iter().flatten();
    member["type"].as_array().is_some_and(|kinds| kinds.iter().any(is_null)) || choices.into_iter().any(|choice| is_null(&choice["type"]))
}

#[actix_web::test]
async fn a_member_that_may_be_null_is_taken_as_null() {
    let app = TestApp::new().await;
    let person = hosts::person(&app, "ann").await;
    let document = rigmark::openapi::document();
    let mut tried = 0;
    for (path, item) in paths() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(reference) = operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str) else {
                continue;
            };
            let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
            // The benchmark tool's document is no form of ours.
            let Some(members) = schema["properties"].as_object() else { continue };
            let nullable = members.iter().filter(|(_, member)| takes_null(member)).map(|(name, _)| name);
            let mut body: Map<String, Value> = nullable.map(|name| (name.clone(), Value::Null)).collect();
            tried += body.len();
            if schema["properties"].get("document").is_some() {
                body.insert("document".to_owned(), json!({}));
            }
            let request = person.http.request(method.to_uppercase().parse().unwrap(), &concrete(&path));
            let answer = request.header("idempotency-key", &path).json(&Value::Object(body)).answer().await;
            assert!(
                answer.status.as_u16() < 500 && !answer.body.contains("\"wrong_type\""),
                "{method} {path}: {} {}",
                answer.status,
                answer.body
            );
        }
    }
    assert!(tried > 30, "only {tried} members may be null");
}

/// Whether a member is an object of the document's, maybe beside null.
fn is_object(document: &Value, member: &Value) -> bool {
    let mut choices = member["oneOf"].as_array().into_iter().flatten().chain([member]).filter_map(|choice| choice["$ref"].as_str());
    choices.any(|reference| document.pointer(reference.trim_start_matches('#')).is_some_and(|schema| schema["type"] == "object"))
}

/// serde takes an array for a struct, field by field.
#[actix_web::test]
async fn an_object_inside_a_body_is_no_array() {
    let app = TestApp::new().await;
    let person = hosts::person(&app, "ann").await;
    let machine: rigmark::base::id::MachineId = hosts::machine(&person, None).await;
    let document = rigmark::openapi::document();
    let mut tried = 0;
    for (path, item) in paths().iter().filter(|(path, _)| path.starts_with("/api/v1/")) {
        for (method, operation) in item.as_object().unwrap() {
            let Some(reference) = operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str) else {
                continue;
            };
            let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
            for (name, _) in schema["properties"].as_object().unwrap().iter().filter(|(_, member)| is_object(&document, member)) {
                for array in [json!([]), json!([null, null]), json!(["RTX 4090", 1, null, null, null, null, null, null, null])] {
                    let mut body = json!({ name: array });
                    if schema["properties"].get("document").is_some() {
                        body["document"] = json!({});
                    }
                    let request = person.http.request(method.to_uppercase().parse().unwrap(), &path.replace("{id}", &machine.to_string()));
                    let problem = request.json(&body).expect_problem(422, "invalid_input").await;
                    let pointers: Vec<_> =
                        problem["errors"].as_array().unwrap().iter().filter_map(|fault| fault["pointer"].as_str()).collect();
                    assert!(pointers.iter().any(|at| at.starts_with(&format!("/{name}"))), "{method} {path} {body}: {problem}");
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(
        tried,
        3 * 8,
        "hardware and endpoint of a machine, twice; hardware, model and engine of an upload; the query of a saved search"
    );
}

#[actix_web::test]
async fn what_trimming_would_take_away_is_checked_too() {
    let app = TestApp::new().await;
    let person = hosts::person(&app, "ann").await;
    let hardware = json!({"gpu": "RTX 4090", "gpu_count": 1});
    for name in ["\rattic", "attic\u{b}", &format!("{:81}", "attic"), " "] {
        let machine = json!({"name": name, "hardware": hardware});
        person.http.post("/api/v1/machines").json(&machine).expect_problem(422, "invalid_input").await;
        person.http.patch("/api/v1/me").json(&json!({"display_name": name})).expect_problem(422, "invalid_input").await;
    }
    let machine = person.http.post("/api/v1/machines").json(&json!({"name": " attic ", "hardware": hardware})).expect(201).await;
    assert_eq!(machine["name"], "attic");
    let cpu = json!({"name": "attic", "hardware": {"gpu": "RTX 4090", "gpu_count": 1, "cpu": "\rRyzen"}});
    person.http.post("/api/v1/machines").json(&cpu).expect_problem(422, "invalid_input").await;
    let listing = json!({"machine_id": machine["id"], "price_per_hour": "0.37", "description": "\u{b}Quiet."});
    person.http.post("/api/v1/listings").json(&listing).expect_problem(422, "invalid_input").await;
}

#[actix_web::test]
async fn a_machine_has_at_least_one_gpu_in_searches_too() {
    let app = TestApp::new().await;
    for list in ["matrix-runs", "listings"] {
        let problem = app.http.get(&format!("/api/v1/{list}?gpu_count=0")).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "?gpu_count", "{list}");
        app.http.get(&format!("/api/v1/{list}?gpu_count=1")).expect(200).await;
    }
}

#[actix_web::test]
async fn the_endpoint_says_what_is_left_to_whom_it_knows() {
    let app = TestApp::new().await;
    let person = hosts::person(&app, "ann").await;
    let answer = person.http.get("/v1/models").answer().await;
    assert_eq!(answer.status.as_u16(), 200);
    assert!(answer.header("ratelimit").is_some_and(|left| left.starts_with("\"api\";r=")), "{:?}", answer.header("ratelimit"));
    assert!(answer.header("ratelimit-policy").is_some());
    assert!(app.http.get("/v1/models").answer().await.header("ratelimit").is_none());
}

#[actix_web::test]
async fn the_simulated_engine_reads_null_as_left_out() {
    let engine = hosts::engine();
    let body = json!({"model": "org/model", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, "stream": null});
    let answer = Http::new(engine.url()).post("/v1/chat/completions").json(&body).answer().await;
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.body);
    engine.stop().await;
}
