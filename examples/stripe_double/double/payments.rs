//! PaymentIntents: made, confirmed, authenticated, captured, cancelled.

use serde_json::{Value, json};

use super::call::Call;
use super::cards::Conduct;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{charges, checkout, customers, invoices};

const FIELDS: [&str; 25] = [
    "amount",
    "currency",
    "customer",
    "payment_method",
    "payment_method_types",
    "automatic_payment_methods",
    "payment_method_data",
    "confirm",
    "off_session",
    "capture_method",
    "metadata",
    "description",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
    "application_fee_amount",
    "on_behalf_of",
    "error_on_requires_action",
    "payment_method_options",
    "confirmation_method",
    "use_stripe_sdk",
];
const USD_CENTS_MIN: i64 = 50;
const AMOUNT_MAX: i64 = 99_999_999;

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&FIELDS)?;
    call.need("amount")?;
    call.need("currency")?;
    let mut payment = world.blank("payment_intent", "pi");
    let secret = super::world::letters(&format!("secret {}", payment["id"]), 25);
    payment["client_secret"] = json!(format!("{}_secret_{secret}", payment["id"].as_str().unwrap_or_default()));
    write(world, call, &mut payment)?;
    if call.has("automatic_payment_methods") {
        let redirects = call.text("automatic_payment_methods/allow_redirects").unwrap_or("always");
        payment["automatic_payment_methods"] = json!({ "allow_redirects": redirects, "enabled": true });
    }
    world.put(&payment);
    world.emit("payment_intent.created", &payment);
    if call.flag("confirm")? == Some(true) { confirm(world, call, payment) } else { Ok(payment) }
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let mut payment = world.get("payment_intent", id)?;
    if call.has("amount") && !status_is(&payment, &["requires_payment_method", "requires_confirmation", "requires_action"]) {
        return Err(unexpected(&payment, "update the amount of"));
    }
    write(world, call, &mut payment)?;
    world.put(&payment);
    Ok(payment)
}

fn write(world: &mut World, call: &Call, payment: &mut Value) -> Answer<()> {
    if let Some(amount) = call.amount("amount")? {
        payment["amount"] = json!(amount);
    }
    if let Some(currency) = call.text("currency") {
        payment["currency"] = json!(currency.to_lowercase());
    }
    check_amount(payment)?;
    if let Some(customer) = call.text("customer") {
        payment["customer"] = customers::named(world, customer)?["id"].clone();
    }
    if let Some(fee) = call.integer("application_fee_amount")? {
        payment["application_fee_amount"] = json!(fee);
    }
    if let Some(way) = call.one_of("capture_method", &["automatic", "automatic_async", "manual"])? {
        payment["capture_method"] = json!(way);
    }
    call.one_of("setup_future_usage", &["off_session", "on_session"])?;
    let texts = ["description", "receipt_email", "setup_future_usage", "transfer_group", "on_behalf_of"];
    call.copy(payment, &texts);
    call.copy(payment, &["statement_descriptor", "statement_descriptor_suffix"]);
    call.copy_metadata(payment);
    if call.has("payment_method_types") {
        payment["payment_method_types"] = json!(call.texts("payment_method_types"));
    }
    if call.has("transfer_data") {
        payment["transfer_data"] = json!({ "destination": call.need("transfer_data/destination")? });
        if let Some(amount) = call.amount("transfer_data/amount")? {
            payment["transfer_data"]["amount"] = json!(amount);
        }
    }
    take_method(world, call, payment)
}

fn check_amount(payment: &Value) -> Answer<()> {
    let amount = payment["amount"].as_i64().unwrap_or_default();
    let currency = payment["currency"].as_str().unwrap_or_default();
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(Refusal::invalid(format!("Invalid currency: {currency}."), Some("currency")));
    }
    if currency == "usd" && amount < USD_CENTS_MIN {
        return Err(Refusal::coded("amount_too_small", "Amount must be at least $0.50 usd", Some("amount")));
    }
    if amount > AMOUNT_MAX {
        return Err(Refusal::coded("amount_too_large", "Amount must be no more than $999,999.99", Some("amount")));
    }
    Ok(())
}

/// Sets the payment method that the call names, if it does.
fn take_method(world: &mut World, call: &Call, payment: &mut Value) -> Answer<()> {
    let method = if let Some(method) = call.text("payment_method") {
        customers::usable(world, method, "payment_method")?
    } else if call.has("payment_method_data") {
        customers::method_from(world, &call.below("payment_method_data"))?
    } else {
        return Ok(());
    };
    let owner = &method["customer"];
    if !owner.is_null() && *owner != payment["customer"] {
        let message = format!(
            "The provided PaymentMethod cannot be used with this PaymentIntent: it belongs to a Customer, and you must include the Customer in the customer parameter. {}",
            method["id"].as_str().unwrap_or_default()
        );
        return Err(Refusal::invalid(message, Some("payment_method")));
    }
    payment["payment_method"] = method["id"].clone();
    if payment["status"] == "requires_payment_method" {
        payment["status"] = json!("requires_confirmation");
    }
    Ok(())
}

pub fn confirm_route(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let payment = world.get("payment_intent", id)?;
    if !status_is(&payment, &["requires_payment_method", "requires_confirmation", "requires_action"]) {
        return Err(unexpected(&payment, "confirm"));
    }
    let confirmed = confirm(world, call, payment)?;
    invoices::follow(world, &confirmed);
    Ok(confirmed)
}

fn confirm(world: &mut World, call: &Call, mut payment: Value) -> Answer {
    take_method(world, call, &mut payment)?;
    call.copy(&mut payment, &["receipt_email", "setup_future_usage"]);
    let how = How {
        off_session: call.text("off_session").is_some_and(|text| text != "false"),
        error_on_action: call.flag("error_on_requires_action")? == Some(true),
        return_url: call.text("return_url"),
        bank_says_yes: false,
    };
    run(world, payment, &how)
}

/// What a confirmation says beyond the payment itself.
#[derive(Default)]
pub struct How<'a> {
    pub off_session: bool,
    pub error_on_action: bool,
    pub return_url: Option<&'a str>,
    /// The customer has authenticated already, on the page.
    pub bank_says_yes: bool,
}

/// A payment that the double makes by itself, for an invoice or a Checkout session.
pub fn make(world: &mut World, of: &Value, method: &Value) -> Value {
    let mut payment = world.blank("payment_intent", "pi");
    let secret = super::world::letters(&format!("secret {}", payment["id"]), 25);
    payment["client_secret"] = json!(format!("{}_secret_{secret}", payment["id"].as_str().unwrap_or_default()));
    for (name, value) in of.as_object().into_iter().flatten() {
        payment[name.as_str()] = value.clone();
    }
    payment["payment_method"] = method.clone();
    payment["status"] = json!(if method.is_null() { "requires_payment_method" } else { "requires_confirmation" });
    world.put(&payment);
    world.emit("payment_intent.created", &payment);
    payment
}

/// Does what the card does.
pub fn run(world: &mut World, payment: Value, how: &How<'_>) -> Answer {
    let Some(method) = payment["payment_method"].as_str().map(str::to_owned) else {
        let message = "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method or ConfirmationToken.";
        return Err(Refusal::coded("payment_intent_unexpected_state", message, None).with("payment_intent", payment));
    };
    let conduct = world.cards.get(&method).map_or(Conduct::Pays, |card| card.conduct);
    let asks = !how.bank_says_yes && asks(world, conduct, &method, how.off_session);
    match conduct {
        Conduct::Declines(code, decline_code) => refuse(world, payment, code, decline_code),
        Conduct::DeclinesLater => refuse(world, payment, "card_declined", "generic_decline"),
        _ if asks && how.off_session => refuse(world, payment, "authentication_required", "authentication_required"),
        _ if asks && how.error_on_action => refuse(world, payment, "authentication_required", ""),
        _ if asks => Ok(ask(world, payment, how.return_url)),
        _ if world.payments_wait => Ok(wait(world, payment)),
        _ => Ok(succeed(world, payment)),
    }
}

/// Whether the bank wants to hear from its customer.
pub fn asks(world: &World, conduct: Conduct, method: &str, off_session: bool) -> bool {
    match conduct {
        Conduct::AsksAlways => true,
        Conduct::AsksUntilSetUp => !(off_session && world.set_up.contains(method)),
        _ => false,
    }
}

fn ask(world: &mut World, mut payment: Value, return_url: Option<&str>) -> Value {
    let page = format!("{}/_double/authenticate/{}", world.url, payment["id"].as_str().unwrap_or_default());
    payment["status"] = json!("requires_action");
    payment["next_action"] = match return_url {
        Some(return_url) => json!({ "type": "redirect_to_url", "redirect_to_url": { "return_url": return_url, "url": page } }),
        None => json!({ "type": "use_stripe_sdk", "use_stripe_sdk": { "type": "three_d_secure_redirect", "stripe_js": page } }),
    };
    world.put(&payment);
    world.emit("payment_intent.requires_action", &payment);
    payment
}

fn wait(world: &mut World, mut payment: Value) -> Value {
    payment["status"] = json!("processing");
    payment["next_action"] = Value::Null;
    world.put(&payment);
    world.emit("payment_intent.processing", &payment);
    payment
}

/// Charges the payment method: everything, or with manual capture only a hold on it.
pub fn succeed(world: &mut World, mut payment: Value) -> Value {
    let manual = payment["capture_method"] == "manual";
    payment["next_action"] = Value::Null;
    payment["last_payment_error"] = Value::Null;
    let charge = charges::new(world, &payment, None, manual);
    payment["latest_charge"] = charge["id"].clone();
    if manual {
        payment["status"] = json!("requires_capture");
        payment["amount_capturable"] = payment["amount"].clone();
    } else {
        payment["status"] = json!("succeeded");
        payment["amount_received"] = payment["amount"].clone();
    }
    world.put(&payment);
    keep_method(world, &payment);
    world.emit("charge.succeeded", &charge);
    world.emit(if manual { "payment_intent.amount_capturable_updated" } else { "payment_intent.succeeded" }, &payment);
    if !manual {
        charges::afterwards(world, &charge);
    }
    payment
}

/// `setup_future_usage` saves the method with the customer.
fn keep_method(world: &mut World, payment: &Value) {
    let (Some(id), false, false) =
        (payment["payment_method"].as_str(), payment["customer"].is_null(), payment["setup_future_usage"].is_null())
    else {
        return;
    };
    world.set_up.insert(id.to_owned());
    if let Some(method) = world.find(id) {
        // A method that cannot be attached was declined before.
        customers::attach(world, method, &payment["customer"]).ok();
    }
}

/// Declines: the payment wants another method, and the caller gets the card's error.
pub fn refuse(world: &mut World, mut payment: Value, code: &str, decline_code: &str) -> Answer {
    let charge = charges::new(world, &payment, Some((code, decline_code)), false);
    let method = payment["payment_method"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
    let refusal = customers::decline(code, decline_code).with("charge", charge["id"].clone()).with("payment_method", method);
    payment["status"] = json!("requires_payment_method");
    payment["next_action"] = Value::Null;
    payment["payment_method"] = Value::Null;
    payment["latest_charge"] = charge["id"].clone();
    payment["last_payment_error"] = refusal.error.clone();
    world.put(&payment);
    world.emit("charge.failed", &charge);
    world.emit("payment_intent.payment_failed", &payment);
    Err(refusal.with("payment_intent", payment))
}

/// The customer's answer to a request for authentication.
pub fn authenticate(world: &mut World, id: &str, passes: bool) -> Answer {
    let payment = world.get("payment_intent", id)?;
    if payment["status"] != "requires_action" {
        return Err(unexpected(&payment, "authenticate"));
    }
    end(world, payment, passes, "payment_intent_authentication_failure", "")
}

/// Ends `processing`.
pub fn settle(world: &mut World, id: &str, succeeds: bool) -> Answer {
    let payment = world.get("payment_intent", id)?;
    if payment["status"] != "processing" {
        return Err(unexpected(&payment, "settle"));
    }
    end(world, payment, succeeds, "card_declined", "generic_decline")
}

/// The end of a payment that nobody waits for, and what hangs on it.
fn end(world: &mut World, payment: Value, succeeds: bool, code: &str, decline_code: &str) -> Answer {
    let id = payment["id"].as_str().unwrap_or_default().to_owned();
    if succeeds {
        succeed(world, payment);
    } else {
        // The error is for a caller who waits; here it stays in `last_payment_error`.
        let _declined = refuse(world, payment, code, decline_code);
    }
    let payment = world.get("payment_intent", &id)?;
    checkout::follow(world, &payment);
    invoices::follow(world, &payment);
    Ok(payment)
}

pub fn capture(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&[
        "amount_to_capture",
        "application_fee_amount",
        "metadata",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "transfer_data",
    ])?;
    let mut payment = world.get("payment_intent", id)?;
    if payment["status"] != "requires_capture" {
        return Err(unexpected(&payment, "capture"));
    }
    let held = payment["amount_capturable"].as_i64().unwrap_or_default();
    let amount = call.amount("amount_to_capture")?.unwrap_or(held);
    if amount > held {
        let message = format!(
            "The payment could not be captured because the requested capture amount is greater than the authorized amount ({held})."
        );
        return Err(Refusal::coded("amount_too_large", message, Some("amount_to_capture")));
    }
    call.copy_metadata(&mut payment);
    payment["status"] = json!("succeeded");
    payment["amount_received"] = json!(amount);
    payment["amount_capturable"] = json!(0);
    world.put(&payment);
    let charge = charges::capture(world, &payment, amount);
    world.emit("charge.captured", &charge);
    world.emit("payment_intent.succeeded", &payment);
    charges::afterwards(world, &charge);
    Ok(payment)
}

pub fn cancel(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["cancellation_reason"])?;
    let reasons = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"];
    call.one_of("cancellation_reason", &reasons)?;
    let mut payment = world.get("payment_intent", id)?;
    if status_is(&payment, &["succeeded", "canceled", "processing"]) {
        return Err(unexpected(&payment, "cancel"));
    }
    payment["status"] = json!("canceled");
    payment["canceled_at"] = json!(world.now());
    payment["amount_capturable"] = json!(0);
    payment["next_action"] = Value::Null;
    call.copy(&mut payment, &["cancellation_reason"]);
    world.put(&payment);
    world.emit("payment_intent.canceled", &payment);
    Ok(payment)
}

fn status_is(payment: &Value, any: &[&str]) -> bool {
    any.iter().any(|status| payment["status"] == **status)
}

fn unexpected(payment: &Value, what: &str) -> Refusal {
    let status = payment["status"].as_str().unwrap_or_default();
    let message = format!("You cannot {what} this PaymentIntent because it has a status of {status}.");
    Refusal::coded("payment_intent_unexpected_state", message, None).with("payment_intent", payment.clone())
}
