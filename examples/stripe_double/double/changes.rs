//! Changes of a subscription: plan and seats with proration, cancelling at the period's end and taking that back.

use serde_json::{Value, json};

use super::call::Call;
use super::invoices::{self, Line};
use super::payments::How;
use super::refusal::{Answer, Refusal};
use super::subscriptions::{items_of, method_of};
use super::world::World;
use super::{catalog, subscriptions};

const FIELDS: [&str; 12] = [
    "items",
    "default_payment_method",
    "payment_behavior",
    "metadata",
    "proration_behavior",
    "cancel_at_period_end",
    "off_session",
    "description",
    "proration_date",
    "payment_settings",
    "billing_cycle_anchor",
    "cancellation_details",
];

/// Takes the prorations that wait for the next invoice.
pub fn pending(world: &mut World, subscription: &Value) -> Vec<Value> {
    let id = subscription["id"].as_str().unwrap_or_default();
    let waiting = world.beside.remove(id).unwrap_or_default();
    waiting.as_array().cloned().unwrap_or_default()
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let before = world.get("subscription", id)?;
    if before["status"] == "canceled" {
        return Err(Refusal::no_such("subscription", id, None));
    }
    if call.text("payment_behavior") == Some("error_if_incomplete") && call.has("items") {
        subscriptions::check(world, &method_of(world, &before))?;
    }
    let mut subscription = before.clone();
    call.copy(&mut subscription, &["description"]);
    call.copy_metadata(&mut subscription);
    if let Some(method) = call.text("default_payment_method") {
        subscription["default_payment_method"] = world.named("payment_method", method, "default_payment_method")?["id"].clone();
    }
    if let Some(cancels) = call.flag("cancel_at_period_end")? {
        set_cancelling(world, &mut subscription, cancels);
    }
    let behavior = call.one_of("proration_behavior", &["create_prorations", "always_invoice", "none"])?.unwrap_or("create_prorations");
    let change = change(world, call, &mut subscription, call.integer("proration_date")?)?;
    world.put(&subscription);
    world.emit_changed("customer.subscription.updated", &before, &subscription);
    if let Some(change) = change {
        bill(world, id, change, behavior)?;
    }
    world.get("subscription", id)
}

fn set_cancelling(world: &World, subscription: &mut Value, cancels: bool) {
    subscription["cancel_at_period_end"] = json!(cancels);
    let end = items_of(subscription).first().map(|item| item["current_period_end"].clone()).unwrap_or_default();
    subscription["cancel_at"] = if cancels { end } else { Value::Null };
    subscription["canceled_at"] = if cancels { json!(world.now()) } else { Value::Null };
    let reason = if cancels { json!("cancellation_requested") } else { Value::Null };
    subscription["cancellation_details"] = json!({ "comment": null, "feedback": null, "reason": reason });
}

struct Change {
    prorations: Vec<Line>,
    /// A period of another length begins now, and is invoiced now.
    restarts: bool,
}

/// Applies `items`; `None` when they change nothing.
fn change(world: &mut World, call: &Call, subscription: &mut Value, at: Option<i64>) -> Answer<Option<Change>> {
    let now = at.unwrap_or(world.now());
    let mut items = items_of(subscription);
    let mut change = Change { prorations: Vec::new(), restarts: false };
    let mut changed = false;
    for at in 0..call.list("items").len() {
        let given = call.below(&format!("items/{at}"));
        given.only(&["id", "price", "quantity", "metadata", "deleted"])?;
        let place = match given.text("id") {
            Some(id) => items
                .iter()
                .position(|item| item["id"] == id)
                .ok_or_else(|| Refusal::no_such("subscription_item", id, Some("items[0][id]")))?,
            None if items.len() == 1 => 0,
            None => return Err(Refusal::missing("items[0][id]")),
        };
        let old = items[place].clone();
        let item = &mut items[place];
        if let Some(price) = given.text("price") {
            let price = world.named("price", price, "items[0][price]")?;
            item["plan"] = catalog::plan(&price);
            item["price"] = price;
        }
        if let Some(quantity) = given.amount("quantity")? {
            item["quantity"] = json!(quantity);
        }
        if item["price"]["id"] == old["price"]["id"] && item["quantity"] == old["quantity"] {
            continue;
        }
        changed = true;
        if item["price"]["recurring"] != old["price"]["recurring"] {
            change.restarts = true;
            item["current_period_start"] = json!(now);
            item["current_period_end"] = json!(subscriptions::period_end(now, &item["price"]["recurring"]));
            subscription["billing_cycle_anchor"] = json!(now);
        }
        if subscription["status"] != "trialing" {
            prorate(&old, item, now, &mut change);
        }
    }
    subscription["items"]["data"] = json!(items);
    Ok(changed.then_some(change))
}

/// The unused part of the old price back; of the new one what is left of the period, unless a new period begins.
fn prorate(old: &Value, new: &Value, now: i64, change: &mut Change) {
    let start = old["current_period_start"].as_i64().unwrap_or_default();
    let end = old["current_period_end"].as_i64().unwrap_or_default();
    let share = |item: &Value| {
        let whole = item["price"]["unit_amount"].as_i64().unwrap_or_default() * item["quantity"].as_i64().unwrap_or(1);
        portion(whole, end - now, end - start)
    };
    let line = |what: &str, item: &Value, amount: i64| Line {
        description: format!("{what} time on {} × {}", item["quantity"], item["price"]["nickname"].as_str().unwrap_or("subscription")),
        amount,
        quantity: item["quantity"].as_i64().unwrap_or(1),
        start: now,
        end,
        proration: true,
        item: item["id"].clone(),
        price: item["price"].clone(),
    };
    change.prorations.push(line("Unused", old, -share(old)));
    if !change.restarts {
        change.prorations.push(line("Remaining", new, share(new)));
    }
}

/// `amount · part / whole`, half a cent up.
fn portion(amount: i64, part: i64, whole: i64) -> i64 {
    let whole = i128::from(whole.max(1));
    let exact = i128::from(amount) * i128::from(part.max(0));
    i64::try_from((exact + whole / 2) / whole).unwrap_or(i64::MAX)
}

fn bill(world: &mut World, id: &str, change: Change, behavior: &str) -> Answer<()> {
    let mut subscription = world.get("subscription", id)?;
    let mut lines = pending(world, &subscription);
    if behavior != "none" {
        lines.extend(change.prorations.iter().map(|of| invoices::line(world, of, &subscription)));
    }
    if change.restarts {
        lines.extend(subscriptions::full_lines(world, &subscription, false));
    } else if behavior != "always_invoice" {
        world.beside.insert(id.to_owned(), json!(lines));
        return Ok(());
    }
    if lines.is_empty() {
        return Ok(());
    }
    let invoice = invoices::make(world, &subscription, lines, "subscription_update");
    subscription["latest_invoice"] = invoice["id"].clone();
    world.put(&subscription);
    let method = method_of(world, &subscription);
    let paid = invoices::pay(world, invoice["id"].as_str().unwrap_or_default(), &method, &How { off_session: true, ..How::default() });
    if paid.is_err() {
        subscriptions::fall_behind(world, subscription);
    }
    Ok(())
}

/// What the change would cost, without making it: `subscription` and `subscription_details[items]`.
pub fn preview(world: &mut World, call: &Call) -> Answer {
    call.only(&["customer", "subscription", "subscription_details", "preview_mode", "currency"])?;
    let mut subscription = world.get("subscription", call.need("subscription")?)?;
    let details = call.below("subscription_details");
    let id = subscription["id"].as_str().unwrap_or_default().to_owned();
    let change = change(world, &details, &mut subscription, details.integer("proration_date")?)?;
    let mut lines = world.beside.get(&id).and_then(Value::as_array).cloned().unwrap_or_default();
    let prorates = details.text("proration_behavior") != Some("none");
    let at_once = details.text("proration_behavior") == Some("always_invoice");
    let restarts = change.as_ref().is_some_and(|change| change.restarts);
    for of in change.iter().filter(|_| prorates).flat_map(|change| &change.prorations) {
        lines.push(invoices::line(world, of, &subscription));
    }
    if restarts || !at_once {
        lines.extend(subscriptions::full_lines(world, &subscription, false));
    }
    let mut invoice = invoices::draft(world, &subscription, lines, "upcoming");
    invoice["id"] = json!(format!("upcoming_{}", world.new_id("in")));
    Ok(invoice)
}
