//! Beginning a top-up, and reading it.

use std::time::Duration;

use chrono::TimeDelta;

use super::{
    super::{
        automatic,
        cards::{self, Saved},
        model::{Means, Observation, TopUp, TopUpRequest, TopUpView},
        queries,
        state::TopUpStatus,
    },
    require_stripe,
    settle::{ask, record},
};
use crate::{
    base::{
        Code, Error, Money, Result,
        faults::Faults,
        id::{AccountId, TopUpId},
        money::Currency,
    },
    ctx::Ctx,
    db::Tx,
    identity::Caller,
    integrations::stripe::{NewCheckout, NewPayment, Refusal, Stripe, StripeFault},
};

const URL_BYTES_MAX: usize = 2_000;
const METHOD_BYTES_MAX: usize = 255;
/// A repeat this late only asks what became of the first request; well before Stripe forgets its idempotency key.
const SENT_AGAIN_WITHIN: TimeDelta = TimeDelta::minutes(10);
/// How long a key is its top-up's; as long as `web::idempotency` keeps answers.
pub(in super::super) const KEY_KEPT: TimeDelta = TimeDelta::hours(25);
/// How long Stripe is asked for one request of ours, all tries and questions together; shorter than the lease of its idempotency key, so that
/// nobody else begins the same meanwhile.
pub const STRIPE_MAX: Duration = Duration::from_secs(50);
/// Soon after a request has ended, in case that its end was not written down.
const FIRST_ASK_AFTER: TimeDelta = TimeDelta::minutes(2);

/// A top-up whose payment Stripe has been asked for.
pub struct Begun {
    id: TopUpId,
    /// None: it is over, and there was nothing to ask.
    seen: Option<Observation>,
}

/// Which of an account's top-ups, newest first.
#[derive(Debug, Clone, Copy)]
pub struct ListFilter {
    pub status: Option<TopUpStatus>,
    pub before: Option<TopUpId>,
    pub limit: i64,
}

/// Commits the top-up and asks Stripe to make its payment. `request_key` names the request: a repeat finds what the first one did.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`, `idempotency_key_reused`; `unavailable` when nobody knows whether Stripe did it: then a repeat, a
/// webhook or the poller finds out.
pub async fn top_up_begin(ctx: &Ctx, caller: &Caller, request: &TopUpRequest, request_key: &str) -> Result<Begun> {
    let stripe = require_stripe(ctx)?;
    let means = checked(ctx, request)?;
    let row = row_of(ctx, caller.account_id, request, means, request_key).await?;
    let free_before = row.created_at.checked_sub_signed(KEY_KEPT).unwrap_or(row.created_at);
    let insert = async |tx: &mut Tx<'_>| {
        queries::top_up_release_key(tx, request_key, free_before).await?;
        if queries::top_up_insert(tx, &row).await? {
            return Ok(row.clone());
        }
        queries::top_up_by_request(tx, request_key).await?.ok_or_else(|| Error::internal("a top-up is gone"))
    };
    let row = ctx.db.tx("top_up_begin", insert).await?;
    if !row.is_of(request) {
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key came with another body before."));
    }
    let seen = if row.status()?.is_over() { None } else { Some(send(ctx, stripe, &row).await?) };
    Ok(Begun { id: row.id, seen })
}

/// Writes down what Stripe said.
///
/// # Errors
/// The database's own faults.
pub async fn top_up_record(ctx: &Ctx, tx: &mut Tx<'_>, begun: &Begun) -> Result<TopUpView> {
    let mut row = queries::top_up_lock(tx, begun.id).await?.ok_or_else(|| Error::internal("a top-up is gone"))?;
    if let Some(seen) = &begun.seen {
        record(ctx, tx, &mut row, seen).await?;
    }
    TopUpView::new(&row, begun.seen.as_ref())
}

fn checked(ctx: &Ctx, request: &TopUpRequest) -> Result<Means> {
    let mut faults = Faults::default();
    check_amount(ctx, &mut faults, request.amount)?;
    check_method(&mut faults, request.payment_method.as_deref());
    check_address(&mut faults, request.return_url.as_deref());
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

/// Bounds of one top-up, and whole cents.
///
/// # Errors
/// `internal` for bounds that are no money.
pub(in crate::billing) fn check_amount(ctx: &Ctx, faults: &mut Faults, amount: Money) -> Result<()> {
    let tunables = &ctx.config.tunables;
    let min = Money::from_minor_units(tunables.top_up_min_cents, Currency::Usd)?;
    let max = Money::from_minor_units(tunables.top_up_max_cents, Currency::Usd)?;
    if amount.minor_units().is_none() {
        faults.add("/amount", "not_whole_cents", "The amount must be whole cents.");
    }
    if amount < min {
        faults.add("/amount", "too_small", format!("The amount is at least {min}."));
    }
    if amount > max {
        faults.add("/amount", "too_large", format!("The amount is at most {max}."));
    }
    Ok(())
}

pub(in crate::billing) fn check_method(faults: &mut Faults, method: Option<&str>) {
    if method.is_some_and(|method| !is_method(method)) {
        faults.add("/payment_method", "invalid", "A payment method of Stripe's begins with pm_.");
    }
}

pub(in crate::billing) fn check_address(faults: &mut Faults, address: Option<&str>) {
    if address.is_some_and(|text| !is_address(text)) {
        faults.add("/return_url", "invalid", "The address must be http or https, with at most 2000 characters.");
    }
}

/// The same for a payment method that Stripe does not know and for one that is somebody else's.
pub(in crate::billing) fn refused_method() -> Error {
    Error::invalid("/payment_method", "refused_by_stripe", "Stripe does not take this.")
}

pub(in crate::billing) fn is_method(text: &str) -> bool {
    let rest = text.strip_prefix("pm_").unwrap_or_default();
    text.len() <= METHOD_BYTES_MAX && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(in crate::billing) fn is_address(text: &str) -> bool {
    text.len() <= URL_BYTES_MAX && url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

async fn row_of(ctx: &Ctx, account: AccountId, request: &TopUpRequest, means: Means, request_key: &str) -> Result<TopUp> {
    let saved = match &request.payment_method {
        Some(method) => cards::saved_method(&mut *ctx.db.conn().await?, account, method).await?,
        None => Saved::Unknown,
    };
    let customer_id = match saved {
        Saved::Refused => return Err(refused_method()),
        Saved::With(customer) => Some(customer),
        Saved::Unknown => None,
    };
    Ok(TopUp {
        request_key: Some(request_key.to_owned()),
        payment_method: request.payment_method.clone(),
        return_url: request.return_url.clone(),
        customer_id,
        ..new_row(ctx, account, request.amount, means)
    })
}

/// A top-up that nobody has heard of yet.
pub(in crate::billing) fn new_row(ctx: &Ctx, account: AccountId, amount: Money, means: Means) -> TopUp {
    let now = ctx.clock.wall_now();
    TopUp {
        id: TopUpId::new(),
        account_id: account,
        request_key: None,
        amount_micros: amount,
        means: means.as_str().to_owned(),
        payment_method: None,
        return_url: None,
        status: TopUpStatus::Pending.as_str().to_owned(),
        payment_intent_id: None,
        checkout_session_id: None,
        failure_code: None,
        alarm: None,
        received_micros: None,
        observed_at: None,
        ask_at: now.checked_add_signed(FIRST_ASK_AFTER),
        ask_count: 0,
        created_at: now,
        settled_at: None,
        customer_id: None,
        card_brand: None,
        card_last4: None,
    }
}

/// Asks Stripe for the payment of a committed row, and writes down what came of it.
///
/// # Errors
/// As [`top_up_begin`].
pub(in crate::billing) async fn pay(ctx: &Ctx, row: &TopUp) -> Result<()> {
    let begun = Begun { id: row.id, seen: Some(send(ctx, require_stripe(ctx)?, row).await?) };
    ctx.db.tx("top_up_pay", async |tx| top_up_record(ctx, tx, &begun).await).await.map(drop)
}

/// Asks Stripe for the payment, for no longer than [`STRIPE_MAX`].
async fn send(ctx: &Ctx, stripe: &Stripe, row: &TopUp) -> Result<Observation> {
    // What was cut off may have been done: the poller finds out, or a repeat.
    tokio::time::timeout(STRIPE_MAX, send_and_ask(ctx, stripe, row)).await.unwrap_or_else(|_| found(None))
}

/// Where the request leaves open what happened, asks what happened.
async fn send_and_ask(ctx: &Ctx, stripe: &Stripe, row: &TopUp) -> Result<Observation> {
    let age = ctx.clock.wall_now().signed_duration_since(row.created_at);
    let is_known = row.payment_intent_id.is_some() || row.checkout_session_id.is_some();
    if is_known || age > SENT_AGAIN_WITHIN {
        return found(ask(ctx, stripe, row).await?);
    }
    match create(ctx, stripe, row).await {
        Ok(seen) => Ok(seen),
        Err(StripeFault::Refused(refusal)) => Err(refused(ctx, row, refusal).await?),
        Err(fault) => {
            tracing::warn!(top_up = %row.id, %fault, "asking Stripe what became of a payment");
            found(ask(ctx, stripe, row).await?)
        }
    }
}

fn found(seen: Option<Observation>) -> Result<Observation> {
    let detail = "Stripe gave no answer. Send the same request again in a moment; nothing is paid twice.";
    seen.ok_or_else(|| Error::new(Code::Unavailable, detail).with_retry_after(5))
}

async fn create(ctx: &Ctx, stripe: &Stripe, row: &TopUp) -> Result<Observation, StripeFault> {
    let row_id = row.id.to_string();
    let asked_at = ctx.clock.wall_now();
    let description = "Rigmark top-up";
    if let Some(return_url) = &row.return_url {
        let new = NewCheckout { row_id: &row_id, amount: row.amount_micros, return_url, description };
        let checkout = stripe.checkout_create(&new).await?;
        return Ok(Observation { asked_at, checkout: Some(checkout), payment: None });
    }
    let new = NewPayment {
        row_id: &row_id,
        amount: row.amount_micros,
        payment_method: row.payment_method.as_deref(),
        customer: row.customer_id.as_deref(),
        off_session: row.means == Means::Automatic.as_str(),
        description,
    };
    let payment = match stripe.payment_create(&new).await {
        // Declined: the payment is there, and says so itself.
        Err(StripeFault::Declined { payment_id: Some(id), .. }) => stripe.payment_fetch(&id).await?,
        other => other?,
    };
    Ok(Observation { asked_at, checkout: None, payment: Some(payment) })
}

/// Stripe will never take this request: the top-up is over. Returns what to answer.
async fn refused(ctx: &Ctx, row: &TopUp, refusal: Refusal) -> Result<Error> {
    let cancel = async |tx: &mut Tx<'_>| {
        let Some(mut row) = queries::top_up_lock(tx, row.id).await? else { return Ok(()) };
        if row.status()? == TopUpStatus::Pending {
            TopUpStatus::Canceled.as_str().clone_into(&mut row.status);
            row.failure_code = Some(refusal.code.clone().unwrap_or_else(|| "refused".to_owned()));
            row.ask_at = None;
            row.settled_at = Some(ctx.business_now(tx).await?);
            queries::top_up_update(tx, &row).await?;
            automatic::note_outcome(ctx, tx, &row).await?;
        }
        Ok(())
    };
    ctx.db.tx("top_up_refused", cancel).await?;
    let pointer = match refusal.param.as_deref() {
        Some(param) if param.starts_with("payment_method") => return Ok(refused_method()),
        Some("success_url" | "cancel_url") => "/return_url",
        Some(param) if param.starts_with("amount") || param.contains("unit_amount") => "/amount",
        _ => return Ok(Error::internal(StripeFault::Refused(refusal))),
    };
    Ok(Error::invalid(pointer, "refused_by_stripe", "Stripe does not take this."))
}

/// The top-up, as Stripe has it now while it is open: the page that a payer returns to reads it.
///
/// # Errors
/// `not_found` for one that is not the account's.
pub async fn top_up_fetch(ctx: &Ctx, account: AccountId, id: TopUpId) -> Result<TopUpView> {
    let row = {
        let mut conn = ctx.db.conn().await?;
        queries::top_up_fetch(&mut conn, id).await?
    };
    let row = row.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("top-up"))?;
    let Some(stripe) = ctx.stripe.as_ref().filter(|_| row.status().is_ok_and(|status| !status.is_over())) else {
        return TopUpView::new(&row, None);
    };
    let seen = match ask(ctx, stripe, &row).await {
        Ok(seen) => seen,
        Err(fault) => {
            tracing::warn!(top_up = %row.id, %fault, "showing a top-up as it was last seen");
            None
        }
    };
    let Some(seen) = seen else { return TopUpView::new(&row, None) };
    let begun = Begun { id, seen: Some(seen) };
    ctx.db.tx("top_up_fetch", async |tx| top_up_record(ctx, tx, &begun).await).await
}

/// # Errors
/// The database's own faults.
pub async fn top_up_list(ctx: &Ctx, account: AccountId, filter: &ListFilter) -> Result<Vec<TopUpView>> {
    let mut conn = ctx.db.conn().await?;
    let status = filter.status.map(TopUpStatus::as_str);
    let rows = queries::top_up_list(&mut conn, account, status, filter.before, filter.limit).await?;
    rows.iter().map(|row| TopUpView::new(row, None)).collect()
}
