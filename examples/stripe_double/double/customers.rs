//! Customers and their payment methods.

use serde_json::{Value, json};

use super::call::Call;
use super::cards::{Card, Conduct};
use super::refusal::{Answer, Refusal};
use super::world::World;

const FIELDS: [&str; 11] = [
    "email",
    "name",
    "phone",
    "description",
    "metadata",
    "payment_method",
    "invoice_settings",
    "address",
    "shipping",
    "preferred_locales",
    "tax_exempt",
];

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&FIELDS)?;
    let mut customer = world.blank("customer", "cus");
    let letters = super::world::letters(&customer["id"].to_string(), 8).to_uppercase();
    customer["invoice_prefix"] = json!(letters);
    world.put(&customer);
    if let Some(method) = call.text("payment_method") {
        let method = usable(world, method, "payment_method")?;
        attach(world, method, &customer["id"])?;
    }
    let customer = write(world, call, customer)?;
    world.emit("customer.created", &customer);
    Ok(customer)
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let before = world.get("customer", id)?;
    let customer = write(world, call, before.clone())?;
    world.emit_changed("customer.updated", &before, &customer);
    Ok(customer)
}

fn write(world: &mut World, call: &Call, mut customer: Value) -> Answer {
    call.copy(&mut customer, &["email", "name", "phone", "description", "tax_exempt"]);
    call.copy_metadata(&mut customer);
    for name in ["address", "shipping", "preferred_locales"] {
        if call.has(name) {
            customer[name] = call.params[name].clone();
        }
    }
    if let Some(method) = call.text("invoice_settings/default_payment_method") {
        let method = world.named("payment_method", method, "invoice_settings[default_payment_method]")?;
        if method["customer"] != customer["id"] {
            let message = "The customer does not have a payment method with this ID. The payment method must be attached to the customer.";
            return Err(Refusal::coded("resource_missing", message, Some("invoice_settings[default_payment_method]")));
        }
        customer["invoice_settings"]["default_payment_method"] = method["id"].clone();
    }
    world.put(&customer);
    Ok(customer)
}

pub fn delete(world: &mut World, id: &str) -> Answer {
    let mut customer = world.get("customer", id)?;
    customer["deleted"] = json!(true);
    world.emit("customer.deleted", &customer);
    let gone = json!({ "id": id, "object": "customer", "deleted": true });
    world.put(&gone);
    Ok(gone)
}

/// A customer that a parameter names and that has not been deleted.
pub fn named(world: &World, id: &str) -> Answer {
    let customer = world.named("customer", id, "customer")?;
    if customer["deleted"] == true { Err(Refusal::no_such("customer", id, Some("customer"))) } else { Ok(customer) }
}

/// A payment method by its id, or a new one for a test name such as `pm_card_visa`.
pub fn usable(world: &mut World, id: &str, param: &str) -> Answer {
    match Card::named(id) {
        Some(card) => Ok(new_method(world, card)),
        None => world.named("payment_method", id, param),
    }
}

pub fn new_method(world: &mut World, card: &'static Card) -> Value {
    let mut method = world.blank("payment_method", "pm");
    method["card"] = card.details();
    if let Some(id) = method["id"].as_str() {
        world.cards.insert(id.to_owned(), card);
    }
    world.put(&method);
    method
}

/// `type=card` with `card[token]` or `card[number]`.
pub fn method_from(world: &mut World, call: &Call) -> Answer {
    if call.need("type")? != "card" {
        return Err(Refusal::invalid("The double knows payment methods of type card only.", Some("type")));
    }
    let card = match (call.text("card/token"), call.text("card/number")) {
        (Some(token), _) => Card::named(token),
        (None, Some(number)) => Card::numbered(number),
        (None, None) => return Err(Refusal::missing("card")),
    };
    let Some(card) = card else {
        return Err(Refusal::card("incorrect_number", None, "Your card number is incorrect."));
    };
    let mut method = new_method(world, card);
    for name in ["email", "name", "phone"] {
        if let Some(text) = call.text(&format!("billing_details/{name}")) {
            method["billing_details"][name] = json!(text);
        }
    }
    call.copy_metadata(&mut method);
    world.put(&method);
    Ok(method)
}

pub fn attach_route(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["customer"])?;
    let customer = named(world, call.need("customer")?)?;
    let method = match Card::named(id) {
        Some(card) => new_method(world, card),
        None => world.get("payment_method", id)?,
    };
    attach(world, method, &customer["id"])
}

pub fn attach(world: &mut World, mut method: Value, customer: &Value) -> Answer {
    let id = method["id"].as_str().unwrap_or_default().to_owned();
    if method["customer"] == *customer {
        return Ok(method);
    }
    if !method["customer"].is_null() {
        return Err(Refusal::invalid("The payment method you provided has already been attached to a customer.", None));
    }
    if let Some(Conduct::Declines(code, decline_code)) = world.cards.get(&id).map(|card| card.conduct) {
        return Err(decline(code, decline_code));
    }
    method["customer"] = customer.clone();
    world.put(&method);
    world.emit("payment_method.attached", &method);
    Ok(method)
}

pub fn decline(code: &str, decline_code: &str) -> Refusal {
    let shown = (!decline_code.is_empty()).then_some(decline_code);
    Refusal::card(code, shown, Card::declined_message(code, decline_code))
}

pub fn detach(world: &mut World, id: &str) -> Answer {
    let before = world.get("payment_method", id)?;
    if before["customer"].is_null() {
        return Err(Refusal::invalid("The payment method you provided is not attached to a customer so detachment is impossible.", None));
    }
    let mut method = before.clone();
    method["customer"] = Value::Null;
    world.put(&method);
    for mut customer in world.all("customer") {
        if customer["invoice_settings"]["default_payment_method"] == method["id"] {
            customer["invoice_settings"]["default_payment_method"] = Value::Null;
            world.put(&customer);
        }
    }
    world.emit_changed("payment_method.detached", &before, &method);
    Ok(method)
}
