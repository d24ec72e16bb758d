//! Method and path, and who handles it.

use super::call::Call;
use super::lists::list;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{balance, customers, disputes, payments, refunds};

pub fn handle(world: &mut World, call: &Call) -> Answer {
    let steps: Vec<&str> = call.path.split('/').skip(1).collect();
    let ["v1", steps @ ..] = steps.as_slice() else { return Err(unknown(call)) };
    let (post, delete) = (call.method == "POST", call.method == "DELETE");
    if !post && !delete && call.method != "GET" {
        return Err(unknown(call));
    }
    let found = match steps.first().copied() {
        _ if delete => removals(world, steps),
        Some("payment_intents" | "charges" | "refunds" | "disputes") if post => payment_changes(world, call, steps),
        Some("customers" | "payment_methods") if post => customer_changes(world, call, steps),
        _ if !post => reads(world, call, steps),
        _ => None,
    };
    found.unwrap_or_else(|| Err(unknown(call)))
}

fn unknown(call: &Call) -> Refusal {
    let message = format!("Unrecognized request URL ({}: {}).", call.method, call.path);
    Refusal { status: 404, ..Refusal::invalid(message, None) }
}

fn payment_changes(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["payment_intents"] => payments::create(world, call),
        ["payment_intents", id] => payments::update(world, call, id),
        ["payment_intents", id, "confirm"] => payments::confirm_route(world, call, id),
        ["payment_intents", id, "capture"] => payments::capture(world, call, id),
        ["payment_intents", id, "cancel"] => payments::cancel(world, call, id),
        ["refunds"] => refunds::create(world, call),
        ["refunds", id] => refunds::update(world, call, id),
        ["refunds", id, "cancel"] => refunds::end(world, id, "canceled", None),
        ["disputes", id] => disputes::update(world, call, id),
        ["disputes", id, "close"] => disputes::end(world, id, "lost"),
        _ => return None,
    })
}

fn customer_changes(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["customers"] => customers::create(world, call),
        ["customers", id] => customers::update(world, call, id),
        ["payment_methods"] => customers::method_from(world, call),
        ["payment_methods", id, "attach"] => customers::attach_route(world, call, id),
        ["payment_methods", id, "detach"] => customers::detach(world, id),
        _ => return None,
    })
}

fn removals(world: &mut World, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["customers", id] => customers::delete(world, id),
        _ => return None,
    })
}

/// Path, kind of object, filters of its list.
const LISTED: [(&str, &str, &[&str]); 8] = [
    ("payment_intents", "payment_intent", &["customer"]),
    ("charges", "charge", &["customer", "payment_intent", "transfer_group"]),
    ("refunds", "refund", &["charge", "payment_intent"]),
    ("customers", "customer", &["email"]),
    ("payment_methods", "payment_method", &["customer", "type"]),
    ("balance_transactions", "balance_transaction", &["type", "source", "currency", "payout"]),
    ("events", "event", &["type"]),
    ("disputes", "dispute", &["charge", "payment_intent"]),
];

fn reads(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    balance::clear(world);
    match steps {
        ["balance"] => return Some(balance::balance(world)),
        ["customers", id, "payment_methods"] => return Some(methods_of(world, call, id)),
        ["customers", customer, "payment_methods", id] => {
            let found = world.get("payment_method", id);
            return Some(found.and_then(|method| {
                if method["customer"] == *customer { Ok(method) } else { Err(Refusal::no_such("payment_method", id, None)) }
            }));
        }
        _ => {}
    }
    let (_, kind, filters) = LISTED.iter().find(|(path, ..)| Some(path) == steps.first())?;
    match steps {
        [_] => Some(list(world, call, kind, filters)),
        [_, id] => Some(call.only(&["client_secret"]).and_then(|()| world.get(kind, id))),
        _ => None,
    }
}

fn methods_of(world: &World, call: &Call, customer: &str) -> Answer {
    world.get("customer", customer)?;
    call.only(&["type", "allow_redisplay", "limit", "starting_after", "ending_before"])?;
    let mut methods = world.all("payment_method");
    methods.retain(|method| method["customer"] == customer && call.text("type").is_none_or(|kind| method["type"] == kind));
    super::lists::page(call, methods)
}
