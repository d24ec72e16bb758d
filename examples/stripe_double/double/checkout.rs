//! Checkout sessions: what the hosted page shows, and what completing it does.

use serde_json::{Value, json};

use super::call::Call;
use super::cards::{Card, Conduct};
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{catalog, customers, payments, setup, shapes, subscriptions};

const FIELDS: [&str; 31] = [
    "mode",
    "line_items",
    "success_url",
    "cancel_url",
    "customer",
    "customer_email",
    "client_reference_id",
    "metadata",
    "payment_intent_data",
    "subscription_data",
    "setup_intent_data",
    "currency",
    "expires_at",
    "payment_method_types",
    "customer_creation",
    "locale",
    "ui_mode",
    "submit_type",
    "saved_payment_method_options",
    "allow_promotion_codes",
    "automatic_tax",
    "invoice_creation",
    "payment_method_collection",
    "customer_update",
    "tax_id_collection",
    "billing_address_collection",
    "consent_collection",
    "phone_number_collection",
    "return_url",
    "payment_method_options",
    "adaptive_pricing",
];
const OPEN_SECONDS: i64 = 24 * 3600;

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&FIELDS)?;
    let mode = call.need("mode")?.to_owned();
    call.one_of("mode", &["payment", "setup", "subscription"])?;
    call.need("success_url")?;
    let mut session = world.blank("checkout.session", "cs_test");
    session["mode"] = json!(mode);
    call.copy(&mut session, &["success_url", "cancel_url", "customer_email", "client_reference_id", "locale", "submit_type"]);
    call.copy_metadata(&mut session);
    if let Some(customer) = call.text("customer") {
        session["customer"] = customers::named(world, customer)?["id"].clone();
    }
    let expires_at = call.integer("expires_at")?.unwrap_or(world.now() + OPEN_SECONDS);
    session["expires_at"] = json!(expires_at);
    session["url"] = json!(format!("{}/_double/checkout/{}", world.url, session["id"].as_str().unwrap_or_default()));
    let lines = lines(world, call, &session)?;
    if mode == "setup" {
        session["payment_status"] = json!("no_payment_required");
        session["currency"] = call.text("currency").map_or(Value::Null, |currency| json!(currency));
        session["total_details"] = Value::Null;
    } else {
        if lines.is_empty() {
            return Err(Refusal::missing("line_items"));
        }
        let total: i64 = lines.iter().filter_map(|line| line["amount_total"].as_i64()).sum();
        session["amount_subtotal"] = json!(total);
        session["amount_total"] = json!(total);
        session["currency"] = lines[0]["currency"].clone();
        session["customer_creation"] = match call.text("customer_creation") {
            Some(when) => json!(when),
            None if session["customer"].is_null() && mode == "payment" => json!("if_required"),
            None if session["customer"].is_null() => json!("always"),
            None => Value::Null,
        };
    }
    let data = call.params.get(format!(
        "{}_data",
        if mode == "payment" {
            "payment_intent"
        } else if mode == "setup" {
            "setup_intent"
        } else {
            "subscription"
        }
    ));
    let beside = json!({ "lines": lines, "data": data.cloned().unwrap_or_else(|| json!({})) });
    world.beside.insert(session["id"].as_str().unwrap_or_default().to_owned(), beside);
    world.put(&session);
    Ok(session)
}

fn lines(world: &mut World, call: &Call, session: &Value) -> Answer<Vec<Value>> {
    let mut lines = Vec::new();
    for at in 0..call.list("line_items").len() {
        let given = call.below(&format!("line_items/{at}"));
        let price = match given.text("price") {
            Some(price) => world.named("price", price, "line_items[price]")?,
            None if given.has("price_data") => catalog::make_price(world, &given.below("price_data"))?,
            None => return Err(Refusal::missing(&format!("line_items[{at}][price]"))),
        };
        if (session["mode"] == "payment") != price["recurring"].is_null() {
            let message = "You specified a price that does not fit the mode of the session.";
            return Err(Refusal::invalid(message, Some("line_items")));
        }
        let quantity = given.amount("quantity")?.unwrap_or(1);
        let total = price["unit_amount"].as_i64().unwrap_or_default() * quantity;
        let mut line = shapes::blank("item");
        line["id"] = json!(world.new_id("li"));
        line["amount_subtotal"] = json!(total);
        line["amount_total"] = json!(total);
        line["currency"] = price["currency"].clone();
        let product = price["product"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
        line["description"] = product["name"].clone();
        line["quantity"] = json!(quantity);
        line["price"] = price;
        lines.push(line);
    }
    Ok(lines)
}

pub fn line_items(world: &World, session: &str) -> Value {
    let lines = world.beside.get(session).and_then(|beside| beside["lines"].as_array()).cloned().unwrap_or_default();
    shapes::list(&format!("/v1/checkout/sessions/{session}/line_items"), lines)
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["metadata"])?;
    let mut session = world.get("checkout.session", id)?;
    call.copy_metadata(&mut session);
    world.put(&session);
    Ok(session)
}

pub fn expire(world: &mut World, id: &str) -> Answer {
    let mut session = open(world, id)?;
    session["status"] = json!("expired");
    session["url"] = Value::Null;
    world.put(&session);
    world.emit("checkout.session.expired", &session);
    Ok(session)
}

pub fn open(world: &World, id: &str) -> Answer {
    let session = world.get("checkout.session", id)?;
    if session["status"] == "open" {
        return Ok(session);
    }
    let status = session["status"].as_str().unwrap_or_default();
    let message =
        format!("Only Checkout Sessions with a status in [\"open\"] can do this. This Checkout Session has a status of {status}.");
    Err(Refusal::invalid(message, None))
}

/// What has run out by now.
pub fn tick(world: &mut World) {
    let now = world.now();
    for session in world.all("checkout.session") {
        let over = session["status"] == "open" && session["expires_at"].as_i64().is_some_and(|at| at <= now);
        if let (true, Some(id)) = (over, session["id"].as_str()) {
            // It was open a line ago.
            expire(world, id).ok();
        }
    }
}

/// Whether the customer's bank must be asked for this card.
pub fn asks(card: &Card) -> bool {
    matches!(card.conduct, Conduct::AsksAlways | Conduct::AsksUntilSetUp)
}

/// The customer pays with `card`; a declined one leaves the session open.
pub fn complete(world: &mut World, id: &str, card: &'static Card, email: Option<&str>) -> Answer {
    let mut session = open(world, id)?;
    let email =
        email.map(|email| json!(email)).filter(|_| session["customer_email"].is_null()).unwrap_or(session["customer_email"].clone());
    let wants_customer = session["mode"] == "subscription" || session["customer_creation"] == "always";
    if session["customer"].is_null() && wants_customer {
        let mut customer = world.blank("customer", "cus");
        customer["email"] = email.clone();
        customer["invoice_prefix"] = json!(super::world::letters(&customer["id"].to_string(), 8).to_uppercase());
        world.put(&customer);
        world.emit("customer.created", &customer);
        session["customer"] = customer["id"].clone();
    }
    let method = customers::new_method(world, card);
    let data = world.beside.get(id).map(|beside| beside["data"].clone()).unwrap_or_default();
    let paid = match session["mode"].as_str() {
        Some("payment") => pay(world, &mut session, &method, &data)?,
        Some("setup") => save(world, &mut session, &method, &data)?,
        _ => subscribe(world, &mut session, &method, &data)?,
    };
    session["payment_status"] = json!(paid);
    session["status"] = json!("complete");
    session["url"] = Value::Null;
    session["customer_details"] = json!({
        "address": null, "business_name": null, "email": email, "individual_name": null, "name": null, "phone": null, "tax_exempt": "none",
        "tax_ids": []
    });
    world.put(&session);
    world.emit("checkout.session.completed", &session);
    Ok(session)
}

fn pay(world: &mut World, session: &mut Value, method: &Value, data: &Value) -> Answer<&'static str> {
    let mut of = json!({ "amount": session["amount_total"], "currency": session["currency"], "customer": session["customer"] });
    for name in ["metadata", "description", "setup_future_usage", "receipt_email", "transfer_group", "transfer_data", "capture_method"] {
        if let Some(value) = data.get(name) {
            of[name] = value.clone();
        }
    }
    let payment = payments::make(world, &of, &method["id"]);
    let payment = payments::run(world, payment, &payments::How { bank_says_yes: true, ..payments::How::default() })?;
    session["payment_intent"] = payment["id"].clone();
    Ok(if payment["status"] == "succeeded" { "paid" } else { "unpaid" })
}

fn save(world: &mut World, session: &mut Value, method: &Value, data: &Value) -> Answer<&'static str> {
    let mut made = setup::make(world);
    made["customer"] = session["customer"].clone();
    made["payment_method"] = method["id"].clone();
    for name in ["metadata", "description"] {
        if let Some(value) = data.get(name) {
            made[name] = value.clone();
        }
    }
    world.put(&made);
    world.emit("setup_intent.created", &made);
    session["setup_intent"] = setup::run(world, made, None, true)?["id"].clone();
    Ok("no_payment_required")
}

fn subscribe(world: &mut World, session: &mut Value, method: &Value, data: &Value) -> Answer<&'static str> {
    customers::attach(world, method.clone(), &session["customer"])?;
    let id = session["id"].as_str().unwrap_or_default();
    let lines = world.beside.get(id).and_then(|beside| beside["lines"].as_array()).cloned().unwrap_or_default();
    let items = lines.iter().map(|line| (line["price"].clone(), line["quantity"].as_i64().unwrap_or(1))).collect();
    let subscription = subscriptions::begin(world, &session["customer"], items, &method["id"], data)?;
    session["subscription"] = subscription["id"].clone();
    session["invoice"] = subscription["latest_invoice"].clone();
    Ok(if subscription["status"] == "trialing" { "no_payment_required" } else { "paid" })
}

/// A payment that took its time has ended: its session says so.
pub fn follow(world: &mut World, payment: &Value) {
    let sessions = world.all("checkout.session");
    let Some(mut session) = sessions.into_iter().find(|session| session["payment_intent"] == payment["id"]) else { return };
    let paid = payment["status"] == "succeeded";
    if paid {
        session["payment_status"] = json!("paid");
        world.put(&session);
    }
    world.emit(if paid { "checkout.session.async_payment_succeeded" } else { "checkout.session.async_payment_failed" }, &session);
}
