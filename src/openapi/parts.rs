//! What operations share by reference: headers, parameters, and one answer for each status of a problem.

use serde_json::{Map, Value, json};

use crate::web::problem;

/// Statuses of problems, the name of the shared answer, and what it means.
const PROBLEMS: [(u16, &str, &str); 15] = [
    (400, "BadRequest", "The request could not be read."),
    (401, "Unauthenticated", "No valid token or key, or the credentials in the body are not good."),
    (402, "PaymentRequired", "The available balance is too small; `required` and `available` say by how much."),
    (403, "Forbidden", "The key's scope or the caller's role does not allow this."),
    (404, "NotFound", "There is no such thing, or it is private."),
    (405, "MethodNotAllowed", "The path does not take this method; `Allow` lists those it takes."),
    (408, "RequestTimeout", "The body did not arrive in time."),
    (409, "Conflict", "The state of things does not allow this; `code` says why."),
    (413, "PayloadTooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The body is not JSON, or its encoding is not known."),
    (422, "InvalidInput", "The input is not valid; `errors` says where and why."),
    (429, "RateLimited", "Too many requests; `Retry-After` says when to try again."),
    (500, "Internal", "A fault of the service; the log has it under `request_id`."),
    (502, "BadGateway", "The machine's engine gave no usable answer."),
    (503, "Unavailable", "The service cannot answer right now."),
];

/// A reference to the shared answer for a problem of this status.
pub(super) fn problem_reference(status: u16) -> Option<Value> {
    let (_, name, _) = PROBLEMS.iter().find(|(known, ..)| *known == status)?;
    Some(reference("responses", name))
}

pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// References to these headers, as an answer lists them.
pub(super) fn header_references(names: &[&str]) -> Map<String, Value> {
    names.iter().map(|name| ((*name).to_owned(), reference("headers", name))).collect()
}

/// Puts the parts into the document's components.
pub(super) fn add(document: &mut Value) {
    let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) else { return };
    components.insert("headers".to_owned(), headers());
    components.insert("parameters".to_owned(), parameters());
    components.insert("responses".to_owned(), responses());
}

fn headers() -> Value {
    let text = |description: &str, pattern: &str, example: &str| json!({"description": description, "required": true, "schema": {"type": "string", "pattern": pattern}, "example": example});
    let optional = |mut header: Value| {
        header["required"] = false.into();
        header
    };
    json!({
        "X-Request-Id": text("Under this id the log knows the request.", "^[A-Za-z0-9._-]{1,128}$", "req_01m8p0dance1bsnzjb3zamypxn"),
        "RateLimit-Policy": optional(text("What is counted: name, quota `q` and window `w` in seconds; on every answer under `/api`.",
            "^\"[a-z_]+\";q=[0-9]+;w=[0-9]+(?:, \"[a-z_]+\";q=[0-9]+;w=[0-9]+)*$", "\"api\";q=6000;w=60")),
        "RateLimit": optional(text("What is left: name, requests `r` and seconds `t` until the quota is whole; on every answer under `/api`.",
            "^\"[a-z_]+\";r=[0-9]+;t=[0-9]+(?:, \"[a-z_]+\";r=[0-9]+;t=[0-9]+)*$", "\"api\";r=5999;t=1")),
        "ETag": text("Tag of exactly this answer, for `If-None-Match`.", "^(?:W/)?\"[^\"]+\"$", "\"Yzk0N2QxZjQ1YzBhN2I2\""),
        "Retry-After": optional(json!({"description": "Seconds to wait before trying again.", "schema": {"type": "integer", "minimum": 0}, "example": 2})),
        "WWW-Authenticate": optional(text("How to authenticate.", "^Bearer ", "Bearer realm=\"rigmark\"")),
        "Allow": text("The methods that the path takes.", "^[A-Z]+(?:, [A-Z]+)*$", "GET, HEAD"),
        "Idempotency-Replayed": optional(text("`true` when this is the stored answer of an earlier request.", "^true$", "true")),
    })
}

fn parameters() -> Value {
    json!({
        "Limit": {"name": "limit", "in": "query", "required": false, "description": "How many rows a page has.",
            "schema": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 100, "default": 20}},
        "Cursor": {"name": "cursor", "in": "query", "required": false, "description": "`next_cursor` of the page before, with the same other parameters.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 4096}},
        "RigmarkAccount": {"name": "Rigmark-Account", "in": "header", "required": false,
            "description": "Handle of the organization that the call acts for; the caller's own account without it.",
            "schema": {"type": "string"}},
        "IfNoneMatch": {"name": "If-None-Match", "in": "header", "required": false,
            "description": "`ETag` of an earlier answer; 304 when this one would be the same.",
            "schema": {"type": "string"}},
    })
}

fn responses() -> Value {
    let mut all: Map<String, Value> = PROBLEMS.iter().map(|(status, name, text)| ((*name).to_owned(), response(*status, text))).collect();
    let headers = header_references(&["ETag", "X-Request-Id", "RateLimit-Policy", "RateLimit"]);
    all.insert("NotModified".to_owned(), json!({"description": "The answer is what the client has.", "headers": headers}));
    Value::Object(all)
}

/// The answer for problems of one status: which codes there are, an example, and the headers that come with it.
fn response(status: u16, text: &str) -> Value {
    let kinds: Vec<_> = problem::problems().into_iter().filter(|kind| kind.status == status).collect();
    let codes: Vec<String> = kinds.iter().map(|kind| format!("- `{}`: {}", kind.code, kind.title)).collect();
    let mut headers = header_references(&["X-Request-Id", "RateLimit-Policy", "RateLimit"]);
    let more: &[&str] = match status {
        401 | 403 => &["WWW-Authenticate"],
        405 => &["Allow"],
        409 | 429 | 502 | 503 => &["Retry-After"],
        _ => &[],
    };
    headers.extend(header_references(more));
    let example = kinds.first().map(|kind| {
        let mut example = json!({
            "type": kind.kind, "title": kind.title, "status": status, "detail": kind.title, "code": kind.code,
            "request_id": "req_01m8p0dance1bsnzjb3zamypxn",
        });
        if status == 422 {
            example["errors"] = json!([{"pointer": "/gpu_count", "code": "out_of_range", "detail": "A machine has 1 to 64 GPUs."}]);
        }
        example
    });
    json!({
        "description": format!("{text}\n\n{}", codes.join("\n")),
        "headers": headers,
        "content": {problem::CONTENT_TYPE: {"schema": reference("schemas", "ProblemBody"), "example": example}},
    })
}
