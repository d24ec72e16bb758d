//! Subscriptions: begun, changed with proration, renewed by the clock, past due, ended.

use chrono::{DateTime, Months, TimeDelta};
use serde_json::{Value, json};

use super::call::Call;
use super::cards::Conduct;
use super::invoices::{self, Line};
use super::payments::How;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{catalog, customers, shapes};

const CREATE_FIELDS: [&str; 16] = [
    "customer",
    "items",
    "default_payment_method",
    "payment_behavior",
    "off_session",
    "metadata",
    "trial_period_days",
    "proration_behavior",
    "cancel_at_period_end",
    "collection_method",
    "payment_settings",
    "description",
    "automatic_tax",
    "currency",
    "billing_mode",
    "trial_end",
];
pub const DAY_SECONDS: i64 = 24 * 3600;

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&CREATE_FIELDS)?;
    let customer = customers::named(world, call.need("customer")?)?;
    let behaviors = ["allow_incomplete", "default_incomplete", "error_if_incomplete", "pending_if_incomplete"];
    let behavior = call.one_of("payment_behavior", &behaviors)?.unwrap_or("allow_incomplete");
    let mut items = Vec::new();
    for at in 0..call.list("items").len() {
        items.push(item_given(world, &call.below(&format!("items/{at}")))?);
    }
    if items.is_empty() {
        return Err(Refusal::missing("items"));
    }
    let own = match call.text("default_payment_method") {
        Some(method) => world.named("payment_method", method, "default_payment_method")?["id"].clone(),
        None => Value::Null,
    };
    let method = if own.is_null() { customer["invoice_settings"]["default_payment_method"].clone() } else { own.clone() };
    let trial_days = call.integer("trial_period_days")?.unwrap_or_default();
    if method.is_null() && trial_days == 0 && behavior != "default_incomplete" {
        let message =
            "This customer has no attached payment source or default payment method. Please consider adding a default payment method.";
        return Err(Refusal::coded("resource_missing", message, None));
    }
    if behavior == "error_if_incomplete" && trial_days == 0 {
        check(world, &method)?;
    }
    let mut subscription = make(world, &customer["id"], items, trial_days);
    subscription["default_payment_method"] = own;
    call.copy(&mut subscription, &["description"]);
    call.copy_metadata(&mut subscription);
    subscription["cancel_at_period_end"] = json!(call.flag("cancel_at_period_end")? == Some(true));
    if let Some(save) = call.text("payment_settings/save_default_payment_method") {
        subscription["payment_settings"]["save_default_payment_method"] = json!(save);
    }
    let off_session = call.flag("off_session")? == Some(true);
    let method = if behavior == "default_incomplete" { Value::Null } else { method };
    Ok(first_invoice(world, subscription, &method, &How { off_session, ..How::default() }))
}

fn item_given(world: &World, given: &Call) -> Answer<(Value, i64)> {
    given.only(&["price", "quantity", "metadata"])?;
    let price = world.named("price", given.need("price")?, "items[0][price]")?;
    if price["recurring"].is_null() {
        let message = "The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.";
        return Err(Refusal::invalid(message, Some("items[0][price]")));
    }
    Ok((price, given.amount("quantity")?.unwrap_or(1)))
}

/// Whether the card would be declined, before anything is made.
pub fn check(world: &World, method: &Value) -> Answer<()> {
    match method.as_str().and_then(|id| world.cards.get(id)).map(|card| card.conduct) {
        Some(Conduct::Declines(code, decline_code)) => Err(customers::decline(code, decline_code)),
        Some(Conduct::DeclinesLater) => Err(customers::decline("card_declined", "generic_decline")),
        _ => Ok(()),
    }
}

/// A subscription that a Checkout session begins; the customer has authenticated on the page.
pub fn begin(world: &mut World, customer: &Value, items: Vec<(Value, i64)>, method: &Value, data: &Value) -> Answer {
    check(world, method)?;
    let trial_days = data["trial_period_days"].as_str().and_then(|days| days.parse().ok()).unwrap_or_default();
    let mut subscription = make(world, customer, items, trial_days);
    subscription["default_payment_method"] = method.clone();
    for name in ["metadata", "description"] {
        if let Some(value) = data.get(name) {
            subscription[name] = value.clone();
        }
    }
    Ok(first_invoice(world, subscription, method, &How { bank_says_yes: true, ..How::default() }))
}

fn make(world: &mut World, customer: &Value, items: Vec<(Value, i64)>, trial_days: i64) -> Value {
    let mut subscription = world.blank("subscription", "sub");
    let now = world.now();
    subscription["customer"] = customer.clone();
    subscription["start_date"] = json!(now);
    subscription["billing_cycle_anchor"] = json!(now);
    subscription["status"] = json!("incomplete");
    let trial_end = now + trial_days * DAY_SECONDS;
    if trial_days > 0 {
        subscription["status"] = json!("trialing");
        subscription["trial_start"] = json!(now);
        subscription["trial_end"] = json!(trial_end);
        subscription["billing_cycle_anchor"] = json!(trial_end);
    }
    let mut made = Vec::new();
    for (price, quantity) in items {
        let end = if trial_days > 0 { trial_end } else { period_end(now, &price["recurring"]) };
        subscription["currency"] = price["currency"].clone();
        made.push(item(world, &subscription["id"], price, quantity, now, end));
    }
    let url = format!("/v1/subscription_items?subscription={}", subscription["id"].as_str().unwrap_or_default());
    subscription["items"] = shapes::list(&url, made);
    subscription
}

fn item(world: &mut World, subscription: &Value, price: Value, quantity: i64, start: i64, end: i64) -> Value {
    let mut item = world.blank("subscription_item", "si");
    item["subscription"] = subscription.clone();
    item["plan"] = catalog::plan(&price);
    item["price"] = price;
    item["quantity"] = json!(quantity);
    item["current_period_start"] = json!(start);
    item["current_period_end"] = json!(end);
    item
}

pub fn items_of(subscription: &Value) -> Vec<Value> {
    subscription["items"]["data"].as_array().cloned().unwrap_or_default()
}

/// The end of a period that begins at `start`.
pub fn period_end(start: i64, recurring: &Value) -> i64 {
    let count = recurring["interval_count"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    let begun = DateTime::from_timestamp(start, 0).unwrap_or_default();
    let end = match recurring["interval"].as_str() {
        Some("day") => begun.checked_add_signed(TimeDelta::days(i64::from(count))),
        Some("week") => begun.checked_add_signed(TimeDelta::weeks(i64::from(count))),
        Some("year") => begun.checked_add_months(Months::new(12 * count)),
        _ => begun.checked_add_months(Months::new(count)),
    };
    end.map_or(i64::MAX, |end| end.timestamp())
}

fn first_invoice(world: &mut World, mut subscription: Value, method: &Value, how: &How<'_>) -> Value {
    let trial = subscription["status"] == "trialing";
    world.put(&subscription);
    world.emit("customer.subscription.created", &subscription);
    let lines = full_lines(world, &subscription, trial);
    let invoice = invoices::make(world, &subscription, lines, "subscription_create");
    subscription["latest_invoice"] = invoice["id"].clone();
    world.put(&subscription);
    // A declined first payment leaves the subscription incomplete.
    let _declined = invoices::pay(world, invoice["id"].as_str().unwrap_or_default(), method, how);
    subscription["id"].as_str().and_then(|id| world.find(id)).unwrap_or_default()
}

/// A line for each item's current period.
pub fn full_lines(world: &mut World, subscription: &Value, free: bool) -> Vec<Value> {
    let lines = items_of(subscription).into_iter().map(|item| {
        let quantity = item["quantity"].as_i64().unwrap_or(1);
        let amount = if free { 0 } else { item["price"]["unit_amount"].as_i64().unwrap_or_default() * quantity };
        Line {
            description: format!("{quantity} × {}", item["price"]["nickname"].as_str().unwrap_or("subscription")),
            amount,
            quantity,
            start: item["current_period_start"].as_i64().unwrap_or_default(),
            end: item["current_period_end"].as_i64().unwrap_or_default(),
            proration: false,
            item: item["id"].clone(),
            price: item["price"].clone(),
        }
    });
    let lines: Vec<Line> = lines.collect();
    lines.iter().map(|of| invoices::line(world, of, subscription)).collect()
}

/// An invoice of the subscription is paid.
pub fn paid(world: &mut World, id: &str) {
    let Some(before) = world.find(id) else { return };
    if ["incomplete", "past_due", "unpaid"].iter().any(|status| before["status"] == **status) {
        let mut subscription = before.clone();
        subscription["status"] = json!("active");
        world.put(&subscription);
        world.emit_changed("customer.subscription.updated", &before, &subscription);
    }
}

/// The payment method that pays for an invoice's or subscription's customer.
pub fn method_of(world: &World, owned: &Value) -> Value {
    let subscription = owned["parent"]["subscription_details"]["subscription"].as_str().and_then(|id| world.find(id));
    let own = subscription.as_ref().unwrap_or(owned)["default_payment_method"].clone();
    if !own.is_null() {
        return own;
    }
    let customer = owned["customer"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
    customer["invoice_settings"]["default_payment_method"].clone()
}

pub fn cancel(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["invoice_now", "prorate", "cancellation_details"])?;
    let subscription = world.get("subscription", id)?;
    if subscription["status"] == "canceled" {
        return Err(Refusal::no_such("subscription", id, None));
    }
    Ok(end(world, subscription, "cancellation_requested"))
}

fn end(world: &mut World, mut subscription: Value, reason: &str) -> Value {
    let now = world.now();
    subscription["status"] = json!("canceled");
    subscription["ended_at"] = json!(now);
    if subscription["canceled_at"].is_null() {
        subscription["canceled_at"] = json!(now);
    }
    subscription["cancellation_details"] = json!({ "comment": null, "feedback": null, "reason": reason });
    world.put(&subscription);
    world.emit("customer.subscription.deleted", &subscription);
    subscription
}

/// Renews, retries and ends what is due; again until nothing is.
pub fn tick(world: &mut World) {
    const ROUNDS_MAX: usize = 200;
    for _ in 0..ROUNDS_MAX {
        let now = world.now();
        let live = |subscription: &Value| ["active", "trialing", "past_due"].iter().any(|status| subscription["status"] == **status);
        let over =
            |subscription: &Value| items_of(subscription).first().is_some_and(|item| item["current_period_end"].as_i64() <= Some(now));
        let subscriptions = world.all("subscription");
        if let Some(due) = subscriptions.into_iter().find(|subscription| live(subscription) && over(subscription)) {
            renew(world, due);
            continue;
        }
        let invoices = world.all("invoice");
        let again = |invoice: &Value| invoice["status"] == "open" && invoice["next_payment_attempt"].as_i64().is_some_and(|at| at <= now);
        let Some(invoice) = invoices.into_iter().find(again) else { return };
        retry(world, &invoice);
    }
}

fn renew(world: &mut World, before: Value) {
    if before["cancel_at_period_end"] == true {
        end(world, before, "cancellation_requested");
        return;
    }
    let mut subscription = before.clone();
    let mut items = items_of(&before);
    for item in &mut items {
        let start = item["current_period_end"].as_i64().unwrap_or_default();
        item["current_period_start"] = json!(start);
        item["current_period_end"] = json!(period_end(start, &item["price"]["recurring"]));
    }
    subscription["items"]["data"] = json!(items);
    if subscription["status"] == "trialing" {
        subscription["status"] = json!("active");
    }
    let mut lines = super::changes::pending(world, &subscription);
    lines.extend(full_lines(world, &subscription, false));
    let invoice = invoices::make(world, &subscription, lines, "subscription_cycle");
    subscription["latest_invoice"] = invoice["id"].clone();
    world.put(&subscription);
    world.emit_changed("customer.subscription.updated", &before, &subscription);
    let method = method_of(world, &subscription);
    let off_session = How { off_session: true, ..How::default() };
    if invoices::pay(world, invoice["id"].as_str().unwrap_or_default(), &method, &off_session).is_err() {
        fall_behind(world, subscription);
    }
}

pub fn fall_behind(world: &mut World, before: Value) {
    if before["status"] == "past_due" {
        return;
    }
    let mut subscription = before.clone();
    subscription["status"] = json!("past_due");
    world.put(&subscription);
    world.emit_changed("customer.subscription.updated", &before, &subscription);
}

fn retry(world: &mut World, invoice: &Value) {
    let id = invoice["id"].as_str().unwrap_or_default();
    let method = method_of(world, invoice);
    let declined = invoices::pay(world, id, &method, &How { off_session: true, ..How::default() }).is_err();
    let spent = world.find(id).is_some_and(|invoice| invoice["attempt_count"].as_i64() >= Some(invoices::ATTEMPTS_MAX));
    let subscription = invoice["parent"]["subscription_details"]["subscription"].as_str().and_then(|id| world.find(id));
    if let (true, true, Some(subscription)) = (declined, spent, subscription)
        && subscription["status"] != "canceled"
    {
        end(world, subscription, "payment_failed");
    }
}
