//! Balance transactions, and the balance that they make.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::refusal::Answer;
use super::world::World;

const DAY_SECONDS: i64 = 24 * 3600;
/// After which a card payment becomes available.
const CLEARING_SECONDS: i64 = 2 * DAY_SECONDS;

/// Money that moves on the acting account; `fee` is part of `amount`. Returns the id.
pub fn book(world: &mut World, kind: &str, amount: i64, fee: i64, source: &Value) -> Value {
    let mut entry = world.blank("balance_transaction", "txn");
    // `pm_card_bypassPending` is available at once, and so is what a transfer brings.
    let method = source["payment_method"].as_str().and_then(|method| world.cards.get(method));
    let waits = kind == "charge" && method.is_none_or(|card| card.name != "bypassPending");
    entry["type"] = json!(kind);
    entry["reporting_category"] = json!(match kind {
        "payment" => "charge",
        "payment_refund" => "refund",
        "refund_failure" | "payment_failure_refund" => "refund_failure",
        "transfer_refund" => "transfer_reversal",
        "adjustment" => "dispute",
        other => other,
    });
    entry["amount"] = json!(amount);
    entry["fee"] = json!(fee);
    entry["net"] = json!(amount - fee);
    if fee != 0 {
        let detail = json!({ "amount": fee, "application": null, "currency": source["currency"],
                             "description": "Stripe processing fees", "type": "stripe_fee" });
        entry["fee_details"] = json!([detail]);
    }
    entry["currency"] = source["currency"].clone();
    entry["source"] = source["id"].clone();
    entry["description"] = source["description"].clone();
    let available_on = if waits { world.now() + CLEARING_SECONDS } else { world.now() };
    entry["available_on"] = json!(available_on);
    entry["status"] = json!(if waits { "pending" } else { "available" });
    world.put(&entry);
    entry["id"].clone()
}

/// 2.9 % and 30 cents, rounded down.
pub fn card_fee(amount: i64) -> i64 {
    amount.saturating_mul(29) / 1000 + 30
}

/// What has become available since.
pub fn clear(world: &mut World) {
    let now = world.now();
    for mut entry in world.all("balance_transaction") {
        if entry["status"] == "pending" && entry["available_on"].as_i64().is_some_and(|at| at <= now) {
            entry["status"] = json!("available");
            world.put(&entry);
        }
    }
}

/// Available and pending amounts, by currency.
pub fn sums(world: &mut World) -> BTreeMap<String, [i64; 2]> {
    clear(world);
    let mut sums = BTreeMap::new();
    for entry in world.all("balance_transaction") {
        let currency = entry["currency"].as_str().unwrap_or("usd").to_owned();
        let sum: &mut [i64; 2] = sums.entry(currency).or_default();
        sum[usize::from(entry["status"] == "pending")] += entry["net"].as_i64().unwrap_or_default();
    }
    sums
}

pub fn balance(world: &mut World) -> Answer {
    let sums = sums(world);
    let mut balance = super::shapes::blank("balance");
    for (at, name) in ["available", "pending"].into_iter().enumerate() {
        let row =
            |(currency, sum): (&String, &[i64; 2])| json!({ "amount": sum[at], "currency": currency, "source_types": { "card": sum[at] } });
        let mut rows: Vec<Value> = sums.iter().map(row).collect();
        if rows.is_empty() {
            rows.push(json!({ "amount": 0, "currency": "usd", "source_types": { "card": 0 } }));
        }
        balance[name] = Value::Array(rows);
    }
    Ok(balance)
}
