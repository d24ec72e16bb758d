//! Bodies and queries in Stripe's form encoding: `a[b][0]=c` is a list in an object. Every value is text, as it came.

use serde_json::{Map, Value};

use super::refusal::Refusal;

/// Objects whose keys are all numbers, and `a[]=x`, become lists.
pub fn parse(encoded: &[u8]) -> Result<Value, Refusal> {
    let mut root = Map::new();
    for (key, text) in url::form_urlencoded::parse(encoded) {
        let steps = steps(&key).ok_or_else(|| Refusal::invalid(format!("Invalid parameter name: {key}"), Some(&key)))?;
        insert(&mut root, &steps, text.into_owned());
    }
    Ok(lists(Value::Object(root)))
}

/// `a[b][]` is `a`, `b`, and an empty step.
fn steps(key: &str) -> Option<Vec<&str>> {
    let (head, mut rest) = match key.find('[') {
        Some(at) => key.split_at(at),
        None => (key, ""),
    };
    let mut steps = vec![head];
    while !rest.is_empty() {
        let inside = rest.strip_prefix('[')?;
        let end = inside.find(']')?;
        steps.push(&inside[..end]);
        rest = &inside[end + 1..];
    }
    (!head.is_empty()).then_some(steps)
}

fn insert(at: &mut Map<String, Value>, steps: &[&str], text: String) {
    let [first, rest @ ..] = steps else { return };
    let name = if first.is_empty() { at.len().to_string() } else { (*first).to_owned() };
    if rest.is_empty() {
        at.insert(name, Value::String(text));
        return;
    }
    let inner = at.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        insert(inner, rest, text);
    }
}

fn lists(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let members: Vec<(String, Value)> = members.into_iter().map(|(name, member)| (name, lists(member))).collect();
    let numbers: Option<Vec<usize>> = members.iter().map(|(name, _)| name.parse().ok()).collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let mut items: Vec<(usize, Value)> = numbers.into_iter().zip(members.into_iter().map(|(_, member)| member)).collect();
            items.sort_by_key(|(number, _)| *number);
            Value::Array(items.into_iter().map(|(_, item)| item).collect())
        }
        _ => Value::Object(members.into_iter().collect()),
    }
}
