//! Lists: newest first, filtered by members of the objects, in pages.

use serde_json::{Value, json};

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;

/// Objects of `kind` whose members are what the call says for each of `filters`.
pub fn list(world: &World, call: &Call, kind: &str, filters: &[&str]) -> Answer {
    let pages = ["limit", "starting_after", "ending_before", "created"];
    let known: Vec<&str> = pages.iter().chain(filters).copied().collect();
    call.only(&known)?;
    let mut all = world.all(kind);
    all.retain(|object| object["deleted"] != true);
    for filter in filters {
        if let Some(wanted) = call.text(filter).filter(|wanted| *wanted != "all") {
            all.retain(|object| matches_text(&object[*filter], wanted));
        }
    }
    if kind == "subscription" && call.text("status").is_none() {
        all.retain(|object| object["status"] != "canceled");
    }
    let types = call.texts("types");
    all.retain(|object| types.is_empty() || types.iter().any(|kind| object["type"] == kind.as_str()));
    within(call, &mut all)?;
    page(call, all)
}

fn matches_text(member: &Value, wanted: &str) -> bool {
    match member {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => flag.to_string() == wanted,
        Value::Object(_) => member["id"] == wanted,
        _ => false,
    }
}

fn within(call: &Call, all: &mut Vec<Value>) -> Answer<()> {
    for (name, keeps) in [
        ("created/gt", (|a, b| a > b) as fn(i64, i64) -> bool),
        ("created/gte", |a, b| a >= b),
        ("created/lt", |a, b| a < b),
        ("created/lte", |a, b| a <= b),
        ("created", |a, b| a == b),
    ] {
        if let Some(bound) = call.integer(name)? {
            all.retain(|object| object["created"].as_i64().is_some_and(|created| keeps(created, bound)));
        }
    }
    Ok(())
}

/// One page of what is already filtered.
pub fn page(call: &Call, mut all: Vec<Value>) -> Answer {
    let limit = call.integer("limit")?.unwrap_or(10);
    let Some(limit) = usize::try_from(limit).ok().filter(|limit| (1..=100).contains(limit)) else {
        return Err(Refusal::coded("parameter_invalid_integer", "Limit must be between 1 and 100", Some("limit")));
    };
    let place = |id: &str, param: &str| {
        let found = all.iter().position(|object| object["id"] == id);
        found.ok_or_else(|| Refusal::no_such("object", id, Some(param)))
    };
    let (from, to) = match (call.text("starting_after"), call.text("ending_before")) {
        (Some(id), _) => (place(id, "starting_after")? + 1, all.len()),
        (None, Some(id)) => {
            let end = place(id, "ending_before")?;
            (end.saturating_sub(limit), end)
        }
        (None, None) => (0, all.len()),
    };
    let backwards = call.text("ending_before").is_some();
    let rest: Vec<Value> = all.drain(from..to).collect();
    let has_more = if backwards { from > 0 } else { rest.len() > limit };
    let items: Vec<Value> = rest.into_iter().take(limit).collect();
    Ok(json!({ "object": "list", "data": items, "has_more": has_more, "url": call.path }))
}
