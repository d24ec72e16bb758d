//! Payouts to bank accounts: pending until the clock passes their arrival, failing when the bank account is dead.

use serde_json::{Value, json};

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{balance, connect};

const ARRIVAL_SECONDS: i64 = 2 * 24 * 3600;
const DEAD_BANK: &str = "1116";

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&["amount", "currency", "method", "description", "metadata", "destination", "statement_descriptor", "source_type"])?;
    let amount = call.amount("amount")?.ok_or_else(|| Refusal::missing("amount"))?;
    let currency = call.need("currency")?.to_lowercase();
    let account = world.acting.clone().and_then(|account| connect::of_platform(world, &account));
    if account.as_ref().is_some_and(|account| account["payouts_enabled"] != true) {
        let message = "Cannot create payouts; this account has requirements that need to be collected.";
        return Err(Refusal::coded("payouts_not_allowed", message, None));
    }
    let available = balance::sums(world).get(&currency).map_or(0, |sum| sum[0]);
    if amount > available {
        return Err(Refusal::coded("balance_insufficient", "You have insufficient funds in your Stripe account for this transfer.", None));
    }
    let mut payout = world.blank("payout", "po");
    payout["amount"] = json!(amount);
    payout["currency"] = json!(currency);
    payout["arrival_date"] = json!(world.now() + ARRIVAL_SECONDS);
    payout["destination"] = account.map_or(Value::Null, |account| account["external_accounts"]["data"][0]["id"].clone());
    call.copy(&mut payout, &["description", "statement_descriptor"]);
    if let Some(method) = call.one_of("method", &["standard", "instant"])? {
        payout["method"] = json!(method);
    }
    call.copy_metadata(&mut payout);
    payout["balance_transaction"] = balance::book(world, "payout", -amount, 0, &payout);
    world.put(&payout);
    world.emit("payout.created", &payout);
    Ok(payout)
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["metadata"])?;
    let mut payout = world.get("payout", id)?;
    call.copy_metadata(&mut payout);
    world.put(&payout);
    world.emit("payout.updated", &payout);
    Ok(payout)
}

/// `paid`, `failed` (also after `paid`) or `canceled`; what does not arrive comes back.
pub fn end(world: &mut World, id: &str, status: &str, failure_code: Option<&str>) -> Answer {
    let mut payout = world.get("payout", id)?;
    let was = payout["status"].as_str().unwrap_or_default().to_owned();
    let possible = match status {
        "paid" | "canceled" => ["pending", "in_transit"].contains(&was.as_str()),
        "failed" => ["pending", "in_transit", "paid"].contains(&was.as_str()),
        _ => false,
    };
    if !possible {
        return Err(Refusal::invalid(format!("A payout that is {was} cannot become {status}."), Some("status")));
    }
    payout["status"] = json!(status);
    if status != "paid" {
        let amount = payout["amount"].as_i64().unwrap_or_default();
        let kind = if status == "failed" { "payout_failure" } else { "payout_cancel" };
        payout["failure_balance_transaction"] = balance::book(world, kind, amount, 0, &payout);
    }
    if status == "failed" {
        payout["failure_code"] = json!(failure_code.unwrap_or("account_closed"));
        payout["failure_message"] = json!("The bank account has been closed.");
    }
    world.put(&payout);
    world.emit(&format!("payout.{status}"), &payout);
    Ok(payout)
}

/// What has arrived, or failed to.
pub fn tick(world: &mut World) {
    let now = world.now();
    let dead = world.acting.clone().and_then(|account| connect::of_platform(world, &account));
    let dead = dead.is_some_and(|account| account["external_accounts"]["data"][0]["last4"] == DEAD_BANK);
    for payout in world.all("payout") {
        let arrived = payout["status"] == "pending" && payout["arrival_date"].as_i64().is_some_and(|at| at <= now);
        if let (true, Some(id)) = (arrived, payout["id"].as_str()) {
            // It was pending a line ago.
            end(world, id, if dead { "failed" } else { "paid" }, None).ok();
        }
    }
}
