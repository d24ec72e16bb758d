//! Transfers to connected accounts and their reversals, and what destination charges pass on.

use serde_json::{Value, json};

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{balance, connect, shapes};

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&["amount", "currency", "destination", "source_transaction", "transfer_group", "metadata", "description", "source_type"])?;
    let amount = call.amount("amount")?.ok_or_else(|| Refusal::missing("amount"))?;
    let currency = call.need("currency")?.to_lowercase();
    let destination = world.named("account", call.need("destination")?, "destination")?;
    if destination["capabilities"]["transfers"] != "active" {
        let message = "Your destination account needs to have at least one of the following capabilities enabled: transfers, crypto_transfers, legacy_payments";
        return Err(Refusal::coded("insufficient_capabilities_for_transfer", message, None));
    }
    match call.text("source_transaction") {
        Some(charge) => {
            let charge = world.named("charge", charge, "source_transaction")?;
            if amount > charge["amount_captured"].as_i64().unwrap_or_default() {
                return Err(Refusal::invalid("The transfer amount is greater than that of its source transaction", Some("amount")));
            }
        }
        None => {
            let available = balance::sums(world).get(&currency).map_or(0, |sum| sum[0]);
            if amount > available {
                let message = "You have insufficient available funds in your Stripe account. Try adding funds directly to your available balance by creating Charges using the 4000000000000077 test card. See: https://docs.stripe.com/testing#available-balance";
                return Err(Refusal::coded("balance_insufficient", message, None));
            }
        }
    }
    let mut transfer = world.blank("transfer", "tr");
    call.copy(&mut transfer, &["transfer_group", "description", "source_transaction"]);
    call.copy_metadata(&mut transfer);
    Ok(send(world, transfer, amount, &currency, &destination["id"]))
}

fn send(world: &mut World, mut transfer: Value, amount: i64, currency: &str, destination: &Value) -> Value {
    let id = transfer["id"].as_str().unwrap_or_default().to_owned();
    transfer["amount"] = json!(amount);
    transfer["currency"] = json!(currency);
    transfer["destination"] = destination.clone();
    transfer["reversals"] = shapes::list(&format!("/v1/transfers/{id}/reversals"), Vec::new());
    if transfer["transfer_group"].is_null() {
        transfer["transfer_group"] = json!(format!("group_{}", &id["tr_".len()..]));
    }
    transfer["balance_transaction"] = balance::book(world, "transfer", -amount, 0, &transfer);
    let payment = world.new_id("py");
    transfer["destination_payment"] = json!(payment);
    world.put(&transfer);
    world.emit("transfer.created", &transfer);
    within(world, destination, |world| {
        let mut charge = world.blank("charge", "py");
        charge["id"] = json!(payment);
        charge["amount"] = json!(amount);
        charge["amount_captured"] = json!(amount);
        charge["currency"] = json!(currency);
        charge["captured"] = json!(true);
        charge["paid"] = json!(true);
        charge["source_transfer"] = json!(id);
        charge["balance_transaction"] = balance::book(world, "payment", amount, 0, &charge);
        world.put(&charge);
        world.emit("payment.created", &charge);
    });
    transfer
}

/// Acts as a connected account for a while.
fn within<T>(world: &mut World, account: &Value, act: impl FnOnce(&mut World) -> T) -> T {
    let acting = world.acting.take();
    world.acting = account.as_str().map(str::to_owned);
    let done = act(world);
    world.acting = acting;
    done
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["metadata", "description"])?;
    let mut transfer = world.get("transfer", id)?;
    call.copy(&mut transfer, &["description"]);
    call.copy_metadata(&mut transfer);
    world.put(&transfer);
    world.emit("transfer.updated", &transfer);
    Ok(transfer)
}

pub fn reverse_route(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["amount", "metadata", "description", "refund_application_fee"])?;
    let transfer = world.get("transfer", id)?;
    let left = left(&transfer);
    let amount = call.amount("amount")?.unwrap_or(left);
    let mut reversal = reverse(world, transfer, amount)?;
    call.copy_metadata(&mut reversal);
    world.put(&reversal);
    Ok(reversal)
}

fn left(transfer: &Value) -> i64 {
    transfer["amount"].as_i64().unwrap_or_default() - transfer["amount_reversed"].as_i64().unwrap_or_default()
}

fn reverse(world: &mut World, mut transfer: Value, amount: i64) -> Answer {
    let left = left(&transfer);
    if amount > left || left == 0 {
        let message = format!("Reversal amount ({amount}) is greater than what has not been reversed of the transfer ({left}).");
        return Err(Refusal::invalid(message, Some("amount")));
    }
    let currency = transfer["currency"].as_str().unwrap_or_default().to_owned();
    let has = within(world, &transfer["destination"], |world| balance::sums(world).get(&currency).map_or(0, |sum| sum[0]));
    if has < amount {
        let message = "The recipient of this transfer does not have sufficient funds in their Stripe balance to reverse this amount.";
        return Err(Refusal::coded("balance_insufficient", message, None));
    }
    connect::of_platform(world, transfer["destination"].as_str().unwrap_or_default())
        .ok_or_else(|| Refusal::no_such("account", "of the transfer", Some("destination")))?;
    let mut reversal = world.blank("transfer_reversal", "trr");
    reversal["amount"] = json!(amount);
    reversal["currency"] = json!(currency);
    reversal["transfer"] = transfer["id"].clone();
    reversal["balance_transaction"] = balance::book(world, "transfer_refund", amount, 0, &reversal);
    within(world, &transfer["destination"], |world| balance::book(world, "payment_refund", -amount, 0, &reversal));
    world.put(&reversal);
    let reversed = transfer["amount_reversed"].as_i64().unwrap_or_default() + amount;
    transfer["amount_reversed"] = json!(reversed);
    transfer["reversed"] = json!(left == amount);
    if let Some(all) = transfer["reversals"]["data"].as_array_mut() {
        all.insert(0, reversal.clone());
    }
    world.put(&transfer);
    world.emit("transfer.reversed", &transfer);
    Ok(reversal)
}

pub fn reversals(world: &World, call: &Call, id: &str) -> Answer {
    let transfer = world.get("transfer", id)?;
    super::lists::page(call, transfer["reversals"]["data"].as_array().cloned().unwrap_or_default())
}

/// `transfer_data`: what a captured charge passes on.
pub fn share(world: &mut World, charge: &Value) {
    let Some(destination) = charge["transfer_data"]["destination"].as_str() else { return };
    let captured = charge["amount_captured"].as_i64().unwrap_or_default();
    let payment = charge["payment_intent"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
    let fee = payment["application_fee_amount"].as_i64().unwrap_or_default();
    let amount = charge["transfer_data"]["amount"].as_i64().unwrap_or(captured - fee);
    let mut transfer = world.blank("transfer", "tr");
    transfer["source_transaction"] = charge["id"].clone();
    transfer["transfer_group"] = charge["transfer_group"].clone();
    let currency = charge["currency"].as_str().unwrap_or_default();
    let transfer = send(world, transfer, amount, currency, &json!(destination));
    let mut charge = charge.clone();
    charge["transfer"] = transfer["id"].clone();
    world.put(&charge);
}

/// Takes back a refund's share of a destination charge.
pub fn reverse_for_refund(world: &mut World, charge: &Value, refund: &mut Value, amount: i64) -> Answer<()> {
    let Some(transfer) = charge["transfer"].as_str().and_then(|id| world.find(id)) else {
        return Err(Refusal::invalid("This charge has no transfer to reverse.", Some("reverse_transfer")));
    };
    let whole = charge["amount_captured"].as_i64().unwrap_or_default().max(1);
    let share = amount.saturating_mul(transfer["amount"].as_i64().unwrap_or_default()) / whole;
    let share = share.min(left(&transfer));
    let mut reversal = reverse(world, transfer, share)?;
    reversal["source_refund"] = refund["id"].clone();
    world.put(&reversal);
    refund["transfer_reversal"] = reversal["id"].clone();
    Ok(())
}
