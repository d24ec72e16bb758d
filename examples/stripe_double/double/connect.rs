//! Connected accounts, their onboarding, and whether they may do what is asked.

use serde_json::{Value, json};

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::shapes;
use super::world::World;

const FIELDS: [&str; 11] = [
    "type",
    "country",
    "email",
    "capabilities",
    "metadata",
    "business_type",
    "business_profile",
    "controller",
    "settings",
    "default_currency",
    "tos_acceptance",
];
const WANTED: [&str; 4] = ["business_type", "external_account", "tos_acceptance.date", "tos_acceptance.ip"];
const LINK_SECONDS: i64 = 300;

/// `Stripe-Account` must be an account of ours.
pub fn may_act(world: &mut World, account: &str) -> Answer<()> {
    if of_platform(world, account).is_some() {
        return Ok(());
    }
    let message = format!(
        "The provided key does not have access to account '{account}' (or that account does not exist). Application access may have been revoked."
    );
    Err(Refusal::new(403, "invalid_request_error", message).with("code", json!("account_invalid")))
}

/// An account by its id, whoever is acting.
pub fn of_platform(world: &mut World, account: &str) -> Option<Value> {
    let acting = world.acting.take();
    let found = world.find(account).filter(|found| found["object"] == "account" && found["deleted"] != true);
    world.acting = acting;
    found
}

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&FIELDS)?;
    call.one_of("type", &["express", "standard", "custom"])?;
    let mut account = world.blank("account", "acct");
    let id = format!("acct_1{}", super::world::letters(&account["id"].to_string(), 15));
    account["id"] = json!(id);
    account["type"] = json!(call.text("type").unwrap_or("express"));
    account["country"] = json!(call.text("country").unwrap_or("US"));
    account["external_accounts"]["url"] = json!(format!("/v1/accounts/{id}/external_accounts"));
    account["controller"] = json!({
        "type": "application", "is_controller": true, "fees": { "payer": "application_express" },
        "losses": { "payments": "application" }, "requirement_collection": "stripe", "stripe_dashboard": { "type": "express" }
    });
    account["tos_acceptance"] = json!({ "date": null, "ip": null, "user_agent": null });
    let requirements = json!({
        "alternatives": [], "current_deadline": null, "currently_due": WANTED, "disabled_reason": "requirements.past_due", "errors": [],
        "eventually_due": WANTED, "past_due": WANTED, "pending_verification": []
    });
    account["future_requirements"] = json!({
        "alternatives": [], "current_deadline": null, "currently_due": [], "disabled_reason": null, "errors": [], "eventually_due": [],
        "past_due": [], "pending_verification": []
    });
    account["requirements"] = requirements;
    for name in call.params["capabilities"].as_object().into_iter().flat_map(serde_json::Map::keys) {
        account["capabilities"][name.as_str()] = json!("inactive");
    }
    if call.params["capabilities"].is_null() {
        account["capabilities"] = json!({ "card_payments": "inactive", "transfers": "inactive" });
    }
    write(world, call, account)
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let account = world.get("account", id)?;
    write(world, call, account)
}

fn write(world: &mut World, call: &Call, mut account: Value) -> Answer {
    call.copy(&mut account, &["email", "business_type", "default_currency"]);
    call.copy_metadata(&mut account);
    for (name, value) in call.params["business_profile"].as_object().into_iter().flatten() {
        account["business_profile"][name.as_str()] = value.clone();
    }
    world.put(&account);
    Ok(account)
}

pub fn delete(world: &mut World, id: &str) -> Answer {
    world.get("account", id)?;
    let gone = json!({ "id": id, "object": "account", "deleted": true });
    world.put(&gone);
    emit_within(world, id, "account.application.deauthorized", &json!({ "id": "ca_double", "object": "application", "name": "Rigmark" }));
    Ok(gone)
}

pub fn link(world: &mut World, call: &Call) -> Answer {
    call.only(&["account", "refresh_url", "return_url", "type", "collection_options", "collect"])?;
    call.need("type")?;
    call.one_of("type", &["account_onboarding", "account_update"])?;
    let account = world.named("account", call.need("account")?, "account")?;
    let (refresh, back) = (call.need("refresh_url")?, call.need("return_url")?);
    let id = account["id"].as_str().unwrap_or_default();
    let mut link = shapes::blank("account_link");
    link["created"] = json!(world.now());
    link["expires_at"] = json!(world.now() + LINK_SECONDS);
    link["url"] = json!(format!("{}/_double/onboard/{id}", world.url));
    world.beside.insert(id.to_owned(), json!({ "refresh_url": refresh, "return_url": back }));
    Ok(link)
}

pub fn login_link(world: &mut World, id: &str) -> Answer {
    let account = world.get("account", id)?;
    if account["details_submitted"] != true {
        return Err(Refusal::invalid("Cannot create a login link for an account that has not completed onboarding.", None));
    }
    Ok(json!({ "object": "login_link", "created": world.now(), "url": format!("{}/_double/dashboard/{id}", world.url) }))
}

/// What becomes of an account: `complete` onboarding, `restrict` payouts, `dead_bank` (payouts fail from now on), `reject`.
pub fn set(world: &mut World, id: &str, outcome: &str) -> Answer {
    let mut account = world.get("account", id)?;
    let (enabled, status) = match outcome {
        "complete" | "dead_bank" => (true, "active"),
        "restrict" => (false, "active"),
        "reject" => (false, "inactive"),
        other => return Err(Refusal::invalid(format!("No such outcome: {other}"), Some("outcome"))),
    };
    account["details_submitted"] = json!(true);
    account["charges_enabled"] = json!(status == "active");
    account["payouts_enabled"] = json!(enabled);
    let names: Vec<String> = account["capabilities"].as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect();
    for name in names {
        account["capabilities"][name.as_str()] = json!(status);
    }
    let due = if enabled { json!([]) } else { json!(["external_account"]) };
    for name in ["currently_due", "eventually_due", "past_due"] {
        account["requirements"][name] = due.clone();
    }
    account["requirements"]["disabled_reason"] = match outcome {
        "restrict" => json!("requirements.past_due"),
        "reject" => json!("rejected.other"),
        _ => Value::Null,
    };
    let bank = bank_account(world, &account, outcome == "dead_bank");
    account["external_accounts"]["data"] = json!([bank]);
    world.put(&account);
    emit_within(world, id, "account.updated", &account);
    Ok(account)
}

fn bank_account(world: &mut World, account: &Value, dead: bool) -> Value {
    let known = account["external_accounts"]["data"][0]["id"].as_str().map(str::to_owned);
    let id = known.unwrap_or_else(|| world.new_id("ba"));
    json!({
        "id": id, "object": "bank_account", "account": account["id"], "account_holder_name": null, "account_holder_type": null,
        "account_type": null, "available_payout_methods": ["standard"], "bank_name": "STRIPE TEST BANK", "country": "US", "currency": "usd",
        "default_for_currency": true, "fingerprint": "dL5GfqcqGGJVYGHK", "future_requirements": null, "last4": if dead { "1116" } else { "6789" },
        "metadata": {}, "requirements": null, "routing_number": "110000000", "status": "new"
    })
}

/// An event of the connected account itself.
pub fn emit_within(world: &mut World, account: &str, kind: &str, object: &Value) {
    let acting = world.acting.replace(account.to_owned());
    world.emit(kind, object);
    world.acting = acting;
}
