//! Method and path, and who handles it.

use super::call::Call;
use super::lists::list;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{
    balance, catalog, changes, checkout, connect, customers, disputes, invoices, payments, payouts, portal, refunds, setup, subscriptions,
    transfers,
};

pub fn handle(world: &mut World, call: &Call) -> Answer {
    let steps: Vec<&str> = call.path.split('/').skip(1).collect();
    let ["v1", steps @ ..] = steps.as_slice() else { return Err(unknown(call)) };
    let (post, delete) = (call.method == "POST", call.method == "DELETE");
    if !post && !delete && call.method != "GET" {
        return Err(unknown(call));
    }
    let found = match steps.first().copied() {
        _ if delete => removals(world, call, steps),
        Some("payment_intents" | "charges" | "refunds" | "disputes") if post => payment_changes(world, call, steps),
        Some("customers" | "payment_methods" | "setup_intents" | "checkout" | "billing_portal") if post => {
            customer_changes(world, call, steps)
        }
        Some("products" | "prices" | "subscriptions" | "invoices") if post => subscription_changes(world, call, steps),
        Some("accounts" | "account_links" | "transfers" | "payouts") if post => host_changes(world, call, steps),
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
        ["setup_intents"] => setup::create(world, call),
        ["setup_intents", id] => setup::update(world, call, id),
        ["setup_intents", id, "confirm"] => setup::confirm(world, call, id),
        ["setup_intents", id, "cancel"] => setup::cancel(world, call, id),
        ["checkout", "sessions"] => checkout::create(world, call),
        ["checkout", "sessions", id] => checkout::update(world, call, id),
        ["checkout", "sessions", id, "expire"] => checkout::expire(world, id),
        ["billing_portal", "sessions"] => portal::create(world, call),
        _ => return None,
    })
}

fn subscription_changes(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["products"] => catalog::create_product(world, call),
        ["products", id] => catalog::update_product(world, call, id),
        ["prices"] => catalog::create_price(world, call),
        ["prices", id] => catalog::update_price(world, call, id),
        ["subscriptions"] => subscriptions::create(world, call),
        ["subscriptions", id] => changes::update(world, call, id),
        ["invoices", "create_preview"] => changes::preview(world, call),
        ["invoices", id, "pay"] => invoices::pay_route(world, call, id),
        ["invoices", id, "void"] => invoices::void(world, id),
        _ => return None,
    })
}

fn host_changes(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["accounts"] => connect::create(world, call),
        ["accounts", id] => connect::update(world, call, id),
        ["accounts", id, "login_links"] => connect::login_link(world, id),
        ["account_links"] => connect::link(world, call),
        ["transfers"] => transfers::create(world, call),
        ["transfers", id] => transfers::update(world, call, id),
        ["transfers", id, "reversals"] => transfers::reverse_route(world, call, id),
        ["payouts"] => payouts::create(world, call),
        ["payouts", id] => payouts::update(world, call, id),
        ["payouts", id, "cancel"] => payouts::end(world, id, "canceled", None),
        _ => return None,
    })
}

fn removals(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    Some(match steps {
        ["accounts", id] => connect::delete(world, id),
        ["subscriptions", id] => subscriptions::cancel(world, call, id),
        ["customers", id] => customers::delete(world, id),
        _ => return None,
    })
}

/// Path, kind of object, filters of its list.
const LISTED: [(&str, &str, &[&str]); 16] = [
    ("payment_intents", "payment_intent", &["customer"]),
    ("charges", "charge", &["customer", "payment_intent", "transfer_group"]),
    ("refunds", "refund", &["charge", "payment_intent"]),
    ("customers", "customer", &["email"]),
    ("payment_methods", "payment_method", &["customer", "type"]),
    ("balance_transactions", "balance_transaction", &["type", "source", "currency", "payout"]),
    ("events", "event", &["type", "types"]),
    ("disputes", "dispute", &["charge", "payment_intent"]),
    ("setup_intents", "setup_intent", &["customer", "payment_method"]),
    ("products", "product", &["active"]),
    ("prices", "price", &[]),
    ("subscriptions", "subscription", &["customer", "status"]),
    ("invoice_payments", "invoice_payment", &[]),
    ("accounts", "account", &[]),
    ("transfers", "transfer", &["destination", "transfer_group"]),
    ("payouts", "payout", &["status", "destination"]),
];

fn reads(world: &mut World, call: &Call, steps: &[&str]) -> Option<Answer> {
    balance::clear(world);
    match steps {
        ["balance"] => return Some(balance::balance(world)),
        ["account"] => return Some(own_account(world)),
        ["prices"] => return Some(catalog::list_prices(world, call)),
        ["invoice_payments"] => return Some(invoices::list_payments(world, call)),
        ["invoices"] => return Some(invoices::list(world, call)),
        ["invoices", id] => return Some(world.get("invoice", id)),
        ["invoices", id, "lines"] => return Some(invoices::lines(world, call, id)),
        ["transfers", id, "reversals"] => return Some(transfers::reversals(world, call, id)),
        ["transfers", _, "reversals", id] => return Some(world.get("transfer_reversal", id)),
        ["checkout", "sessions", id, "line_items"] => {
            return Some(world.get("checkout.session", id).map(|_| checkout::line_items(world, id)));
        }
        ["checkout", "sessions"] => {
            return Some(list(world, call, "checkout.session", &["customer", "payment_intent", "status", "subscription"]));
        }
        ["checkout", "sessions", id] => return Some(world.get("checkout.session", id)),
        ["checkout", ..] => return None,
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

fn own_account(world: &mut World) -> Answer {
    match world.acting.clone() {
        Some(account) => connect::of_platform(world, &account).ok_or_else(|| Refusal::no_such("account", &account, None)),
        None => {
            let mut account = super::shapes::blank("account");
            account["id"] = super::world::PLATFORM.into();
            for name in ["charges_enabled", "payouts_enabled", "details_submitted"] {
                account[name] = true.into();
            }
            Ok(account)
        }
    }
}
