//! Asking for a refund, reading refunds, and taking them up again.

use chrono::TimeDelta;

use super::{
    super::{
        disputes,
        model::TopUp,
        queries as billing_queries,
        service::{KEY_KEPT, require_stripe},
        state::{TopUpStatus, ask_next},
    },
    history,
    model::{Refund, RefundOrigin, RefundRequest, RefundStatus, RefundView},
    queries, settle,
};
use crate::{
    base::{
        Code, Error, Money, Result,
        faults::Faults,
        id::{AccountId, RefundId, TopUpId},
    },
    ctx::Ctx,
    db::Tx,
    identity::Caller,
    integrations::stripe::{NewRefund, Stripe, StripeFault, StripeRefund},
    ledger,
};

/// Soon after a request has ended, in case that its end was not written down.
const FIRST_ASK_AFTER: TimeDelta = TimeDelta::minutes(2);
/// A refund that Stripe does not list is sent again within this span; well before Stripe forgets its idempotency key.
const SENT_AGAIN_WITHIN: TimeDelta = TimeDelta::hours(1);
/// Every request of ours has ended after this: what Stripe does not list by then was never made.
const NEVER_ARRIVED_AFTER: TimeDelta = TimeDelta::minutes(90);
const ASK_LEASE: TimeDelta = TimeDelta::minutes(5);
const ASK_ROWS: i64 = 20;

/// Which of an account's refunds, newest first.
#[derive(Debug, Clone, Copy)]
pub struct ListFilter {
    pub status: Option<RefundStatus>,
    pub top_up: Option<TopUpId>,
    pub before: Option<RefundId>,
    pub limit: i64,
}

/// What came of asking Stripe.
enum Answer {
    Seen(StripeRefund),
    /// It will never take this refund; why.
    Refused(String),
    /// It has none of this row.
    Nothing,
}

/// Takes the money out of the balance and asks Stripe to give it back. `request_key` names the request: a repeat finds what the first one did.
/// When nobody knows whether Stripe did it, the refund stays `pending`, and the poller finds out.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`, `not_found`, `invalid_state`, `idempotency_key_reused`.
pub async fn refund_begin(ctx: &Ctx, caller: &Caller, request: &RefundRequest, request_key: &str) -> Result<RefundId> {
    let stripe = require_stripe(ctx)?;
    check(request)?;
    let row = row_of(ctx, caller.account_id, request, request_key);
    let (row, is_new) = ctx.db.tx("refund_begin", async |tx| take(ctx, tx, caller, &row, request_key).await).await?;
    if !row.is_of(request) {
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key came with another body before."));
    }
    if row.is_unknown() {
        drop(drive(ctx, stripe, &row, is_new).await?);
    }
    Ok(row.id)
}

/// The answer to the request.
///
/// # Errors
/// The database's own faults.
pub async fn refund_record(tx: &mut Tx<'_>, id: RefundId) -> Result<RefundView> {
    let row = queries::refund_fetch(tx, id).await?.ok_or_else(|| Error::internal("a refund is gone"))?;
    RefundView::new(&row)
}

fn check(request: &RefundRequest) -> Result<()> {
    let mut faults = Faults::default();
    if !request.amount.is_positive() {
        faults.add("/amount", "too_small", "The amount must be more than zero.");
    }
    if request.amount.minor_units().is_none() {
        faults.add("/amount", "not_whole_cents", "The amount must be whole cents.");
    }
    faults.finish()
}

fn row_of(ctx: &Ctx, account: AccountId, request: &RefundRequest, request_key: &str) -> Refund {
    let now = ctx.clock.wall_now();
    Refund {
        id: RefundId::new(),
        top_up_id: request.top_up_id,
        account_id: account,
        origin: RefundOrigin::Request.as_str().to_owned(),
        request_key: Some(request_key.to_owned()),
        amount_micros: request.amount,
        status: RefundStatus::Pending.as_str().to_owned(),
        stripe_refund_id: None,
        failure_code: None,
        alarm: None,
        ask_at: now.checked_add_signed(FIRST_ASK_AFTER),
        ask_count: 0,
        created_at: now,
        settled_at: None,
    }
}

/// The refund of the request, and whether it is new; if it is, its money has left `available`.
async fn take(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, row: &Refund, request_key: &str) -> Result<(Refund, bool)> {
    let free_before = row.created_at.checked_sub_signed(KEY_KEPT).unwrap_or(row.created_at);
    queries::refund_release_key(tx, request_key, free_before).await?;
    if let Some(found) = queries::refund_by_request(tx, request_key).await? {
        return Ok((found, false));
    }
    let top_up = billing_queries::top_up_lock(tx, row.top_up_id).await?.filter(|top_up| top_up.account_id == caller.account_id);
    let top_up = top_up.ok_or_else(|| Error::not_found("top-up"))?;
    if top_up.status()? != TopUpStatus::Succeeded {
        return Err(Error::new(Code::InvalidState, "Only a top-up that has succeeded can be refunded."));
    }
    let left = left_of(tx, &top_up).await?;
    if row.amount_micros > left {
        return Err(Error::invalid("/amount", "more_than_paid", format!("Of this payment {left} usd can be refunded.")));
    }
    let available = ledger::service::available_lock(tx, caller.account_id).await?;
    if row.amount_micros > available {
        return Err(Error::invalid("/amount", "more_than_available", format!("{available} usd is available.")));
    }
    if !queries::refund_insert(tx, row).await? {
        let found = queries::refund_by_request(tx, request_key).await?;
        return found.map(|found| (found, false)).ok_or_else(|| Error::internal("a refund is gone"));
    }
    settle::post_refund(ctx, tx, &top_up, row, caller.into()).await?;
    Ok((row.clone(), true))
}

/// Captured − refunded − disputed of the payment (money.md 21); the top-up is locked.
async fn left_of(tx: &mut Tx<'_>, top_up: &TopUp) -> Result<Money> {
    let captured = top_up.received_micros.unwrap_or(Money::ZERO);
    let rows = queries::refunds_of_top_up(tx, top_up.id).await?;
    let mut left = captured.minus(disputes::settle::disputed_of(tx, top_up.id).await?)?;
    for row in &rows {
        if row.status()? != RefundStatus::Failed {
            left = left.minus(row.amount_micros)?;
        }
    }
    Ok(left.max(Money::ZERO))
}

/// Takes a refund one step further: finds out what became of it, or sends it. That Stripe does not answer is logged; the poller comes back.
async fn drive(ctx: &Ctx, stripe: &Stripe, row: &Refund, is_new: bool) -> Result<Result<(), StripeFault>> {
    let top_up = {
        let mut conn = ctx.db.conn().await?;
        billing_queries::top_up_fetch(&mut conn, row.top_up_id).await?
    };
    let payment_id = top_up.and_then(|top_up| top_up.payment_intent_id).ok_or_else(|| Error::internal("a refund of no payment"))?;
    let asked = if is_new { send_first(stripe, row, &payment_id).await } else { ask(ctx, stripe, row, &payment_id).await };
    let answer = match asked {
        Ok(answer) => answer,
        Err(fault) => {
            tracing::warn!(refund = %row.id, %fault, "what became of a refund is not known yet");
            return Ok(Err(fault));
        }
    };
    ctx.db.tx("refund_record", async |tx| write(ctx, tx, row, &answer).await).await?;
    if let Answer::Refused(code) = &answer {
        tracing::warn!(refund = %row.id, code, "Stripe refused a refund");
        // Perhaps because of refunds or disputes that are not known here.
        history::look_and_record(ctx, stripe, &payment_id).await?;
    }
    Ok(Ok(()))
}

async fn send_first(stripe: &Stripe, row: &Refund, payment_id: &str) -> Result<Answer, StripeFault> {
    match send(stripe, row, payment_id).await {
        Err(fault) => {
            tracing::warn!(refund = %row.id, %fault, "asking Stripe what became of a refund");
            let found = stripe.refund_find(payment_id, &row.id.to_string()).await?;
            found.map(Answer::Seen).ok_or(fault)
        }
        answered => answered,
    }
}

async fn ask(ctx: &Ctx, stripe: &Stripe, row: &Refund, payment_id: &str) -> Result<Answer, StripeFault> {
    if let Some(id) = &row.stripe_refund_id {
        return stripe.refund_fetch(id).await.map(Answer::Seen);
    }
    if let Some(found) = stripe.refund_find(payment_id, &row.id.to_string()).await? {
        return Ok(Answer::Seen(found));
    }
    let age = ctx.clock.wall_now().signed_duration_since(row.created_at);
    if age < SENT_AGAIN_WITHIN { send(stripe, row, payment_id).await } else { Ok(Answer::Nothing) }
}

async fn send(stripe: &Stripe, row: &Refund, payment_id: &str) -> Result<Answer, StripeFault> {
    let row_id = row.id.to_string();
    match stripe.refund_create(&NewRefund { row_id: &row_id, payment_id, amount: row.amount_micros }).await {
        Ok(seen) => Ok(Answer::Seen(seen)),
        Err(StripeFault::Refused(refusal)) => Ok(Answer::Refused(refusal.code.unwrap_or_else(|| "refused".to_owned()))),
        Err(StripeFault::Declined { code, .. }) => Ok(Answer::Refused(code.unwrap_or_else(|| "declined".to_owned()))),
        Err(StripeFault::NotFound) => Ok(Answer::Refused("resource_missing".to_owned())),
        Err(fault) => Err(fault),
    }
}

async fn write(ctx: &Ctx, tx: &mut Tx<'_>, row: &Refund, answer: &Answer) -> Result<()> {
    let Some(top_up) = billing_queries::top_up_lock(tx, row.top_up_id).await? else { return Ok(()) };
    ledger::service::available_lock(tx, top_up.account_id).await?;
    let mut rows = queries::refunds_of_top_up(tx, top_up.id).await?;
    if let Answer::Seen(seen) = answer {
        settle::record(ctx, tx, &top_up, &mut rows, seen).await?;
        return Ok(());
    }
    let Some(row) = rows.iter_mut().find(|other| other.id == row.id) else { return Ok(()) };
    let now = ctx.clock.wall_now();
    match answer {
        Answer::Refused(code) => settle::give_up(ctx, tx, &top_up, row, code).await,
        _ if now.signed_duration_since(row.created_at) >= NEVER_ARRIVED_AFTER => {
            settle::give_up(ctx, tx, &top_up, row, "never_arrived").await
        }
        _ => {
            row.ask_at = Some(ask_next(row.created_at, now));
            queries::refund_update(tx, row).await
        }
    }
}

/// The refund; one that is on its way as Stripe has it now.
///
/// # Errors
/// `not_found` for one that is not the account's.
pub async fn refund_fetch(ctx: &Ctx, account: AccountId, id: RefundId) -> Result<RefundView> {
    let row = fetch(ctx, id).await?.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("refund"))?;
    let Some(stripe) = ctx.stripe.as_ref().filter(|_| row.status().is_ok_and(|status| status == RefundStatus::Pending)) else {
        return RefundView::new(&row);
    };
    drop(drive(ctx, stripe, &row, false).await?);
    RefundView::new(&fetch(ctx, id).await?.unwrap_or(row))
}

async fn fetch(ctx: &Ctx, id: RefundId) -> Result<Option<Refund>> {
    let mut conn = ctx.db.conn().await?;
    queries::refund_fetch(&mut conn, id).await
}

/// # Errors
/// The database's own faults.
pub async fn refund_list(ctx: &Ctx, account: AccountId, filter: &ListFilter) -> Result<Vec<RefundView>> {
    let mut conn = ctx.db.conn().await?;
    let status = filter.status.map(RefundStatus::as_str);
    let rows = queries::refund_list(&mut conn, account, status, filter.top_up, filter.before, filter.limit).await?;
    rows.iter().map(RefundView::new).collect()
}

/// Takes up every refund that is due, and then what was made at Stripe.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the rest is left for the next time.
pub async fn ask_due(ctx: &Ctx) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queries::refunds_take_due(&mut conn, ctx.clock.wall_now(), ASK_LEASE, ASK_ROWS).await?
    };
    for id in taken {
        let Some(row) = fetch(ctx, id).await? else { continue };
        match drive(ctx, stripe, &row, false).await {
            Ok(Ok(())) => {}
            Ok(Err(StripeFault::Unknown(_))) => break,
            Ok(Err(fault)) => tracing::error!(refund = %id, %fault, "a refund cannot be settled"),
            // One row's trouble must not keep the others waiting; its lease brings it back.
            Err(error) => tracing::error!(refund = %id, error = ?error, "a refund cannot be settled"),
        }
    }
    history::scan_due(ctx, stripe, history::Scan::Refunds).await
}
