//! What follows from the kind of an operation, added to all operations of the kind.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    parts::{header_references, problem_reference, reference},
    schemas::EXAMPLES,
};
use crate::web::problem;

const API: &str = "/api/";
/// Whose errors have shapes of their own.
const OWN_ERRORS: [&str; 2] = ["/v1/", "/api/bench/"];
const EVENT_STREAM: &str = "text/event-stream";

/// What is known of an operation by looking at it.
struct Kind {
    /// Behind the rate limits, ETags and strict parameters of `/api`.
    is_api: bool,
    /// Its errors are no problem details.
    has_own_errors: bool,
    is_read: bool,
    is_stream: bool,
    has_body: bool,
    has_cursor: bool,
    has_path_parameter: bool,
    has_idempotency_key: bool,
    /// Acts for a caller, or shows a caller more.
    knows_callers: bool,
    needs_caller: bool,
}

impl Kind {
    fn of(path: &str, method: &str, operation: &Map<String, Value>) -> Self {
        let has = |location: &str, name: &str| {
            let fits = |parameter: &Value| parameter["in"] == location && (name.is_empty() || parameter["name"] == name);
            operation.get("parameters").and_then(Value::as_array).is_some_and(|all| all.iter().any(fits))
        };
        let security = operation.get("security").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_empty = |requirement: &Value| requirement.as_object().is_some_and(Map::is_empty);
        let content = operation.get("responses").and_then(|responses| responses.pointer("/200/content"));
        Self {
            is_api: path.starts_with(API),
            has_own_errors: OWN_ERRORS.iter().any(|prefix| path.starts_with(prefix)),
            is_read: method == "get",
            is_stream: content.is_some_and(|content| content.get(EVENT_STREAM).is_some()) && path.starts_with(API),
            has_body: operation.contains_key("requestBody"),
            has_cursor: has("query", "cursor"),
            has_path_parameter: has("path", ""),
            has_idempotency_key: has("header", "Idempotency-Key"),
            knows_callers: !security.is_empty(),
            needs_caller: !security.is_empty() && !security.iter().any(is_empty),
        }
    }

    /// Statuses of the problems that any operation of the kind can end in.
    fn problems(&self) -> BTreeSet<u16> {
        let mut all = BTreeSet::from([500]);
        let mut add = |applies: bool, statuses: &[u16]| {
            if applies {
                all.extend(statuses);
            }
        };
        add(self.is_api, &[422, 429, 503]);
        add(self.has_cursor, &[400]);
        add(self.has_path_parameter, &[404]);
        add(self.has_body, &[400, 408, 413, 415, 422]);
        add(self.knows_callers, &[401, 404]);
        add(self.needs_caller, &[403]);
        add(self.has_idempotency_key, &[400, 409, 422]);
        all
    }

    fn has_tag(&self) -> bool {
        self.is_api && self.is_read && !self.is_stream
    }

    /// Headers of its good answers.
    fn headers(&self) -> Vec<&'static str> {
        let mut all = vec!["X-Request-Id"];
        if self.is_api || self.has_own_errors {
            all.extend(["RateLimit-Policy", "RateLimit"]);
        }
        if self.has_tag() {
            all.push("ETag");
        }
        if self.has_idempotency_key {
            all.push("Idempotency-Replayed");
        }
        all
    }
}

pub(super) fn complete(document: &mut Value) {
    let optional = bodies_without_required_members(document);
    let meanings = meanings(document);
    let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) else { return };
    for (path, item) in paths.iter_mut() {
        let Some(item) = item.as_object_mut() else { continue };
        for (method, operation) in item.iter_mut() {
            let Some(operation) = operation.as_object_mut() else { continue };
            let kind = Kind::of(path, method, operation);
            operation.entry("security").or_insert_with(|| json!([]));
            complete_parameters(operation, &kind);
            complete_body(operation, &optional);
            complete_responses(operation, &kind, &meanings);
        }
    }
}

/// Schemas of which `{}` is one, as references; an absent body is read as that.
fn bodies_without_required_members(document: &Value) -> BTreeSet<String> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let is_optional = |schema: &Value| schema["type"] == "object" && schema.get("required").is_none();
    let named = schemas.into_iter().flatten().filter(|(_, schema)| is_optional(schema));
    named.map(|(name, _)| format!("#/components/schemas/{name}")).collect()
}

/// What schemas mean, by their references.
fn meanings(document: &Value) -> BTreeMap<String, String> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let described = schemas.into_iter().flatten().filter_map(|(name, schema)| Some((name, schema.get("description")?.as_str()?)));
    described.map(|(name, text)| (format!("#/components/schemas/{name}"), text.to_owned())).collect()
}

/// Says what an answer is, unless its handler did: what its body's schema means.
fn describe(status: &str, response: &mut Value, meanings: &BTreeMap<String, String>) {
    if response["description"].as_str().is_some_and(|text| !text.is_empty()) {
        return;
    }
    let body = response.pointer("/content/application~1json/schema/$ref").and_then(Value::as_str);
    let text = match body.and_then(|body| meanings.get(body)) {
        Some(meaning) => meaning.as_str(),
        None if status == "204" => "Done.",
        None => "What was asked for.",
    };
    response["description"] = text.into();
}

fn complete_parameters(operation: &mut Map<String, Value>, kind: &Kind) {
    let mut all: Vec<Value> = operation.remove("parameters").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    for parameter in &mut all {
        match (parameter["in"].as_str(), parameter["name"].as_str()) {
            (Some("query"), Some("limit")) => *parameter = reference("parameters", "Limit"),
            (Some("query"), Some("cursor")) => *parameter = reference("parameters", "Cursor"),
            (Some("query"), _) => leave_out_null(&mut parameter["schema"]),
            _ => {}
        }
    }
    if kind.knows_callers {
        all.push(reference("parameters", "RigmarkAccount"));
    }
    if kind.has_tag() {
        all.push(reference("parameters", "IfNoneMatch"));
    }
    if !all.is_empty() {
        operation.insert("parameters".to_owned(), Value::Array(all));
    }
}

/// A query has no null: what is not given is left out.
fn leave_out_null(schema: &mut Value) {
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let left: Vec<&Value> = types.iter().filter(|kind| *kind != "null").collect();
        if let [one] = left.as_slice() {
            schema["type"] = (*one).clone();
        }
    }
    let choices = schema.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let left: Vec<Value> = choices.into_iter().filter(|choice| choice["type"] != "null").collect();
    if let [one] = left.as_slice() {
        *schema = one.clone();
    }
}

fn complete_body(operation: &mut Map<String, Value>, optional: &BTreeSet<String>) {
    let Some(body) = operation.get_mut("requestBody") else { return };
    let schema = body.pointer("/content/application~1json/schema/$ref").and_then(Value::as_str);
    if schema.is_some_and(|schema| optional.contains(schema)) {
        body["required"] = false.into();
    }
}

fn complete_responses(operation: &mut Map<String, Value>, kind: &Kind, meanings: &BTreeMap<String, String>) {
    let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    let mut problems = if kind.has_own_errors { BTreeSet::new() } else { kind.problems() };
    for (status, response) in responses.iter_mut() {
        let is_problem = response.pointer("/content").is_some_and(|content| content.get(problem::CONTENT_TYPE).is_some());
        if is_problem {
            problems.extend(status.parse::<u16>());
        } else if status == "default" {
            let headers = ["X-Request-Id", "RateLimit-Policy", "RateLimit", "Retry-After", "WWW-Authenticate"];
            response["headers"] = Value::Object(header_references(&headers));
            describe(status, response, meanings);
        } else {
            response["headers"] = Value::Object(header_references(&kind.headers()));
            describe(status, response, meanings);
            add_examples(response, &id);
        }
    }
    for status in problems {
        if let Some(answer) = problem_reference(status) {
            responses.insert(status.to_string(), answer);
        }
    }
    if kind.has_tag() {
        responses.insert("304".to_owned(), reference("responses", "NotModified"));
    }
}

/// Examples of bodies that no schema carries: texts, and JSON that may be anything.
fn add_examples(response: &mut Value, id: &str) {
    let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) else { return };
    for (media_type, body) in content.iter_mut() {
        if media_type == EVENT_STREAM
            && let Some(body) = body.as_object_mut()
        {
            // Not one text: what an event's data is stands in the description.
            body.remove("schema");
        }
        let key = format!("{id} {media_type}");
        if let Some(example) = EXAMPLES.get(&key) {
            body["example"] = example.clone();
        }
    }
}
