//! Whether a value is what a schema of our OpenAPI document, or of Stripe's, says: the parts of JSON Schema that they use, and no others.

use serde_json::Value;

/// Every fault, with its place in the value. A keyword that this does not know fails the test.
pub fn conforms(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    look(document, schema, value, "", &mut faults);
    faults
}

const KNOWN: [&str; 29] = [
    "$ref",
    "type",
    "enum",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "oneOf",
    "anyOf",
    "allOf",
    "description",
    "example",
    "examples",
    "title",
    "default",
    "deprecated",
    "propertyNames",
    "readOnly",
    "contentMediaType",
];

fn look(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let found = document.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference} leads nowhere"));
        return look(document, found, value, at, faults);
    }
    let Some(keywords) = schema.as_object() else { return };
    let unknown: Vec<_> = keywords.keys().filter(|keyword| !KNOWN.contains(&keyword.as_str())).collect();
    assert!(unknown.is_empty(), "{at}: teach this {unknown:?}");
    if !is_of_type(&schema["type"], value) {
        faults.push(format!("{at}: {value} is no {}", schema["type"]));
        return;
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        faults.push(format!("{at}: {value} is not listed"));
    }
    match value {
        Value::String(text) => look_at_text(schema, text, at, faults),
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            let below = schema["minimum"].as_f64().is_some_and(|min| number < min)
                || schema["exclusiveMinimum"].as_f64().is_some_and(|min| number <= min);
            if below || schema["maximum"].as_f64().is_some_and(|max| number > max) {
                faults.push(format!("{at}: {number} is out of range"));
            }
        }
        Value::Array(items) => {
            let count = items.len() as u64;
            if schema["minItems"].as_u64().is_some_and(|min| count < min) || schema["maxItems"].as_u64().is_some_and(|max| count > max) {
                faults.push(format!("{at}: {count} items are out of range"));
            }
            items.iter().enumerate().for_each(|(i, item)| look(document, &schema["items"], item, &format!("{at}/{i}"), faults))
        }
        Value::Object(members) => look_at_members(document, schema, members, at, faults),
        _ => {}
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        look(document, part, value, at, faults);
    }
    if let Some(choices) = schema["anyOf"].as_array()
        && !choices.iter().any(|choice| conforms(document, choice, value).is_empty())
    {
        faults.push(format!("{at}: {value} fits none of {} choices", choices.len()));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().filter(|choice| conforms(document, choice, value).is_empty()).count();
        if fits != 1 {
            faults.push(format!("{at}: {value} fits {fits} of {} choices", choices.len()));
        }
    }
}

fn is_of_type(types: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap_or_default() {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    match types {
        Value::Null => true,
        Value::Array(all) => all.iter().any(is),
        one => is(one),
    }
}

fn look_at_text(schema: &Value, text: &str, at: &str, faults: &mut Vec<String>) {
    let chars = u64::try_from(text.chars().count()).unwrap();
    if schema["minLength"].as_u64().is_some_and(|min| chars < min) || schema["maxLength"].as_u64().is_some_and(|max| chars > max) {
        faults.push(format!("{at}: {text:?} has {chars} characters"));
    }
    if schema["pattern"].as_str().is_some_and(|pattern| !regex::Regex::new(pattern).unwrap().is_match(text)) {
        faults.push(format!("{at}: {text:?} does not match {}", schema["pattern"]));
    }
    if schema["format"] == "date-time" && !(text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok()) {
        faults.push(format!("{at}: {text:?} is no instant"));
    }
}

fn look_at_members(document: &Value, schema: &Value, members: &serde_json::Map<String, Value>, at: &str, faults: &mut Vec<String>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            faults.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, member) in members {
        match schema["properties"].get(name) {
            Some(known) => look(document, known, member, &format!("{at}/{name}"), faults),
            None if schema["additionalProperties"] == false => faults.push(format!("{at}: {name} is not known")),
            None => {}
        }
    }
}
