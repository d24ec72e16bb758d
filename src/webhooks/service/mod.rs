//! What can be done with webhooks: telling of an event ([`emit`]), looking after endpoints, and delivering.

mod deliver;
mod emit;
mod endpoints;

pub(super) use deliver::{Sent, forget, record, send, take_due};
pub use emit::{accounts_waiting_for, emit};
pub use endpoints::{create, delete, deliveries, list, retry, rotate_secret, send_test, show, update};

use crate::{
    base::{Error, Result, id::WebhookEndpointId, seal::PurposeKey},
    ctx::Ctx,
    webhooks::signature::SigningSecret,
};

const SECRET_PURPOSE: &str = "rigmark webhook secret v1";

fn no_endpoint() -> Error {
    Error::not_found("webhook endpoint")
}

fn seal(ctx: &Ctx, id: WebhookEndpointId, secret: &SigningSecret) -> Result<Vec<u8>> {
    PurposeKey::derive(&ctx.config.keys.root, SECRET_PURPOSE)?.seal(id.uuid().as_bytes(), secret.bytes())
}

fn open(ctx: &Ctx, id: WebhookEndpointId, sealed: &[u8]) -> Result<SigningSecret> {
    let key = PurposeKey::derive(&ctx.config.keys.root, SECRET_PURPOSE)?;
    Ok(SigningSecret::from_bytes(key.open(id.uuid().as_bytes(), sealed)?))
}

/// Whether this machine itself may be a receiver: in the sandbox, while it is bound to loopback.
fn allow_loopback(ctx: &Ctx) -> bool {
    ctx.config.allow_private_endpoints
}
