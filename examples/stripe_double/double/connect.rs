//! Connected accounts.

use serde_json::{Value, json};

use super::refusal::{Answer, Refusal};
use super::world::World;

/// `Stripe-Account` must be an account of ours.
pub fn may_act(world: &mut World, account: &str) -> Answer<()> {
    let acting = world.acting.take();
    let known = world.find(account).is_some_and(|found| found["object"] == "account" && found["deleted"] != true);
    world.acting = acting;
    if known {
        return Ok(());
    }
    let message = format!(
        "The provided key does not have access to account '{account}' (or that account does not exist). Application access may have been revoked."
    );
    Err(Refusal::new(403, "invalid_request_error", message).with("code", json!("account_invalid")))
}

/// Takes back a refund's share of a destination charge.
pub fn reverse_for_refund(_world: &mut World, _charge: &Value, _refund: &mut Value, _amount: i64) -> Answer<()> {
    Err(Refusal::invalid("This charge has no transfer to reverse.", Some("reverse_transfer")))
}
