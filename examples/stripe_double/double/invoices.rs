//! Invoices of subscriptions: made, finalised and paid in one go; retried when the card is declined.

use serde_json::{Value, json};

use super::call::Call;
use super::payments::{self, How};
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{customers, shapes, subscriptions};

const RETRY_SECONDS: i64 = 3 * 24 * 3600;
pub const ATTEMPTS_MAX: i64 = 4;

/// What one line charges for.
pub struct Line {
    pub description: String,
    pub amount: i64,
    pub price: Value,
    pub quantity: i64,
    pub start: i64,
    pub end: i64,
    pub proration: bool,
    pub item: Value,
}

pub fn line(world: &mut World, of: &Line, subscription: &Value) -> Value {
    let mut line = shapes::blank("line_item");
    line["id"] = json!(world.new_id("il"));
    line["amount"] = json!(of.amount);
    line["subtotal"] = json!(of.amount);
    line["description"] = json!(of.description);
    line["currency"] = of.price["currency"].clone();
    line["period"] = json!({ "start": of.start, "end": of.end });
    line["quantity"] = json!(of.quantity);
    line["quantity_decimal"] = json!(of.quantity.to_string());
    line["subscription"] = subscription["id"].clone();
    line["discountable"] = json!(!of.proration);
    line["pricing"] = json!({
        "type": "price_details", "unit_amount_decimal": of.price["unit_amount_decimal"],
        "price_details": { "price": of.price["id"], "product": of.price["product"] }
    });
    line["parent"] = json!({
        "type": "subscription_item_details", "invoice_item_details": null,
        "subscription_item_details": {
            "invoice_item": null, "proration": of.proration, "proration_details": { "credited_items": null },
            "subscription": subscription["id"], "subscription_item": of.item
        }
    });
    line
}

/// The invoice of these lines; nothing is stored.
pub fn draft(world: &mut World, subscription: &Value, mut lines: Vec<Value>, reason: &str) -> Value {
    let mut invoice = world.blank("invoice", "in");
    let id = invoice["id"].clone();
    let total: i64 = lines.iter().filter_map(|line| line["amount"].as_i64()).sum();
    let customer = subscription["customer"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
    let credit = customer["balance"].as_i64().unwrap_or_default();
    let due = (total + credit).max(0);
    for line in &mut lines {
        line["invoice"] = id.clone();
    }
    for name in ["subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"] {
        invoice[name] = json!(total);
    }
    invoice["amount_due"] = json!(due);
    invoice["amount_remaining"] = json!(due);
    invoice["starting_balance"] = json!(credit);
    invoice["ending_balance"] = json!((total + credit).min(0));
    invoice["billing_reason"] = json!(reason);
    invoice["currency"] = subscription["currency"].clone();
    invoice["customer"] = subscription["customer"].clone();
    invoice["customer_email"] = customer["email"].clone();
    invoice["customer_name"] = customer["name"].clone();
    invoice["period_start"] = lines.first().map_or(json!(world.now()), |line| line["period"]["start"].clone());
    invoice["period_end"] = lines.last().map_or(json!(world.now()), |line| line["period"]["end"].clone());
    let details = json!({ "metadata": subscription["metadata"], "subscription": subscription["id"] });
    invoice["parent"] = json!({ "type": "subscription_details", "quote_details": null, "subscription_details": details });
    invoice["auto_advance"] = json!(true);
    invoice["lines"] = shapes::list(&format!("/v1/invoices/{}/lines", id.as_str().unwrap_or_default()), lines);
    invoice
}

/// Stores and finalises.
pub fn make(world: &mut World, subscription: &Value, lines: Vec<Value>, reason: &str) -> Value {
    let mut invoice = draft(world, subscription, lines, reason);
    world.put(&invoice);
    world.emit("invoice.created", &invoice);
    let id = invoice["id"].as_str().unwrap_or_default().to_owned();
    invoice["status"] = json!("open");
    invoice["status_transitions"]["finalized_at"] = json!(world.now());
    invoice["effective_at"] = json!(world.now());
    let count = world.all("invoice").len();
    invoice["number"] = json!(format!("DOUBLE-{count:04}"));
    invoice["hosted_invoice_url"] = json!(format!("{}/_double/invoices/{id}", world.url));
    invoice["invoice_pdf"] = json!(format!("{}/_double/invoices/{id}", world.url));
    if let Some(mut customer) = invoice["customer"].as_str().and_then(|id| world.find(id)) {
        customer["balance"] = invoice["ending_balance"].clone();
        world.put(&customer);
    }
    world.put(&invoice);
    world.emit("invoice.finalized", &invoice);
    invoice
}

/// Charges what is due. The error is the card's; the invoice then stays open and comes again.
pub fn pay(world: &mut World, id: &str, method: &Value, how: &How<'_>) -> Answer {
    let mut invoice = world.get("invoice", id)?;
    if invoice["amount_remaining"] == 0 {
        return Ok(settle(world, invoice, None));
    }
    invoice["attempted"] = json!(true);
    invoice["attempt_count"] = json!(invoice["attempt_count"].as_i64().unwrap_or_default() + 1);
    let of = json!({
        "amount": invoice["amount_remaining"], "currency": invoice["currency"], "customer": invoice["customer"],
        "description": "Subscription", "setup_future_usage": if how.off_session { Value::Null } else { json!("off_session") }
    });
    let payment = payments::make(world, &of, method);
    invoice["confirmation_secret"] = json!({ "client_secret": payment["client_secret"], "type": "payment_intent" });
    let payment_id = payment["id"].as_str().unwrap_or_default().to_owned();
    world.beside.insert(payment_id.clone(), json!({ "invoice": id }));
    world.put(&invoice);
    note_payment(world, &invoice, &payment);
    match payments::run(world, payment, how) {
        Ok(payment) if payment["status"] == "succeeded" => Ok(settle(world, invoice, Some(&payment))),
        Ok(_) => {
            world.emit("invoice.payment_action_required", &invoice);
            Ok(invoice)
        }
        Err(refusal) => {
            fail(world, invoice);
            Err(refusal)
        }
    }
}

fn note_payment(world: &mut World, invoice: &Value, payment: &Value) {
    let mut part = world.blank("invoice_payment", "inpay");
    part["amount_requested"] = payment["amount"].clone();
    part["currency"] = invoice["currency"].clone();
    part["invoice"] = invoice["id"].clone();
    part["payment"] = json!({ "type": "payment_intent", "payment_intent": payment["id"] });
    world.put(&part);
}

fn fail(world: &mut World, mut invoice: Value) {
    let again = invoice["attempt_count"].as_i64().unwrap_or_default() < ATTEMPTS_MAX;
    invoice["next_payment_attempt"] = if again { json!(world.now() + RETRY_SECONDS) } else { Value::Null };
    world.put(&invoice);
    world.emit("invoice.payment_failed", &invoice);
}

fn settle(world: &mut World, mut invoice: Value, payment: Option<&Value>) -> Value {
    invoice["status"] = json!("paid");
    invoice["amount_paid"] = invoice["amount_due"].clone();
    invoice["amount_remaining"] = json!(0);
    invoice["attempted"] = json!(true);
    invoice["next_payment_attempt"] = Value::Null;
    invoice["confirmation_secret"] = Value::Null;
    invoice["status_transitions"]["paid_at"] = json!(world.now());
    world.put(&invoice);
    let parts = world.all("invoice_payment");
    if let Some(mut part) = payment.and_then(|payment| parts.into_iter().find(|part| part["payment"]["payment_intent"] == payment["id"])) {
        part["status"] = json!("paid");
        part["amount_paid"] = part["amount_requested"].clone();
        part["status_transitions"]["paid_at"] = json!(world.now());
        world.put(&part);
        world.emit("invoice_payment.paid", &part);
    }
    world.emit("invoice.paid", &invoice);
    world.emit("invoice.payment_succeeded", &invoice);
    let subscription = invoice["parent"]["subscription_details"]["subscription"].as_str().unwrap_or_default();
    subscriptions::paid(world, subscription);
    invoice
}

/// A payment has ended elsewhere: its invoice is paid by it, or fails.
pub fn follow(world: &mut World, payment: &Value) {
    let id = payment["id"].as_str().unwrap_or_default();
    let Some(invoice) = world.beside.get(id).and_then(|beside| beside["invoice"].as_str()).and_then(|id| world.find(id)) else { return };
    match payment["status"].as_str() {
        _ if invoice["status"] != "open" => {}
        Some("succeeded") => {
            settle(world, invoice, Some(payment));
        }
        Some("requires_payment_method") => fail(world, invoice),
        _ => {}
    }
}

pub fn pay_route(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["payment_method", "off_session", "paid_out_of_band"])?;
    let invoice = world.get("invoice", id)?;
    if invoice["status"] != "open" {
        return Err(Refusal::invalid("Invoice is already paid or cannot be paid", None));
    }
    let method = match call.text("payment_method") {
        Some(method) => customers::usable(world, method, "payment_method")?["id"].clone(),
        None => subscriptions::method_of(world, &invoice),
    };
    let off_session = call.flag("off_session")?.unwrap_or(true);
    pay(world, id, &method, &How { off_session, ..How::default() })
}

pub fn void(world: &mut World, id: &str) -> Answer {
    let mut invoice = world.get("invoice", id)?;
    if invoice["status"] != "open" {
        return Err(Refusal::invalid("You can only void an open invoice", None));
    }
    invoice["status"] = json!("void");
    invoice["next_payment_attempt"] = Value::Null;
    invoice["status_transitions"]["voided_at"] = json!(world.now());
    world.put(&invoice);
    world.emit("invoice.voided", &invoice);
    Ok(invoice)
}

/// By customer, status and subscription, which stands deep inside an invoice.
pub fn list(world: &World, call: &Call) -> Answer {
    call.only(&["customer", "status", "subscription", "limit", "starting_after", "ending_before"])?;
    let mut invoices = world.all("invoice");
    for name in ["customer", "status"] {
        invoices.retain(|invoice| call.text(name).is_none_or(|wanted| invoice[name] == wanted));
    }
    let of = |invoice: &Value| invoice["parent"]["subscription_details"]["subscription"].clone();
    invoices.retain(|invoice| call.text("subscription").is_none_or(|wanted| of(invoice) == wanted));
    super::lists::page(call, invoices)
}

/// Which invoices a payment pays, and the other way round.
pub fn list_payments(world: &World, call: &Call) -> Answer {
    call.only(&["invoice", "status", "payment", "limit", "starting_after", "ending_before", "created"])?;
    let mut parts = world.all("invoice_payment");
    for name in ["invoice", "status"] {
        parts.retain(|part| call.text(name).is_none_or(|wanted| part[name] == wanted));
    }
    parts.retain(|part| call.text("payment/payment_intent").is_none_or(|wanted| part["payment"]["payment_intent"] == wanted));
    super::lists::page(call, parts)
}

pub fn lines(world: &World, call: &Call, id: &str) -> Answer {
    let invoice = world.get("invoice", id)?;
    super::lists::page(call, invoice["lines"]["data"].as_array().cloned().unwrap_or_default())
}
