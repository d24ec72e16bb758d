//! No text from outside hides a character: every free text of every request is refused or cleaned, and a new one has to be named here.

use std::collections::BTreeSet;

use rigmark::base::text;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::hosts::{Person, draft, machine, person};

/// Turns direction, isolates, marks, joins nothing, tags, is a control character.
const HIDDEN: [char; 9] = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{feff}', '\u{ad}', '\u{e0041}', '\u{7}'];

/// Refused with 422, a pointer and `characters`: `METHOD path pointer`.
const REFUSED: [&str; 47] = [
    "PATCH /api/v1/listings/{id} /description",
    "PATCH /api/v1/machines/{id} /hardware/cpu",
    "PATCH /api/v1/machines/{id} /hardware/driver",
    "PATCH /api/v1/machines/{id} /hardware/os",
    "PATCH /api/v1/machines/{id} /name",
    "PATCH /api/v1/me /display_name",
    "PATCH /api/v1/organizations/{handle} /display_name",
    "PATCH /api/v1/webhook-endpoints/{id} /description",
    "POST /api/v1/api-keys /name",
    "POST /api/v1/auth/register /display_name",
    "POST /api/v1/listings /description",
    "POST /api/v1/machines /hardware/cpu",
    "POST /api/v1/machines /hardware/driver",
    "POST /api/v1/machines /hardware/os",
    "POST /api/v1/machines /name",
    "POST /api/v1/machines/{id}/challenges /model",
    "POST /api/v1/machines/{id}/challenges /quantization",
    "POST /api/v1/matrix-runs /engine/backend",
    "POST /api/v1/matrix-runs /engine/build",
    "POST /api/v1/matrix-runs /engine/name",
    "POST /api/v1/matrix-runs /engine/version",
    "POST /api/v1/matrix-runs /hardware/cpu",
    "POST /api/v1/matrix-runs /hardware/driver",
    "POST /api/v1/matrix-runs /hardware/gpu",
    "POST /api/v1/matrix-runs /hardware/kind",
    "POST /api/v1/matrix-runs /hardware/os",
    "POST /api/v1/matrix-runs /launch_command",
    "POST /api/v1/matrix-runs /model/hf_id",
    "POST /api/v1/matrix-runs /model/quantization",
    "POST /api/v1/matrix-runs /model/revision",
    "POST /api/v1/matrix-runs /notes",
    "POST /api/v1/organizations /display_name",
    "POST /api/v1/reports /engine",
    "POST /api/v1/reports /engine_version",
    "POST /api/v1/reports /hardware",
    "POST /api/v1/reports /kv_cache_dtype",
    "POST /api/v1/reports /model",
    "POST /api/v1/reports /notes",
    "POST /api/v1/reports /quantization",
    "POST /api/v1/reports /source_url",
    "POST /api/v1/saved-searches /name",
    "POST /api/v1/saved-searches /query/by",
    "POST /api/v1/saved-searches /query/hardware",
    "POST /api/v1/saved-searches /query/model",
    "POST /api/v1/saved-searches /query/quantization",
    "POST /api/v1/upload-tokens /name",
    "POST /api/v1/webhook-endpoints /description",
];

/// The others, with the reason why each may hide a character.
const OTHERS: [(&str, &[&str]); 7] = [
    ("the catalog's name stands for it", &["POST /api/v1/machines /hardware/gpu", "PATCH /api/v1/machines/{id} /hardware/gpu"]),
    (
        "a secret: only its hash is kept",
        &[
            "POST /api/v1/auth/login /password",
            "POST /api/v1/auth/password-reset/confirm /password",
            "POST /api/v1/auth/register /password",
            "POST /api/v1/me/password /current_password",
            "POST /api/v1/me/password /new_password",
        ],
    ),
    (
        "looked up and not kept",
        &[
            "POST /api/v1/calculator/decode /hardware",
            "POST /api/v1/calculator/decode /kv_cache_dtype",
            "POST /api/v1/calculator/decode /model",
            "POST /api/v1/calculator/decode /quantization",
            "POST /api/v1/rentals /quote",
        ],
    ),
    (
        "an address for the caller's own browser, shown to nobody",
        &[
            "POST /api/v1/payment-methods /return_url",
            "POST /api/v1/payout-account /refresh_url",
            "POST /api/v1/payout-account /return_url",
            "POST /api/v1/pro /return_url",
            "POST /api/v1/pro/portal /return_url",
            "POST /api/v1/top-ups /return_url",
        ],
    ),
    (
        "an address that is kept as the URL standard writes it, in ASCII",
        &["PATCH /api/v1/webhook-endpoints/{id} /url", "POST /api/v1/webhook-endpoints /url"],
    ),
    ("a renter's own words to the engine", &["POST /v1/chat/completions /messages/-/role", "POST /v1/chat/completions /model"]),
    ("cleaned, see tests/it/review", &["POST /api/v1/admin/matrix-runs/{id}/review /reason", "POST /api/v1/matrix-runs/{id}/answer /text"]),
];

/// Adds every text below a schema that no pattern, format or list closes.
fn free_texts(document: &Value, schema: &Value, place: &str, seen: &[&str], found: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        if !seen.contains(&name) {
            let target = document.pointer(name.trim_start_matches('#')).unwrap();
            free_texts(document, target, place, &[seen, &[name]].concat(), found);
        }
        return;
    }
    for way in ["oneOf", "anyOf", "allOf"] {
        for part in schema[way].as_array().into_iter().flatten() {
            free_texts(document, part, place, seen, found);
        }
    }
    let kinds = &schema["type"];
    let is_text = kinds == "string" || kinds.as_array().is_some_and(|kinds| kinds.contains(&json!("string")));
    let is_open = schema["pattern"].as_str().is_none_or(|pattern| pattern.contains("[^") || pattern == "\\S");
    if is_text && is_open && schema["format"].is_null() && schema["enum"].is_null() && schema["const"].is_null() {
        found.insert(place.to_owned());
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        free_texts(document, part, &format!("{place}/{name}"), seen, found);
    }
    if schema["items"].is_object() {
        free_texts(document, &schema["items"], &format!("{place}/-"), seen, found);
    }
}

#[test]
fn every_free_text_of_every_request_is_named_here() {
    let document = serde_json::to_value(rigmark::openapi::document()).unwrap();
    let mut found = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["post", "put", "patch", "delete"] {
            for content in item[method]["requestBody"]["content"].as_object().into_iter().flatten().map(|(_, content)| content) {
                free_texts(&document, &content["schema"], &format!("{} {path} ", method.to_uppercase()), &[], &mut found);
            }
        }
    }
    let others = OTHERS.iter().flat_map(|(_, places)| *places);
    let named: BTreeSet<String> = REFUSED.iter().chain(others).map(|place| (*place).to_owned()).collect();
    let unnamed: Vec<_> = found.difference(&named).collect();
    assert!(unnamed.is_empty(), "refuse or clean what is hidden in them, and name them here: {unnamed:?}");
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(gone.is_empty(), "no request has them: {gone:?}");
}

/// A body that is taken, but for the text at `place`.
fn body(place: &str, listed: &str) -> Value {
    let hardware = json!({ "gpu": "RTX 3090", "gpu_count": 1 });
    match place {
        "POST /api/v1/listings" => json!({ "machine_id": listed, "price_per_hour": "1.00" }),
        "POST /api/v1/machines" => json!({ "name": "box", "hardware": hardware }),
        "POST /api/v1/api-keys" => json!({ "name": "key", "scopes": [] }),
        "POST /api/v1/auth/register" => json!({ "email": "eve@example.org", "password": "correct horse battery", "handle": "eve" }),
        "POST /api/v1/webhook-endpoints" => json!({ "url": "https://example.org/hooks", "events": ["*"] }),
        "POST /api/v1/saved-searches" => json!({ "name": "cards", "query": {} }),
        "POST /api/v1/organizations" => json!({ "handle": "guild" }),
        "POST /api/v1/matrix-runs" => {
            json!({ "document": {}, "hardware": hardware, "model": { "hf_id": "org/m" }, "engine": { "name": "vllm" } })
        }
        "POST /api/v1/reports" => json!({
            "model": "gpt-oss-20b", "hardware": "RTX 3090", "engine": "vllm", "quantization": "mxfp4", "context_tokens": 0, "concurrency": 1,
            "rate": "total", "tokens_per_second": 90.0
        }),
        _ => json!({}),
    }
}

fn set(body: &mut Value, pointer: &str, text: &str) {
    let mut target = body;
    for part in pointer.trim_start_matches('/').split('/') {
        target = &mut target[part];
    }
    *target = json!(text);
}

#[tokio::test]
async fn a_hidden_character_is_refused_wherever_a_text_is_kept() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let box_id = machine(&ann, None).await;
    let listing = draft(&ann, box_id, "1.00").await;
    ann.http.post("/api/v1/organizations").json(&json!({ "handle": "troop" })).expect(201).await;
    let endpoint = json!({ "url": "https://example.org/hooks", "events": ["*"] });
    let endpoint = ann.http.post("/api/v1/webhook-endpoints").json(&endpoint).expect(201).await["id"].as_str().unwrap().to_owned();
    for (index, place) in REFUSED.iter().enumerate() {
        let [method, path, pointer] = place.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let id = match path {
            path if path.contains("listings") => listing.to_string(),
            path if path.contains("webhook") => endpoint.clone(),
            _ => box_id.to_string(),
        };
        let hidden = HIDDEN[index % HIDDEN.len()];
        let mut body = body(&format!("{method} {path}"), &box_id.to_string());
        let usual = if pointer == "/source_url" { "https://example.org/" } else { "RTX 3090" };
        set(&mut body, pointer, &format!("{usual}{hidden}"));
        let (status, answer) = send(&ann, method, &path.replace("{id}", &id).replace("{handle}", "troop"), body).await;
        let faults: BTreeSet<(&str, &str)> = answer["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|fault| fault["pointer"].as_str().zip(fault["code"].as_str()))
            .collect();
        assert_eq!((status, faults), (422, BTreeSet::from([(pointer, "characters")])), "{place} with {hidden:?}: {answer}");
    }
    // Lines and letters of every script are nobody's fault.
    let plain = json!({ "description": "Zwei Zeilen,\n\teingerückt: 3090 в стойке، 机架" });
    ann.http.patch(&format!("/api/v1/listings/{listing}")).json(&plain).expect(200).await;
}

async fn send(person: &Person, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = person.http.request(method.parse().unwrap(), path).json(&body);
    let answer = request.answer().await;
    (answer.status.as_u16(), answer.json())
}

#[test]
fn what_cannot_be_refused_is_cleaned() {
    for hidden in HIDDEN {
        assert!(
            text::is_hidden(hidden) && !text::is_label(&format!("a{hidden}b")) && !text::is_prose(&format!("a\n{hidden}b")),
            "{hidden:?}"
        );
        assert_eq!(text::label(&format!(" a{hidden}\nb "), 40), "a b");
        assert_eq!(text::prose(&format!(" a{hidden}\r\nb ")), "a\nb");
    }
}

/// The document itself stays as it is; what is shown of its strings is cleaned.
#[tokio::test]
async fn a_documents_own_strings_are_shown_clean() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let mut document: Value = serde_json::from_str(include_str!("../documents/reference-run.json")).unwrap();
    document["metadata"]["model"] = json!("org/\u{202e}ledom");
    let run = ann.http.post("/api/v1/matrix-runs").json(&json!({ "document": document })).expect(201).await;
    let id = run["id"].as_str().unwrap();
    assert!(!run.to_string().contains('\u{202e}'), "{run}");
    let page = app.http.get(&format!("/en/runs/{id}")).answer().await.body;
    assert!(page.contains("org/ledom") && !page.contains('\u{202e}'));
    assert!(app.http.get(&format!("/api/v1/matrix-runs/{id}/document")).answer().await.body.contains('\u{202e}'), "kept verbatim");
}
