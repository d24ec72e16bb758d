//! `expand[]=latest_charge.balance_transaction`: ids replaced by their objects.

use serde_json::Value;

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;

const DEPTH_MAX: usize = 4;

pub fn expand(world: &World, call: &Call, mut body: Value) -> Answer {
    for path in call.texts("expand") {
        let steps: Vec<&str> = path.split('.').collect();
        if steps.len() > DEPTH_MAX {
            return Err(Refusal::invalid(format!("You cannot expand more than {DEPTH_MAX} levels of a property: {path}"), Some("expand")));
        }
        walk(world, &mut body, &steps);
    }
    Ok(body)
}

fn walk(world: &World, value: &mut Value, steps: &[&str]) {
    if let Value::Array(items) = value {
        items.iter_mut().for_each(|item| walk(world, item, steps));
        return;
    }
    let [first, rest @ ..] = steps else { return };
    if *first == "line_items" && value["object"] == "checkout.session" {
        // Sent only when asked for.
        value["line_items"] = super::checkout::line_items(world, value["id"].as_str().unwrap_or_default());
    }
    let Some(member) = value.get_mut(*first) else { return };
    if let Some(object) = member.as_str().and_then(|id| world.find(id)) {
        *member = object;
    }
    walk(world, member, rest);
}
