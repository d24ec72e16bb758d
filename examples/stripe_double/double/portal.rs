//! Billing portal sessions.

use serde_json::json;

use super::call::Call;
use super::customers;
use super::refusal::Answer;
use super::world::World;

pub fn create(world: &mut World, call: &Call) -> Answer {
    call.only(&["customer", "return_url", "configuration", "flow_data", "locale", "on_behalf_of"])?;
    let customer = customers::named(world, call.need("customer")?)?;
    let mut session = world.blank("billing_portal.session", "bps");
    session["customer"] = customer["id"].clone();
    session["configuration"] = json!(call.text("configuration").unwrap_or("bpc_1DoubleOfStripe"));
    call.copy(&mut session, &["return_url", "locale"]);
    session["url"] = json!(format!("{}/_double/portal/{}", world.url, session["id"].as_str().unwrap_or_default()));
    world.put(&session);
    Ok(session)
}
