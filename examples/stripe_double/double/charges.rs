//! Charges: what a PaymentIntent did to a card.

use serde_json::{Value, json};

use super::cards::{Card, Conduct};
use super::world::World;
use super::{balance, disputes, transfers};

/// A charge for `payment`; `declined` is code and decline code.
pub fn new(world: &mut World, payment: &Value, declined: Option<(&str, &str)>, only_held: bool) -> Value {
    let mut charge = world.blank("charge", "ch");
    let amount = payment["amount"].as_i64().unwrap_or_default();
    let same =
        ["amount", "currency", "customer", "description", "metadata", "payment_method", "receipt_email", "transfer_group", "transfer_data"];
    for name in same {
        charge[name] = payment[name].clone();
    }
    charge["payment_intent"] = payment["id"].clone();
    charge["on_behalf_of"] = payment["on_behalf_of"].clone();
    let method = payment["payment_method"].as_str().unwrap_or_default();
    if let Some(method) = world.find(method) {
        charge["billing_details"] = method["billing_details"].clone();
    }
    if let Some(card) = world.cards.get(method) {
        charge["payment_method_details"] = json!({ "type": "card", "card": card.charged(amount) });
    }
    match declined {
        Some((code, decline_code)) => fail(&mut charge, code, decline_code),
        None => pay(world, &mut charge, only_held, amount),
    }
    world.put(&charge);
    charge
}

fn fail(charge: &mut Value, code: &str, decline_code: &str) {
    charge["status"] = json!("failed");
    charge["failure_code"] = json!(code);
    let message = Card::declined_message(code, decline_code);
    charge["failure_message"] = json!(message);
    let reason = if decline_code.is_empty() { code } else { decline_code };
    charge["outcome"] = json!({
        "advice_code": "try_again_later", "network_advice_code": null, "network_decline_code": "01", "network_status": "declined_by_network",
        "reason": reason, "risk_level": "normal", "seller_message": message, "type": "issuer_declined"
    });
}

fn pay(world: &mut World, charge: &mut Value, only_held: bool, amount: i64) {
    charge["paid"] = json!(true);
    charge["calculated_statement_descriptor"] = json!("RIGMARK");
    charge["receipt_url"] = json!(format!("{}/_double/receipts/{}", world.url, charge["id"].as_str().unwrap_or_default()));
    charge["outcome"] = json!({
        "advice_code": null, "network_advice_code": null, "network_decline_code": null, "network_status": "approved_by_network",
        "reason": null, "risk_level": "normal", "risk_score": 12, "seller_message": "Payment complete.", "type": "authorized"
    });
    if !only_held {
        take(world, charge, amount);
    }
}

fn take(world: &mut World, charge: &mut Value, amount: i64) {
    charge["captured"] = json!(true);
    charge["amount_captured"] = json!(amount);
    charge["balance_transaction"] = balance::book(world, "charge", amount, balance::card_fee(amount), charge);
}

pub fn capture(world: &mut World, payment: &Value, amount: i64) -> Value {
    let id = payment["latest_charge"].as_str().unwrap_or_default();
    let mut charge = world.find(id).unwrap_or_default();
    take(world, &mut charge, amount);
    world.put(&charge);
    charge
}

/// What some test cards do once they were charged.
pub fn afterwards(world: &mut World, charge: &Value) {
    transfers::share(world, charge);
    let method = charge["payment_method"].as_str().unwrap_or_default();
    if let Some(Conduct::Disputes(reason)) = world.cards.get(method).map(|card| card.conduct) {
        disputes::open(world, charge.clone(), reason, None);
    }
}
