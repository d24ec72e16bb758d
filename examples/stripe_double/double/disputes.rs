//! Disputes: opened by some cards or on demand, answered with evidence, won or lost.

use serde_json::{Value, json};

use super::balance;
use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;

const FEE_CENTS: i64 = 1500;
const ANSWER_WITHIN_SECONDS: i64 = 9 * 24 * 3600;

/// Opens a dispute of the charge; an `inquiry` takes no money yet. Without an amount: of all that was captured.
pub fn open(world: &mut World, mut charge: Value, reason: &str, amount: Option<i64>) -> Value {
    let mut dispute = world.blank("dispute", "du");
    let inquiry = reason == "inquiry";
    let amount = amount.unwrap_or_else(|| charge["amount_captured"].as_i64().unwrap_or_default());
    dispute["amount"] = json!(amount);
    dispute["currency"] = charge["currency"].clone();
    dispute["charge"] = charge["id"].clone();
    dispute["payment_intent"] = charge["payment_intent"].clone();
    dispute["reason"] = json!(if inquiry { "fraudulent" } else { reason });
    dispute["status"] = json!(if inquiry { "warning_needs_response" } else { "needs_response" });
    dispute["is_charge_refundable"] = json!(inquiry);
    dispute["evidence_details"]["due_by"] = json!(world.now() + ANSWER_WITHIN_SECONDS);
    dispute["evidence_details"]["submission_count"] = json!(0);
    let network = json!({ "brand": "visa", "case_type": if inquiry { "inquiry" } else { "chargeback" }, "network": "visa", "network_reason_code": "10.4" });
    dispute["payment_method_details"] = json!({ "type": "card", "card": network });
    if !inquiry {
        charge["disputed"] = json!(true);
        world.put(&charge);
        move_money(world, &mut dispute, -amount, FEE_CENTS);
    }
    world.put(&dispute);
    world.emit("charge.dispute.created", &dispute);
    if !inquiry {
        world.emit("charge.dispute.funds_withdrawn", &dispute);
    }
    dispute
}

fn move_money(world: &mut World, dispute: &mut Value, amount: i64, fee: i64) {
    let id = balance::book(world, "adjustment", amount, fee, dispute);
    if let (Some(entry), Some(entries)) = (id.as_str().and_then(|id| world.find(id)), dispute["balance_transactions"].as_array_mut()) {
        entries.push(entry);
    }
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["evidence", "metadata", "submit"])?;
    let before = world.get("dispute", id)?;
    if !is_open(&before) {
        return Err(Refusal::invalid("This dispute is already closed", None));
    }
    let mut dispute = before.clone();
    for (name, text) in call.params["evidence"].as_object().into_iter().flatten() {
        if dispute["evidence"].get(name).is_none() {
            return Err(Refusal::coded("parameter_unknown", format!("Received unknown parameter: evidence[{name}]"), Some(name)));
        }
        dispute["evidence"][name.as_str()] = text.clone();
        dispute["evidence_details"]["has_evidence"] = json!(true);
    }
    call.copy_metadata(&mut dispute);
    if call.flag("submit")?.unwrap_or(call.has("evidence")) {
        let inquiry = dispute["status"].as_str().is_some_and(|status| status.starts_with("warning"));
        dispute["status"] = json!(if inquiry { "warning_under_review" } else { "under_review" });
        dispute["evidence_details"]["submission_count"] = json!(1);
    }
    world.put(&dispute);
    world.emit_changed("charge.dispute.updated", &before, &dispute);
    let verdict = match dispute["evidence"]["uncategorized_text"].as_str() {
        Some("winning_evidence") => "won",
        Some("losing_evidence") => "lost",
        _ => return Ok(dispute),
    };
    end(world, id, verdict)
}

fn is_open(dispute: &Value) -> bool {
    dispute["status"].as_str().is_some_and(|status| status.ends_with("needs_response") || status.ends_with("under_review"))
}

/// `won`, `lost` or `warning_closed`; what is won comes back without the fee.
pub fn end(world: &mut World, id: &str, status: &str) -> Answer {
    let mut dispute = world.get("dispute", id)?;
    if !is_open(&dispute) || !["won", "lost", "warning_closed"].contains(&status) {
        return Err(Refusal::invalid(format!("A dispute that is {} cannot become {status}", dispute["status"]), Some("status")));
    }
    let withdrawn = dispute["balance_transactions"].as_array().is_some_and(|entries| !entries.is_empty());
    let wins = status == "won" && withdrawn;
    dispute["status"] = json!(status);
    if wins {
        let amount = dispute["amount"].as_i64().unwrap_or_default();
        move_money(world, &mut dispute, amount, 0);
    }
    world.put(&dispute);
    if wins {
        world.emit("charge.dispute.funds_reinstated", &dispute);
    }
    world.emit("charge.dispute.closed", &dispute);
    Ok(dispute)
}

/// A dispute on demand: `{"charge" or "payment_intent", "reason", "amount"}`.
pub fn demand(world: &mut World, body: &Value) -> Answer {
    let charge = match (body["charge"].as_str(), body["payment_intent"].as_str()) {
        (Some(charge), _) => charge.to_owned(),
        (None, Some(payment)) => world.get("payment_intent", payment)?["latest_charge"].as_str().unwrap_or_default().to_owned(),
        (None, None) => return Err(Refusal::missing("charge")),
    };
    let charge = world.get("charge", &charge)?;
    if charge["captured"] != true || charge["disputed"] == true {
        return Err(Refusal::invalid("Only a captured charge without a dispute can be disputed", Some("charge")));
    }
    Ok(open(world, charge, body["reason"].as_str().unwrap_or("fraudulent"), body["amount"].as_i64()))
}
