//! Refunds: never more than was captured; pending and failing on demand.

use serde_json::{Value, json};

use super::call::Call;
use super::cards::Conduct;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{balance, transfers};

pub fn create(world: &mut World, call: &Call) -> Answer {
    let known =
        ["payment_intent", "charge", "amount", "reason", "metadata", "reverse_transfer", "refund_application_fee", "instructions_email"];
    call.only(&known)?;
    call.one_of("reason", &["duplicate", "fraudulent", "requested_by_customer"])?;
    let mut charge = charge_of(world, call)?;
    let captured = charge["amount_captured"].as_i64().unwrap_or_default();
    let refunded = charge["amount_refunded"].as_i64().unwrap_or_default();
    let amount = call.amount("amount")?.unwrap_or(captured - refunded);
    check(&charge, amount, captured - refunded)?;
    let mut refund = world.blank("refund", "re");
    for (name, from) in [("currency", "currency"), ("charge", "id"), ("payment_intent", "payment_intent")] {
        refund[name] = charge[from].clone();
    }
    refund["amount"] = json!(amount);
    call.copy(&mut refund, &["reason"]);
    call.copy_metadata(&mut refund);
    refund["destination_details"] = json!({ "type": "card", "card": { "reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund" } });
    let conduct = charge["payment_method"].as_str().and_then(|method| world.cards.get(method)).map(|card| card.conduct);
    let pends = world.refunds_wait || conduct == Some(Conduct::RefundPends);
    if pends {
        refund["status"] = json!("pending");
        refund["pending_reason"] = json!("processing");
    }
    if call.flag("reverse_transfer")? == Some(true) {
        transfers::reverse_for_refund(world, &charge, &mut refund, amount)?;
    }
    refund["balance_transaction"] = balance::book(world, "refund", -amount, 0, &refund);
    charge["amount_refunded"] = json!(refunded + amount);
    charge["refunded"] = json!(refunded + amount == captured);
    world.put(&refund);
    world.put(&charge);
    world.emit("refund.created", &refund);
    world.emit("charge.refunded", &charge);
    if conduct == Some(Conduct::RefundFails) && !pends {
        let id = refund["id"].as_str().unwrap_or_default().to_owned();
        end(world, &id, "failed", Some("unknown"))?;
    }
    Ok(refund)
}

fn charge_of(world: &World, call: &Call) -> Answer {
    let id = match (call.text("charge"), call.text("payment_intent")) {
        (Some(charge), _) => charge.to_owned(),
        (None, Some(payment)) => {
            let payment = world.named("payment_intent", payment, "payment_intent")?;
            let status = payment["status"].as_str().unwrap_or_default();
            if status != "succeeded" {
                let message = format!(
                    "This PaymentIntent ({}) does not have a successful charge to refund.",
                    payment["id"].as_str().unwrap_or_default()
                );
                return Err(Refusal::invalid(message, Some("payment_intent")));
            }
            payment["latest_charge"].as_str().unwrap_or_default().to_owned()
        }
        (None, None) => {
            return Err(Refusal::missing("charge or payment_intent"));
        }
    };
    world.named("charge", &id, "charge")
}

fn check(charge: &Value, amount: i64, left: i64) -> Answer<()> {
    let id = charge["id"].as_str().unwrap_or_default();
    if charge["status"] != "succeeded" || charge["captured"] != true {
        return Err(Refusal::invalid(format!("Charge {id} is not refundable."), Some("charge")));
    }
    if charge["disputed"] == true {
        return Err(Refusal::coded("charge_disputed", format!("Charge {id} has been charged back; cannot issue a refund."), None));
    }
    if left <= 0 {
        return Err(Refusal::coded("charge_already_refunded", format!("Charge {id} has already been refunded."), None));
    }
    if amount > left {
        let dollars = |cents: i64| format!("${}.{:02}", cents / 100, cents % 100);
        let message = format!("Refund amount ({}) is greater than unrefunded amount on charge ({})", dollars(amount), dollars(left));
        return Err(Refusal::invalid(message, Some("amount")));
    }
    Ok(())
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["metadata"])?;
    let mut refund = world.get("refund", id)?;
    call.copy_metadata(&mut refund);
    world.put(&refund);
    world.emit("refund.updated", &refund);
    Ok(refund)
}

/// Ends a refund: `succeeded` from pending, `failed` from both, which gives the money back, `canceled` from pending.
pub fn end(world: &mut World, id: &str, status: &str, reason: Option<&str>) -> Answer {
    let before = world.get("refund", id)?;
    let ended = ["failed", "canceled"].iter().any(|ended| before["status"] == **ended);
    if ended || (status != "failed" && before["status"] != "pending") {
        let message = format!("The refund is {} and cannot become {status}.", before["status"]);
        return Err(Refusal::invalid(message, Some("status")));
    }
    let mut refund = before.clone();
    refund["status"] = json!(status);
    if let Some(members) = refund.as_object_mut() {
        members.remove("pending_reason");
    }
    if status != "succeeded" {
        give_back(world, &mut refund, reason.unwrap_or("unknown"));
    }
    world.put(&refund);
    world.emit_changed("refund.updated", &before, &refund);
    if status == "failed" {
        world.emit("refund.failed", &refund);
    }
    Ok(refund)
}

fn give_back(world: &mut World, refund: &mut Value, reason: &str) {
    let amount = refund["amount"].as_i64().unwrap_or_default();
    refund["failure_balance_transaction"] = balance::book(world, "refund_failure", amount, 0, refund);
    if refund["status"] == "failed" {
        refund["failure_reason"] = json!(reason);
    }
    let charge = refund["charge"].as_str().unwrap_or_default();
    if let Some(mut charge) = world.find(charge) {
        charge["amount_refunded"] = json!(charge["amount_refunded"].as_i64().unwrap_or_default() - amount);
        charge["refunded"] = json!(false);
        world.put(&charge);
    }
}
