//! The document holds together.

use std::collections::BTreeSet;

use rigmark::web::openapi::add_common;
use serde_json::Value;

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

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = serde_json::to_value(rigmark::openapi::document()).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.contains("#/components/schemas/ProblemBody"), "{found:?}");
    let broken: Vec<_> = found.iter().filter(|reference| document.pointer(reference.trim_start_matches('#')).is_none()).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn what_is_common_is_there_without_any_handler() {
    let mut document = utoipa::openapi::OpenApi::default();
    add_common(&mut document);
    let document = serde_json::to_value(&document).unwrap();
    for pointer in ["schemas/ProblemBody", "schemas/FieldError", "securitySchemes/bearer"] {
        assert!(document.pointer(&format!("/components/{pointer}")).is_some(), "{pointer}: {document}");
    }
}
