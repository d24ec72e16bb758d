//! What derived schemas cannot say: rows of pages by reference, members that only some problems have, and examples.
//!
//! An example stands once, at the schema it is of (`examples.json`, answers of a running sandbox); pages of it are made here.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::parts::reference;

/// Examples by the name of their schema; by the operation's id for bodies that are no JSON.
pub(super) static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// Read leniently from files by `rigmark verify`, strictly by the API.
const STRICT: [&str; 3] = ["ClaimedHardware", "ClaimedModel", "ClaimedEngine"];

pub(super) fn complete(document: &mut Value) {
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else { return };
    let names: Vec<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas.iter_mut() {
        let row = name.strip_prefix("Page_").or_else(|| name.strip_prefix("Listed_")).filter(|row| names.iter().any(|known| known == row));
        if let Some(row) = row {
            schema["properties"]["data"]["items"] = reference("schemas", row);
        }
        if let Some(example) = example(name, row) {
            schema["examples"] = json!([example]);
        }
    }
    for name in STRICT {
        if let Some(schema) = schemas.get_mut(name) {
            schema["additionalProperties"] = false.into();
        }
    }
    if let Some(problem) = schemas.get_mut("ProblemBody") {
        complete_problem(problem);
    }
}

fn example(name: &str, row: Option<&str>) -> Option<Value> {
    let row = row.and_then(|row| EXAMPLES.get(row));
    match (EXAMPLES.get(name), row) {
        (Some(own), _) => Some(own.clone()),
        (None, Some(row)) if name.starts_with("Page_") => Some(json!({"data": [row], "next_cursor": null})),
        (None, Some(row)) => Some(json!({"data": [row]})),
        (None, None) => None,
    }
}

/// The members that some codes add; others would not be known to clients.
fn complete_problem(problem: &mut Value) {
    let Some(schema) = problem.as_object_mut() else { return };
    schema.remove("additionalProperties");
    let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let more = json!({
        "unmet": {"type": "array", "items": reference("schemas", "Unmet"), "description": "With `listing_not_measured`: every condition that is not met."},
        "candidates": {"type": "array", "items": reference("schemas", "Candidate"), "description": "With an ambiguous name: what it may mean."},
        "required": {"type": "string", "description": "With `insufficient_funds`: what the operation needs, in US dollars."},
        "available": {"type": "string", "description": "With `insufficient_funds`: what there is, in US dollars."},
    });
    if let Value::Object(more) = more {
        members.extend(more);
    }
}
