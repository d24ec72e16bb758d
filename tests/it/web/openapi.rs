//! The OpenAPI document holds together and is complete; what it says of bodies is true of its examples.

use std::collections::{BTreeMap, BTreeSet};

use rigmark::base::Code;
use serde_json::{Map, Value, json};

use super::conforms::conforms;
use crate::support::{TestApp, hosts};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// One operation, with what it refers to in place.
struct Operation {
    id: String,
    path: String,
    method: String,
    value: Value,
}

impl Operation {
    fn is_api(&self) -> bool {
        self.path.starts_with("/api/v1/")
    }
    fn is_endpoint(&self) -> bool {
        self.path.starts_with("/v1/")
    }
    /// The benchmark tool's, whose errors are its own.
    fn is_tool(&self) -> bool {
        self.path.starts_with("/api/bench/")
    }
    fn parameters(&self) -> &[Value] {
        self.value["parameters"].as_array().map(Vec::as_slice).unwrap_or_default()
    }
    fn responses(&self) -> &Map<String, Value> {
        self.value["responses"].as_object().unwrap()
    }
}

fn document() -> Value {
    rigmark::openapi::document()
}

/// What `value` is, when it refers to something.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference} leads nowhere")),
        None => value,
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(METHODS.contains(&method.as_str()), "{path} {method}");
            let mut value = operation.clone();
            for parameter in value["parameters"].as_array_mut().into_iter().flatten() {
                *parameter = resolve(document, parameter).clone();
            }
            for response in value["responses"].as_object_mut().unwrap().values_mut() {
                *response = resolve(document, response).clone();
            }
            let id = value["operationId"].as_str().unwrap_or_default().to_owned();
            all.push(Operation { id, path: path.clone(), method: method.clone(), value });
        }
    }
    assert!(all.len() > 60, "only {} operations", all.len());
    all
}

/// Every fault that `look` finds in an operation, so that one run shows all.
fn check(look: impl Fn(&Value, &Operation, &mut Vec<String>)) {
    let document = document();
    let mut faults = Vec::new();
    for operation in operations(&document) {
        let mut found = Vec::new();
        look(&document, &operation, &mut found);
        faults.extend(found.into_iter().map(|fault| format!("{} {}: {fault}", operation.method, operation.path)));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn has_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

#[test]
fn every_reference_in_the_document_leads_somewhere_and_every_part_is_used() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    found.insert(reference.clone());
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.contains("#/components/schemas/ProblemBody"), "{found:?}");
    let broken: Vec<_> = found.iter().filter(|reference| document.pointer(reference.trim_start_matches('#')).is_none()).collect();
    assert!(broken.is_empty(), "{broken:?}");
    for kind in ["headers", "parameters"] {
        let parts = document["components"][kind].as_object().unwrap();
        let unused: Vec<_> = parts.keys().filter(|name| !found.contains(&format!("#/components/{kind}/{name}"))).collect();
        assert!(unused.iter().all(|name| *name == "Allow"), "{kind} that nothing refers to: {unused:?}");
    }
}

#[test]
fn the_document_says_what_the_api_is() {
    let document = document();
    let info = &document["info"];
    for chapter in ["Conventions", "Authentication", "Errors", "Idempotency", "Lists", "Caching", "Rate limits", "Request ids"] {
        assert!(info["description"].as_str().unwrap().contains(&format!("## {chapter}\n")), "{chapter}");
    }
    assert_eq!((&info["version"], &info["license"]["identifier"]), (&json!(env!("CARGO_PKG_VERSION")), &json!("MIT OR Apache-2.0")));
    assert!(has_text(&document["components"]["securitySchemes"]["bearer"]["description"]));
    for tag in document["tags"].as_array().unwrap() {
        assert!(has_text(&tag["description"]), "{tag}");
    }
    // Doc comments for readers of the source must not come through.
    let text = document.to_string();
    for foreign in [".md ", ".md)", "[`", "::"] {
        let near = text.find(foreign).map(|at| &text[text.floor_char_boundary(at.saturating_sub(80))..text.ceil_char_boundary(at + 20)]);
        assert!(near.is_none(), "the document speaks of the source: {near:?}");
    }
}

#[test]
fn every_operation_is_described() {
    let document = document();
    let tags: BTreeSet<&str> = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        assert!(!operation.id.is_empty() && ids.insert(operation.id.clone()), "{} {}: an id of its own", operation.method, operation.path);
    }
    check(|document, operation, faults| {
        let summary = operation.value["summary"].as_str().unwrap_or_default();
        if summary.is_empty() || summary.ends_with('.') || summary.len() > 60 {
            faults.push(format!("its summary is no heading: {summary:?}"));
        }
        let own: Vec<_> = operation.value["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if own.len() != 1 || !own.iter().all(|tag| tags.contains(tag)) {
            faults.push(format!("tags {own:?}"));
        }
        let schemes = &document["components"]["securitySchemes"];
        let named = |requirement: &Value| requirement.as_object().unwrap().keys().all(|scheme| schemes.get(scheme).is_some());
        if !operation.value["security"].as_array().is_some_and(|all| all.iter().all(named)) {
            faults.push("its security is not said".to_owned());
        }
        for parameter in operation.parameters() {
            let name = &parameter["name"];
            if !has_text(&parameter["description"]) {
                faults.push(format!("parameter {name} has no description"));
            }
            let pattern = resolve(document, &parameter["schema"])["pattern"].as_str().unwrap_or_default();
            // Ids of ours, and the one kind of Stripe's that stands in paths.
            if name == "id" && !pattern.ends_with("_[0-7][0-9a-hjkmnp-tv-z]{25}$") && pattern != "^pm_[A-Za-z0-9_]+$" {
                faults.push(format!("parameter {name} has the pattern {pattern:?}"));
            }
        }
    });
}

/// `(where, media type, body)` of a request's or an answer's content.
fn bodies<'a>(place: &str, content: &'a Value) -> Vec<(String, &'a Value)> {
    content.as_object().into_iter().flatten().map(|(media_type, body)| (format!("{place} {media_type}"), body)).collect()
}

#[test]
fn every_body_has_an_example_that_is_true_to_its_schema() {
    check(|document, operation, faults| {
        let mut all = bodies("request", &operation.value["requestBody"]["content"]);
        for (status, response) in operation.responses() {
            all.extend(bodies(status, &response["content"]));
        }
        for (place, body) in all {
            let schema = resolve(document, &body["schema"]);
            let example = body.get("example").or_else(|| schema.pointer("/examples/0"));
            match example {
                None => faults.push(format!("{place} has no example")),
                Some(example) => {
                    faults.extend(conforms(document, &body["schema"], example).into_iter().map(|fault| format!("{place}: {fault}")));
                }
            }
        }
    });
}

#[test]
fn every_problem_is_documented_by_its_status() {
    check(|document, operation, faults| {
        for (status, response) in operation.responses() {
            let content = response["content"].as_object().cloned().unwrap_or_default();
            let is_error = status == "default" || status.as_bytes()[0] >= b'4';
            let (media_type, schema) = match (operation.is_endpoint(), operation.is_tool()) {
                (true, _) => ("application/json", "#/components/schemas/OpenAiError"),
                (_, true) => ("application/json", "#/components/schemas/BenchError"),
                _ => ("application/problem+json", "#/components/schemas/ProblemBody"),
            };
            let is_ours = content.len() == 1 && content.get(media_type).is_some_and(|body| body["schema"]["$ref"] == schema);
            if is_error != is_ours {
                faults.push(format!("{status} has the content {content:?}"));
            }
            let headers = response["headers"].as_object().cloned().unwrap_or_default();
            let wanted = match status.as_str() {
                "401" | "403" => "WWW-Authenticate",
                "429" | "503" => "Retry-After",
                _ => "X-Request-Id",
            };
            let described = headers.values().all(|header| has_text(&resolve(document, header)["description"]));
            if !described || !headers.contains_key("X-Request-Id") || !headers.contains_key(wanted) {
                faults.push(format!("{status} has the headers {:?}", headers.keys()));
            }
            if !has_text(&response["description"]) {
                faults.push(format!("{status} has no description"));
            }
        }
        let needs = |statuses: &[&str]| statuses.iter().filter(|status| !operation.responses().contains_key(**status)).count();
        let lacks = [
            (operation.is_api(), needs(&["422", "429", "500", "503"])),
            (operation.is_api() && operation.value.get("requestBody").is_some(), needs(&["400", "408", "413", "415"])),
            (operation.is_api() && operation.value["security"] == json!([{"bearer": []}]), needs(&["401", "403"])),
            (operation.is_api() && operation.path.contains('{'), needs(&["404"])),
        ];
        if lacks.iter().any(|(applies, missing)| *applies && *missing > 0) {
            faults.push(format!("it lacks answers: {:?}", operation.responses().keys()));
        }
    });
    let document = document();
    let listed: Vec<&str> =
        document["components"]["schemas"]["ProblemCode"]["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(listed, Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
    let answers = document["components"]["responses"].to_string();
    let unexplained: Vec<_> = listed.iter().filter(|code| !answers.contains(&format!("`{code}`"))).collect();
    assert!(unexplained.is_empty(), "{unexplained:?}");
}

#[test]
fn reads_have_tags_and_api_answers_say_what_is_left() {
    check(|_, operation, faults| {
        for (status, response) in operation.responses().iter().filter(|(status, _)| status.starts_with('2')) {
            let has = |name: &str| response["headers"].get(name).is_some();
            let is_stream = response["content"].get("text/event-stream").is_some();
            if (operation.is_api() || operation.is_endpoint()) && !(has("RateLimit") && has("RateLimit-Policy")) {
                faults.push(format!("{status} does not say what is left"));
            }
            let wants_tag = (operation.is_api() || operation.is_tool()) && operation.method == "get" && !is_stream;
            if has("ETag") != wants_tag || operation.responses().contains_key("304") != wants_tag {
                faults.push(format!("{status} and its tag"));
            }
        }
    });
}

#[test]
fn numbers_in_requests_have_bounds() {
    fn look(document: &Value, schema: &Value, place: &str, faults: &mut Vec<String>) {
        let schema = resolve(document, schema);
        let is = |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|all| all.contains(&json!(kind)));
        let bounded = |names: [&str; 2]| names.iter().any(|name| schema.get(name).is_some());
        // A bound above is not needed where more than there is finds nothing.
        if (is("integer") || is("number")) && !bounded(["minimum", "exclusiveMinimum"]) {
            faults.push(format!("{place} has no bounds"));
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            look(document, member, &format!("{place}/{name}"), faults);
        }
        for choice in ["oneOf", "anyOf", "allOf"].iter().flat_map(|name| schema[*name].as_array().into_iter().flatten()) {
            look(document, choice, place, faults);
        }
    }
    check(|document, operation, faults| {
        for parameter in operation.parameters() {
            look(document, &parameter["schema"], &format!("?{}", parameter["name"].as_str().unwrap()), faults);
        }
        let body = &operation.value["requestBody"]["content"]["application/json"]["schema"];
        if operation.is_api() && !body.is_null() {
            look(document, body, "", faults);
        }
    });
}

/// chrono reads years of six digits, which no answer could repeat in RFC 3339.
#[actix_web::test]
async fn no_instant_in_a_body_lies_beyond_the_years_of_rfc_3339() {
    let app = TestApp::new().await;
    let person = hosts::person(&app, "ann").await;
    let document = document();
    let mut tried = BTreeMap::new();
    for operation in operations(&document) {
        let schema = resolve(&document, &operation.value["requestBody"]["content"]["application/json"]["schema"]).clone();
        let members = schema["properties"].as_object().cloned().unwrap_or_default();
        for name in members.iter().filter(|(_, member)| member["format"] == "date-time").map(|(name, _)| name) {
            for instant in ["+12345-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "-0001-01-01T00:00:00Z"] {
                let path = operation.path.replace("{id}", "lst_01h455vb4pex5vsknk084sn02q").replace("/rentals/lst_", "/rentals/rnt_");
                let request = person.http.request(operation.method.to_uppercase().parse().unwrap(), &path);
                let problem =
                    request.header("idempotency-key", instant).json(&json!({ name: instant })).expect_problem(422, "invalid_input").await;
                assert_eq!(problem["errors"][0]["pointer"], format!("/{name}"), "{path} {instant}: {problem}");
                *tried.entry(operation.id.clone()).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(
        tried.keys().collect::<Vec<_>>(),
        ["api_key_create", "listing_create", "listing_update", "rental_create", "rental_extend", "upload_token_create"]
    );
}
