//! Writing down what became of a refund, and moving its money. The one way on which a refund changes, whoever saw it first; under the lock of
//! its top-up.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        model::{Outcome, TopUp},
        service::note_alarm,
        state::ask_next,
    },
    model::{Refund, RefundOrigin, RefundStatus},
    queries,
};
use crate::{
    base::{Error, Money, Result, id::RefundId, money::Currency},
    ctx::Ctx,
    db::Tx,
    integrations::stripe::{StripeRefund, StripeRefundStatus},
    ledger::{
        self, LedgerAccount, TransferCode,
        model::{Actor, derived_id},
        service::{Posting, TransferRequest},
    },
};

/// A bank may return a refund for about as long as this; the webhook says so sooner.
const MAY_FAIL_FOR: TimeDelta = TimeDelta::days(30);
const ASK_SETTLED_EVERY: TimeDelta = TimeDelta::days(1);

/// Writes down one refund as Stripe has it. `rows` are all refunds of the top-up.
///
/// # Errors
/// The ledger's.
pub(in super::super) async fn record(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    top_up: &TopUp,
    rows: &mut Vec<Refund>,
    seen: &StripeRefund,
) -> Result<Outcome> {
    if Currency::parse(&seen.currency) != Some(top_up.amount_micros.currency()) {
        note_alarm("other_currency", &seen.id);
        return Ok(Outcome::Alarm);
    }
    let amount = Money::from_minor_units(seen.minor_units, top_up.amount_micros.currency())?;
    let Some(row) = rows.iter_mut().find(|row| is_it(row, seen)) else {
        let mut row = made_at_stripe(ctx, tx, top_up, seen, amount).await?;
        advance(ctx, tx, top_up, &mut row, seen).await?;
        rows.push(row);
        return Ok(Outcome::Applied);
    };
    if row.amount_micros != amount {
        return raise(tx, row, "refund_differs").await;
    }
    let before = row.clone();
    advance(ctx, tx, top_up, row, seen).await?;
    Ok(if *row == before { Outcome::Unchanged } else { Outcome::Applied })
}

/// By Stripe's id; before that is known, by the row that the refund names. A row that was given up is not taken up again: should its refund
/// have come about after all, that is a refund like one made at Stripe.
fn is_it(row: &Refund, seen: &StripeRefund) -> bool {
    match &row.stripe_refund_id {
        Some(id) => *id == seen.id,
        None => row.is_unknown() && seen.row_id.as_deref() == Some(row.id.to_string().as_str()),
    }
}

async fn raise(tx: &mut Tx<'_>, row: &mut Refund, alarm: &'static str) -> Result<Outcome> {
    if row.alarm.as_deref() != Some(alarm) {
        note_alarm(alarm, &row.id.to_string());
        row.alarm = Some(alarm.to_owned());
    }
    row.ask_at = None;
    queries::refund_update(tx, row).await?;
    Ok(Outcome::Alarm)
}

/// The money has left already, so it is booked in full, whatever is available.
async fn made_at_stripe(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, seen: &StripeRefund, amount: Money) -> Result<Refund> {
    if !amount.is_positive() {
        return Err(Error::internal(format!("refund {} is of {amount}", seen.id)));
    }
    let row = Refund {
        id: RefundId::new(),
        top_up_id: top_up.id,
        account_id: top_up.account_id,
        origin: RefundOrigin::Stripe.as_str().to_owned(),
        request_key: None,
        amount_micros: amount,
        status: RefundStatus::Pending.as_str().to_owned(),
        stripe_refund_id: Some(seen.id.clone()),
        failure_code: None,
        alarm: None,
        ask_at: None,
        ask_count: 0,
        created_at: ctx.clock.wall_now(),
        settled_at: None,
    };
    queries::refund_insert(tx, &row).await?;
    post_refund(ctx, tx, top_up, &row, Actor::System).await?;
    Ok(row)
}

async fn advance(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, row: &mut Refund, seen: &StripeRefund) -> Result<()> {
    let next = match seen.status {
        StripeRefundStatus::Pending | StripeRefundStatus::RequiresAction => RefundStatus::Pending,
        StripeRefundStatus::Succeeded => RefundStatus::Succeeded,
        StripeRefundStatus::Failed | StripeRefundStatus::Canceled => RefundStatus::Failed,
    };
    row.stripe_refund_id.get_or_insert_with(|| seen.id.clone());
    if row.status()?.may_become(next) {
        let code = if seen.status == StripeRefundStatus::Canceled { "canceled" } else { "failed" };
        let code = seen.failure_code.clone().unwrap_or_else(|| code.to_owned());
        move_to(ctx, tx, top_up, row, next, &code).await?;
    }
    row.ask_at = ask_again(row.status()?, row.created_at, ctx.clock.wall_now());
    queries::refund_update(tx, row).await
}

/// When Stripe is asked next about a refund that it has.
fn ask_again(status: RefundStatus, created_at: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match status {
        RefundStatus::Pending => Some(ask_next(created_at, now)),
        RefundStatus::Succeeded if now.signed_duration_since(created_at) < MAY_FAIL_FOR => now.checked_add_signed(ASK_SETTLED_EVERY),
        RefundStatus::Succeeded | RefundStatus::Failed => None,
    }
}

/// Gives the money of a refund back that Stripe does not have and never will.
///
/// # Errors
/// The ledger's.
pub(in super::super) async fn give_up(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, row: &mut Refund, code: &str) -> Result<()> {
    if !row.is_unknown() {
        return Ok(());
    }
    move_to(ctx, tx, top_up, row, RefundStatus::Failed, code).await?;
    row.ask_at = None;
    queries::refund_update(tx, row).await
}

async fn move_to(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, row: &mut Refund, next: RefundStatus, failure: &str) -> Result<()> {
    let at = ctx.business_now(tx).await?;
    let (transit, clearing) = (LedgerAccount::RefundsInTransit, LedgerAccount::StripeClearing);
    let available = LedgerAccount::Available(row.account_id);
    let (code, from, to) = match (row.status()?, next) {
        (RefundStatus::Pending, RefundStatus::Succeeded) => (TransferCode::RefundSettled, transit, clearing),
        (RefundStatus::Pending, RefundStatus::Failed) => (TransferCode::RefundFailed, transit, available),
        (RefundStatus::Succeeded, RefundStatus::Failed) => (TransferCode::RefundFailed, clearing, available),
        (from, to) => return Err(Error::internal(format!("refund {} is {from:?} and cannot become {to:?}", row.id))),
    };
    let transfer = TransferRequest {
        id: derived_id(&[code.as_str(), &row.id.to_string()]),
        code,
        postings: Posting::between(from, to, row.amount_micros)?,
        rental: None,
        payment: top_up.payment_intent_id.clone(),
        actor: Actor::System,
        business_at: at,
        linked: Some(first_transfer(row)),
    };
    ledger::service::post(tx, transfer).await?;
    next.as_str().clone_into(&mut row.status);
    row.failure_code = (next == RefundStatus::Failed).then(|| failure.to_owned());
    row.settled_at = Some(at);
    Ok(())
}

fn first_transfer(row: &Refund) -> crate::base::id::TransferId {
    derived_id(&[TransferCode::Refund.as_str(), &row.id.to_string()])
}

/// Takes the amount out of what is available; for one made at Stripe, whatever that is.
///
/// # Errors
/// `insufficient_funds` when somebody asks for more than is available.
pub(in super::super) async fn post_refund(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, row: &Refund, actor: Actor) -> Result<()> {
    let available = LedgerAccount::Available(row.account_id);
    let transfer = TransferRequest {
        id: first_transfer(row),
        code: if row.origin() == RefundOrigin::Stripe { TransferCode::RefundAtStripe } else { TransferCode::Refund },
        postings: Posting::between(available, LedgerAccount::RefundsInTransit, row.amount_micros)?,
        rental: None,
        payment: top_up.payment_intent_id.clone(),
        actor,
        business_at: ctx.business_now(tx).await?,
        linked: None,
    };
    ledger::service::post(tx, transfer).await?;
    Ok(())
}
