//! SetupIntents: a card saved for later, without a payment.

use serde_json::{Value, json};

use super::call::Call;
use super::cards::Conduct;
use super::refusal::{Answer, Refusal};
use super::world::World;
use super::{customers, payments};

const FIELDS: [&str; 11] = [
    "customer",
    "payment_method",
    "payment_method_types",
    "automatic_payment_methods",
    "payment_method_data",
    "confirm",
    "usage",
    "metadata",
    "description",
    "return_url",
    "on_behalf_of",
];

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&FIELDS)?;
    let mut setup = make(world);
    if call.has("automatic_payment_methods") {
        let redirects = call.text("automatic_payment_methods/allow_redirects").unwrap_or("always");
        setup["automatic_payment_methods"] = json!({ "allow_redirects": redirects, "enabled": true });
    }
    write(world, call, &mut setup)?;
    world.put(&setup);
    world.emit("setup_intent.created", &setup);
    if call.flag("confirm")? == Some(true) { run(world, setup, call.text("return_url"), false) } else { Ok(setup) }
}

pub fn make(world: &mut World) -> Value {
    let mut setup = world.blank("setup_intent", "seti");
    let secret = super::world::letters(&format!("secret {}", setup["id"]), 25);
    setup["client_secret"] = json!(format!("{}_secret_{secret}", setup["id"].as_str().unwrap_or_default()));
    setup
}

fn write(world: &mut World, call: &Call, setup: &mut Value) -> Answer<()> {
    call.copy(setup, &["description", "on_behalf_of"]);
    if let Some(usage) = call.one_of("usage", &["off_session", "on_session"])? {
        setup["usage"] = json!(usage);
    }
    call.copy_metadata(setup);
    if let Some(customer) = call.text("customer") {
        setup["customer"] = customers::named(world, customer)?["id"].clone();
    }
    if call.has("payment_method_types") {
        setup["payment_method_types"] = json!(call.texts("payment_method_types"));
    }
    let method = if let Some(method) = call.text("payment_method") {
        customers::usable(world, method, "payment_method")?
    } else if call.has("payment_method_data") {
        customers::method_from(world, &call.below("payment_method_data"))?
    } else {
        return Ok(());
    };
    setup["payment_method"] = method["id"].clone();
    setup["status"] = json!("requires_confirmation");
    Ok(())
}

pub fn update(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let mut setup = world.get("setup_intent", id)?;
    write(world, call, &mut setup)?;
    world.put(&setup);
    Ok(setup)
}

pub fn confirm(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&FIELDS)?;
    let mut setup = world.get("setup_intent", id)?;
    if ["succeeded", "canceled", "processing"].iter().any(|status| setup["status"] == **status) {
        return Err(unexpected(&setup));
    }
    write(world, call, &mut setup)?;
    run(world, setup, call.text("return_url"), false)
}

/// Saves the card, or does what the card does instead.
pub fn run(world: &mut World, mut setup: Value, return_url: Option<&str>, bank_says_yes: bool) -> Answer {
    let Some(method) = setup["payment_method"].as_str().map(str::to_owned) else {
        return Err(Refusal::coded("setup_intent_unexpected_state", "This SetupIntent has no payment method.", None));
    };
    let conduct = world.cards.get(&method).map_or(Conduct::Pays, |card| card.conduct);
    if let Conduct::Declines(code, decline_code) = conduct {
        return refuse(world, setup, code, decline_code);
    }
    if !bank_says_yes && payments::asks(world, conduct, &method, false) {
        let page = format!("{}/_double/authenticate/{}", world.url, setup["id"].as_str().unwrap_or_default());
        setup["status"] = json!("requires_action");
        setup["next_action"] = match return_url {
            Some(return_url) => json!({ "type": "redirect_to_url", "redirect_to_url": { "return_url": return_url, "url": page } }),
            None => json!({ "type": "use_stripe_sdk", "use_stripe_sdk": { "type": "three_d_secure_redirect", "stripe_js": page } }),
        };
        world.put(&setup);
        world.emit("setup_intent.requires_action", &setup);
        return Ok(setup);
    }
    succeed(world, setup, &method)
}

fn succeed(world: &mut World, mut setup: Value, method: &str) -> Answer {
    if !setup["customer"].is_null() {
        let found = world.named("payment_method", method, "payment_method")?;
        customers::attach(world, found, &setup["customer"])?;
    }
    world.set_up.insert(method.to_owned());
    setup["status"] = json!("succeeded");
    setup["next_action"] = Value::Null;
    setup["last_setup_error"] = Value::Null;
    world.put(&setup);
    world.emit("setup_intent.succeeded", &setup);
    Ok(setup)
}

fn refuse(world: &mut World, mut setup: Value, code: &str, decline_code: &str) -> Answer {
    let method = setup["payment_method"].as_str().and_then(|id| world.find(id)).unwrap_or_default();
    let refusal = customers::decline(code, decline_code).with("payment_method", method);
    setup["status"] = json!("requires_payment_method");
    setup["payment_method"] = Value::Null;
    setup["next_action"] = Value::Null;
    setup["last_setup_error"] = refusal.error.clone();
    world.put(&setup);
    world.emit("setup_intent.setup_failed", &setup);
    Err(refusal.with("setup_intent", setup))
}

pub fn authenticate(world: &mut World, id: &str, passes: bool) -> Answer {
    let setup = world.get("setup_intent", id)?;
    if setup["status"] != "requires_action" {
        return Err(unexpected(&setup));
    }
    let method = setup["payment_method"].as_str().unwrap_or_default().to_owned();
    if passes {
        return succeed(world, setup, &method);
    }
    // The error is for a caller who waits; here it stays in `last_setup_error`.
    let _refused = refuse(world, setup, "setup_intent_authentication_failure", "");
    world.get("setup_intent", id)
}

pub fn cancel(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["cancellation_reason"])?;
    let mut setup = world.get("setup_intent", id)?;
    if ["succeeded", "canceled"].iter().any(|status| setup["status"] == **status) {
        return Err(unexpected(&setup));
    }
    call.copy(&mut setup, &["cancellation_reason"]);
    setup["status"] = json!("canceled");
    setup["next_action"] = Value::Null;
    world.put(&setup);
    world.emit("setup_intent.canceled", &setup);
    Ok(setup)
}

fn unexpected(setup: &Value) -> Refusal {
    let status = setup["status"].as_str().unwrap_or_default();
    let message = format!("This SetupIntent has a status of {status} and cannot do this any more.");
    Refusal::coded("setup_intent_unexpected_state", message, None).with("setup_intent", setup.clone())
}
