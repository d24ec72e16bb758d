//! Beginning a subscription.

use chrono::TimeDelta;

use super::{
    super::{
        super::{
            customers::customer_of,
            model::Means,
            service::{is_address, is_method, require_stripe},
        },
        model::{ProSeen, ProStatus, ProSubscription, ProSubscriptionView, SubscribeRequest},
        queries,
    },
    checked_seats,
    plans::price_id,
    settle::{ask, record, seen_of},
};
use crate::{
    base::{Code, Error, Result, faults::Faults, id::ProSubscriptionId},
    ctx::Ctx,
    db::Tx,
    identity::Caller,
    integrations::stripe::{NewSubscription, Refusal, Stripe, StripeFault},
};

/// A repeat this late only asks what became of the first request; well before Stripe forgets its idempotency key.
const SENT_AGAIN_WITHIN: TimeDelta = TimeDelta::minutes(10);
/// How long a key is its subscription's; as long as `web::idempotency` keeps answers.
const KEY_KEPT: TimeDelta = TimeDelta::hours(25);
/// Soon after a request has ended, in case that its end was not written down.
const FIRST_ASK_AFTER: TimeDelta = TimeDelta::minutes(2);

/// A subscription that Stripe has been asked for.
pub struct Begun {
    pub(super) id: ProSubscriptionId,
    /// None: it is over, or came to nothing, and is written down.
    pub(super) seen: Option<ProSeen>,
}

/// Commits the subscription and asks Stripe to make it. `request_key` names the request: a repeat finds what the first one did.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`, `already_subscribed`, `idempotency_key_reused`; `unavailable` when nobody knows whether Stripe did it:
/// then a repeat, a webhook or the poller finds out.
pub async fn pro_begin(ctx: &Ctx, caller: &Caller, request: &SubscribeRequest, request_key: &str) -> Result<Begun> {
    let stripe = require_stripe(ctx)?;
    let price_id = price_id(ctx, request.plan)?;
    let means = checked_means(request)?;
    let (seats, before) = {
        let mut conn = ctx.db.conn().await?;
        let before = queries::pro_by_request(&mut conn, request_key).await?;
        (checked_seats(&mut conn, caller, request.seats).await?, before)
    };
    let row = match before {
        Some(row) => row,
        None => {
            let customer_id = customer_of(ctx, caller.account_id).await?;
            commit(ctx, row_of(ctx, caller, request, means, seats, request_key, customer_id)).await?
        }
    };
    if !row.is_of(request) {
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key came with another body before."));
    }
    let seen = if row.status()?.is_over() { None } else { send(ctx, stripe, &row, price_id).await? };
    Ok(Begun { id: row.id, seen })
}

async fn commit(ctx: &Ctx, row: ProSubscription) -> Result<ProSubscription> {
    let key = row.request_key.clone().unwrap_or_default();
    let free_before = row.created_at.checked_sub_signed(KEY_KEPT).unwrap_or(row.created_at);
    let insert = async |tx: &mut Tx<'_>| {
        queries::pro_release_key(tx, &key, free_before).await?;
        if queries::pro_insert(tx, &row).await? {
            return Ok(row.clone());
        }
        queries::pro_by_request(tx, &key).await?.ok_or_else(|| Error::internal("a subscription is gone"))
    };
    ctx.db.tx("pro_begin", insert).await
}

/// Writes down what Stripe said.
///
/// # Errors
/// The database's own faults.
pub async fn pro_record(ctx: &Ctx, tx: &mut Tx<'_>, begun: &Begun) -> Result<ProSubscriptionView> {
    let row = match &begun.seen {
        Some(seen) => record(ctx, tx, begun.id, seen).await?.0,
        None => queries::pro_fetch(tx, begun.id).await?.ok_or_else(|| Error::internal("a subscription is gone"))?,
    };
    ProSubscriptionView::new(&row, begun.seen.as_ref())
}

fn checked_means(request: &SubscribeRequest) -> Result<Means> {
    let mut faults = Faults::default();
    if request.payment_method.as_ref().is_some_and(|method| !is_method(method)) {
        faults.add("/payment_method", "invalid", "A payment method of Stripe's begins with pm_.");
    }
    if request.return_url.as_ref().is_some_and(|text| !is_address(text)) {
        faults.add("/return_url", "invalid", "The address must be http or https, with at most 2000 characters.");
    }
    if request.payment_method.is_some() && request.return_url.is_some() {
        faults.add("/return_url", "not_both", "Give a payment method or an address to return to, not both.");
    }
    faults.finish()?;
    Ok(match (&request.payment_method, &request.return_url) {
        (Some(_), _) => Means::PaymentMethod,
        (None, Some(_)) => Means::Checkout,
        (None, None) => Means::Client,
    })
}

fn row_of(
    ctx: &Ctx,
    caller: &Caller,
    request: &SubscribeRequest,
    means: Means,
    seats: i32,
    request_key: &str,
    customer_id: String,
) -> ProSubscription {
    let now = ctx.clock.wall_now();
    ProSubscription {
        request_key: Some(request_key.to_owned()),
        plan: request.plan.as_str().to_owned(),
        means: means.as_str().to_owned(),
        payment_method: request.payment_method.clone(),
        return_url: request.return_url.clone(),
        customer_id: Some(customer_id),
        ask_at: now.checked_add_signed(FIRST_ASK_AFTER),
        ..ProSubscription::blank(ProSubscriptionId::new(), caller.account_id, seats, now)
    }
}

/// Asks Stripe for the subscription. Where that leaves open what happened, asks what happened. `None` when it came to nothing, which is written
/// down.
async fn send(ctx: &Ctx, stripe: &Stripe, row: &ProSubscription, price_id: &str) -> Result<Option<ProSeen>> {
    let age = ctx.clock.wall_now().signed_duration_since(row.created_at);
    let is_known = row.subscription_id.is_some() || row.checkout_session_id.is_some();
    if is_known || age > SENT_AGAIN_WITHIN {
        return found(ask(ctx, stripe, row).await?).map(Some);
    }
    match create(ctx, stripe, row, price_id).await {
        Ok(seen) => Ok(Some(seen)),
        Err(StripeFault::Declined { code, .. }) => {
            came_to_nothing(ctx, row.id, code.as_deref().unwrap_or("card_declined")).await?;
            Ok(None)
        }
        Err(StripeFault::Refused(refusal)) => Err(refused(ctx, row, refusal).await?),
        Err(fault) => {
            tracing::warn!(pro = %row.id, %fault, "asking Stripe what became of a subscription");
            found(ask(ctx, stripe, row).await?).map(Some)
        }
    }
}

fn found(seen: Option<ProSeen>) -> Result<ProSeen> {
    let detail = "Stripe gave no answer. Send the same request again in a moment; nothing is paid twice.";
    seen.ok_or_else(|| Error::new(Code::Unavailable, detail).with_retry_after(5))
}

async fn create(ctx: &Ctx, stripe: &Stripe, row: &ProSubscription, price_id: &str) -> Result<ProSeen, StripeFault> {
    let row_id = row.id.to_string();
    let asked_at = ctx.clock.wall_now();
    let customer_id = row.customer_id.as_deref().unwrap_or_default();
    let quantity = u64::try_from(row.seats).unwrap_or(1);
    let new = NewSubscription { row_id: &row_id, customer_id, price_id, quantity, payment_method: None };
    if let Some(return_url) = &row.return_url {
        let checkout = stripe.subscription_checkout_create(&new, return_url).await?;
        return Ok(ProSeen { asked_at, checkout: Some(checkout), subscription: None, invoices: Vec::new(), payable: None });
    }
    let method = match &row.payment_method {
        Some(method) => Some(stripe.method_attach(&row_id, method, customer_id).await?),
        None => None,
    };
    let new = NewSubscription { payment_method: method.as_deref(), ..new };
    let subscription = stripe.subscription_create(&new).await?;
    seen_of(stripe, asked_at, None, Some(subscription)).await
}

/// Nothing was made, and nothing will be: the account may try otherwise.
pub(super) async fn came_to_nothing(ctx: &Ctx, id: ProSubscriptionId, code: &str) -> Result<()> {
    let end = async |tx: &mut Tx<'_>| {
        let rows = queries::pro_lock_all(tx, id).await?;
        let Some(mut row) = rows.into_iter().find(|row| row.id == id) else { return Ok(()) };
        if matches!(row.status()?, ProStatus::Pending | ProStatus::Incomplete) {
            row.fail(code, ctx.clock.wall_now());
            queries::pro_update(tx, &row).await?;
        }
        Ok(())
    };
    ctx.db.tx("pro_failed", end).await
}

/// Stripe will never take this request. Returns what to answer.
async fn refused(ctx: &Ctx, row: &ProSubscription, refusal: Refusal) -> Result<Error> {
    came_to_nothing(ctx, row.id, refusal.code.as_deref().unwrap_or("refused")).await?;
    let pointer = match refusal.param.as_deref() {
        Some("success_url" | "cancel_url") => "/return_url",
        // Attaching names it in the path.
        _ if row.payment_method.is_some() => "/payment_method",
        _ => return Ok(Error::internal(StripeFault::Refused(refusal))),
    };
    Ok(Error::invalid(pointer, "refused_by_stripe", "Stripe does not take this."))
}
