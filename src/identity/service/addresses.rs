//! Addresses that are known to be a user's: from there they proved who they are. Failed tries elsewhere do not lock these out.

use std::net::IpAddr;

use chrono::TimeDelta;

use crate::{
    base::Result,
    ctx::Ctx,
    identity::{email::Email, queries::addresses, token},
};

/// How long one is known after it was last used.
pub(super) const KNOWN_FOR: TimeDelta = TimeDelta::days(90);

/// Whether the account that is tried has signed in from `address` before; the same work for a name that nobody has.
///
/// # Errors
/// The database's own faults.
pub async fn is_known_address(ctx: &Ctx, name: &str, address: IpAddr) -> Result<bool> {
    let Ok(email) = name.parse::<Email>() else { return Ok(false) };
    let hmac = token::address_hmac(&ctx.config.keys, address)?;
    addresses::address_is_known(&mut *ctx.db.conn().await?, &email, &hmac, ctx.clock.wall_now() - KNOWN_FOR).await
}

/// Called when somebody has proved who they are. That it fails takes nothing from what they did.
pub async fn remember_address(ctx: &Ctx, name: &str, address: IpAddr) {
    let Ok(email) = name.parse::<Email>() else { return };
    let remembered = async {
        let hmac = &token::address_hmac(&ctx.config.keys, address)?;
        let email = &email;
        ctx.db.tx("address_remember", async |tx| addresses::address_remember(tx, email, hmac, ctx.clock.wall_now()).await).await
    };
    if let Err(error) = remembered.await {
        tracing::warn!(error = %error, "an address was not remembered");
    }
}
