//! Changing a subscription: plan, seats, ending and taking that back; and the portal.
//!
//! A change says what is to be, so sending it twice does nothing twice. Each takes a number first, which its idempotency key ends with. Where no
//! clear answer came, what the subscription is now tells whether it was done.

use uuid::Uuid;

use super::{
    super::{
        super::{
            customers::customer_of,
            service::{is_address, require_stripe},
        },
        model::{PlanRequest, PortalRequest, PortalView, ProSeen, ProStatus, ProSubscription, ProSubscriptionView, SeatsRequest},
        queries,
    },
    checked_seats, open_of,
    plans::price_id,
    settle::ask,
    subscribe::{Begun, came_to_nothing, pro_record},
};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    identity::Caller,
    integrations::stripe::{Change, CheckoutStatus, Stripe, StripeFault, SubscriptionStatus},
};

fn no_answer() -> Error {
    Error::new(Code::Unavailable, "Stripe gave no answer. Send the same request again in a moment; nothing is done twice.")
        .with_retry_after(5)
}

/// Another plan, what is left of the period settled at once.
///
/// # Errors
/// `invalid_state` without a subscription that is paid, `card_declined`: then nothing has changed; `no_payment_provider`, `unavailable`.
pub async fn pro_set_plan(ctx: &Ctx, caller: &Caller, request: &PlanRequest) -> Result<ProSubscriptionView> {
    require_stripe(ctx)?;
    let row = paid_of(ctx, caller).await?;
    let seats = row.seats;
    set_item(ctx, &row, price_id(ctx, request.plan)?, seats).await
}

/// Another number of members, what is left of the period settled at once.
///
/// # Errors
/// As [`pro_set_plan`]; `invalid_input` for fewer than there are members.
pub async fn pro_set_seats(ctx: &Ctx, caller: &Caller, request: &SeatsRequest) -> Result<ProSubscriptionView> {
    require_stripe(ctx)?;
    let seats = {
        let mut conn = ctx.db.conn().await?;
        checked_seats(&mut conn, caller, Some(request.seats)).await?
    };
    let row = paid_of(ctx, caller).await?;
    set_item(ctx, &row, price_id(ctx, row.plan()?)?, seats).await
}

/// The account's subscription, if it may be changed: whoever is behind pays first.
async fn paid_of(ctx: &Ctx, caller: &Caller) -> Result<ProSubscription> {
    let row = open_of(ctx, caller.account_id).await?;
    match row.status()? {
        ProStatus::Active | ProStatus::Trialing => Ok(row),
        other => {
            Err(Error::new(Code::InvalidState, format!("The subscription is {}; it can be changed while it is active.", other.as_str())))
        }
    }
}

async fn set_item(ctx: &Ctx, row: &ProSubscription, price_id: &str, seats: i32) -> Result<ProSubscriptionView> {
    let item_id = row.item_id.as_deref().ok_or_else(no_answer)?;
    let quantity = u64::try_from(seats).map_err(Error::internal)?;
    let is_done = |seen: &ProSeen| seen.subscription.as_ref().is_some_and(|of| of.price_id == price_id && of.quantity == i64::from(seats));
    change(ctx, row, &Change::Item { item_id, price_id, quantity }, is_done).await
}

/// Lets the subscription end with its period; one that was never paid ends now.
///
/// # Errors
/// `invalid_state` without a subscription that is open, `no_payment_provider`, `unavailable`.
pub async fn pro_cancel(ctx: &Ctx, caller: &Caller) -> Result<ProSubscriptionView> {
    let stripe = require_stripe(ctx)?;
    let row = open_of(ctx, caller.account_id).await?;
    if row.status()?.is_live() {
        let is_done =
            |seen: &ProSeen| seen.subscription.as_ref().is_some_and(|of| of.is_ending || of.status == SubscriptionStatus::Canceled);
        return change(ctx, &row, &Change::Ending(true), is_done).await;
    }
    let Some(seen) = ask(ctx, stripe, &row).await? else {
        // The request that begins it may still be on its way.
        return Err(
            Error::new(Code::InvalidState, "The subscription is only just being made. Try again in half an hour.").with_retry_after(60)
        );
    };
    let key = change_key(ctx, &row).await?;
    let ended = match (&seen.subscription, &seen.checkout) {
        (Some(of), _) if of.status == SubscriptionStatus::Incomplete => stripe.subscription_cancel(&of.id, &key).await.map(|of| ProSeen {
            asked_at: ctx.clock.wall_now(),
            subscription: Some(of),
            ..seen.clone()
        }),
        (None, Some(checkout)) if checkout.status == CheckoutStatus::Open => stripe
            .checkout_expire(&checkout.id, &key)
            .await
            .map(|closed| ProSeen { asked_at: ctx.clock.wall_now(), checkout: Some(closed), ..seen.clone() }),
        // It has moved on meanwhile, which is written down now.
        _ => Ok(seen.clone()),
    };
    finish(ctx, stripe, &row, ended).await
}

/// Takes the cancellation back.
///
/// # Errors
/// `invalid_state` without a subscription that runs, `no_payment_provider`, `unavailable`.
pub async fn pro_resume(ctx: &Ctx, caller: &Caller) -> Result<ProSubscriptionView> {
    require_stripe(ctx)?;
    let row = open_of(ctx, caller.account_id).await?;
    if !row.status()?.is_live() {
        return Err(Error::new(Code::InvalidState, "The subscription waits for its first payment."));
    }
    let is_done = |seen: &ProSeen| seen.subscription.as_ref().is_some_and(|of| !of.is_ending && of.status != SubscriptionStatus::Canceled);
    change(ctx, &row, &Change::Ending(false), is_done).await
}

/// A page of Stripe's for card, plan and invoices.
///
/// # Errors
/// `invalid_input`, `no_payment_provider`, `unavailable`.
pub async fn pro_portal(ctx: &Ctx, caller: &Caller, request: &PortalRequest) -> Result<PortalView> {
    let stripe = require_stripe(ctx)?;
    if !is_address(&request.return_url) {
        return Err(Error::invalid("/return_url", "invalid", "The address must be http or https, with at most 2000 characters."));
    }
    let customer_id = customer_of(ctx, caller.account_id).await?;
    match stripe.portal_create(&customer_id, &request.return_url, &format!("portal:{}", Uuid::now_v7())).await {
        Ok(url) => Ok(PortalView { url }),
        Err(StripeFault::Refused(refusal)) if refusal.param.as_deref() == Some("return_url") => {
            Err(Error::invalid("/return_url", "refused_by_stripe", "Stripe does not take this."))
        }
        Err(StripeFault::Refused(refusal)) => Err(Error::internal(StripeFault::Refused(refusal))),
        Err(fault) => Err(fault.into()),
    }
}

async fn change_key(ctx: &Ctx, row: &ProSubscription) -> Result<String> {
    let number = queries::pro_count_change(&mut *ctx.db.conn().await?, row.id).await?;
    Ok(format!("{}:change:{number}", row.id))
}

async fn change(ctx: &Ctx, row: &ProSubscription, change: &Change<'_>, is_done: impl Fn(&ProSeen) -> bool) -> Result<ProSubscriptionView> {
    let stripe = require_stripe(ctx)?;
    let id = row.subscription_id.as_deref().ok_or_else(no_answer)?;
    let key = change_key(ctx, row).await?;
    let changed = match stripe.subscription_change(id, &key, change).await {
        Ok(_) => None,
        Err(StripeFault::Declined { code, .. }) => {
            let detail = format!("The card was declined ({}); nothing has changed.", code.as_deref().unwrap_or("card_declined"));
            return Err(Error::new(Code::CardDeclined, detail));
        }
        Err(StripeFault::Refused(refusal)) => return Err(Error::internal(StripeFault::Refused(refusal))),
        Err(fault) => Some(fault),
    };
    let Some(seen) = ask(ctx, stripe, row).await? else { return Err(no_answer()) };
    let done = is_done(&seen);
    let view = write(ctx, row, Some(seen)).await?;
    match changed {
        // Gone meanwhile: the answer shows it.
        Some(StripeFault::NotFound) => Err(Error::new(Code::InvalidState, "The subscription has ended.")),
        Some(fault) if !done => {
            tracing::warn!(pro = %row.id, %fault, "a change of a subscription was not done");
            Err(no_answer())
        }
        _ => Ok(view),
    }
}

/// Writes down how a subscription that was never paid has ended.
async fn finish(ctx: &Ctx, stripe: &Stripe, row: &ProSubscription, ended: Result<ProSeen, StripeFault>) -> Result<ProSubscriptionView> {
    let seen = match ended {
        Ok(seen) => seen,
        Err(fault) => {
            tracing::warn!(pro = %row.id, %fault, "asking Stripe what became of a cancellation");
            ask(ctx, stripe, row).await?.ok_or_else(no_answer)?
        }
    };
    let is_over = |seen: &ProSeen| match (&seen.subscription, &seen.checkout) {
        (Some(of), _) => ProStatus::of(of.status).is_over(),
        (None, Some(checkout)) => checkout.status == CheckoutStatus::Expired,
        (None, None) => false,
    };
    if seen.subscription.is_none() && is_over(&seen) {
        came_to_nothing(ctx, row.id, "canceled").await?;
    }
    let view = write(ctx, row, Some(seen)).await?;
    let has_moved_on = "The subscription has been paid meanwhile; cancel it again to let it end with its period.";
    if view.status.is_over() { Ok(view) } else { Err(Error::new(Code::InvalidState, has_moved_on)) }
}

async fn write(ctx: &Ctx, row: &ProSubscription, seen: Option<ProSeen>) -> Result<ProSubscriptionView> {
    let begun = Begun { id: row.id, seen };
    let view = ctx.db.tx("pro_change", async |tx| pro_record(ctx, tx, &begun).await).await?;
    Ok(ProSubscriptionView { client_secret: None, checkout_url: None, ..view })
}
