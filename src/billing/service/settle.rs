//! Asking Stripe what became of a top-up, and writing down what it said. The one way on which a top-up changes, whoever saw it first.

use chrono::{TimeDelta, Utc};

use super::super::{
    automatic,
    model::{Observation, Outcome, TopUp, TopUpView},
    queries,
    state::{TopUpStatus, ask_next},
};
use crate::{
    base::{Error, Money, Result, id::TopUpId, money::Currency},
    ctx::Ctx,
    db::Tx,
    integrations::stripe::{CheckoutStatus, Find, Payment, PaymentStatus, Stripe, StripeFault},
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Actor,
        service::{Posting, TransferRequest},
    },
    webhooks::{self, EventType},
};

/// A request of ours to make a payment has long ended after this: what Stripe does not list by then was never made.
const NEVER_ARRIVED_AFTER: TimeDelta = TimeDelta::minutes(30);
/// How long the poller has for what it took.
const ASK_LEASE: TimeDelta = TimeDelta::minutes(5);
const ASK_ROWS: i64 = 20;

/// What Stripe says of the top-up now; `None` when it knows nothing of it.
///
/// # Errors
/// No answer.
pub(super) async fn ask(ctx: &Ctx, stripe: &Stripe, top_up: &TopUp) -> Result<Option<Observation>, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let row_id = top_up.id.to_string();
    let until = top_up.created_at.checked_add_signed(NEVER_ARRIVED_AFTER).unwrap_or(asked_at);
    let find = Find { row_id: &row_id, from: top_up.created_at, until };
    if !top_up.is_checkout() {
        let payment = match &top_up.payment_intent_id {
            Some(id) => Some(stripe.payment_fetch(id).await?),
            None => stripe.payment_find(find).await?,
        };
        return Ok(payment.map(|payment| Observation { asked_at, checkout: None, payment: Some(payment) }));
    }
    let checkout = match &top_up.checkout_session_id {
        Some(id) => Some(stripe.checkout_fetch(id).await?),
        None => stripe.checkout_find(find).await?,
    };
    let Some(checkout) = checkout else { return Ok(None) };
    let payment = match &checkout.payment_id {
        Some(id) => Some(stripe.payment_fetch(id).await?),
        None => None,
    };
    Ok(Some(Observation { asked_at, checkout: Some(checkout), payment }))
}

/// Writes down what was seen. `top_up` is locked by this transaction.
///
/// # Errors
/// The ledger's; `internal` when Stripe says it was paid nothing.
pub(in super::super) async fn record(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &mut TopUp, seen: &Observation) -> Result<Outcome> {
    if let Some(alarm) = alarm(top_up, seen)? {
        return raise(tx, top_up, alarm).await;
    }
    if let Some(checkout) = &seen.checkout {
        top_up.checkout_session_id.get_or_insert_with(|| checkout.id.clone());
    }
    if let Some(payment) = &seen.payment {
        top_up.payment_intent_id.get_or_insert_with(|| payment.id.clone());
    }
    let before = (top_up.status.clone(), top_up.failure_code.clone());
    let next = status_of(top_up, seen);
    let is_newer = top_up.observed_at.is_none_or(|at| seen.asked_at > at);
    if !top_up.status()?.may_become(next, is_newer) {
        queries::top_up_update(tx, top_up).await?;
        return Ok(Outcome::Unchanged);
    }
    if let Some(payment) = &seen.payment {
        // A checkout may make a payment for each try.
        top_up.payment_intent_id = Some(payment.id.clone());
        top_up.failure_code.clone_from(&payment.failure_code);
        if next == TopUpStatus::Succeeded {
            credit(ctx, tx, top_up, payment).await?;
        }
    }
    move_to(ctx, tx, top_up, next).await?;
    top_up.observed_at = Some(seen.asked_at);
    queries::top_up_update(tx, top_up).await?;
    if before != (top_up.status.clone(), top_up.failure_code.clone()) {
        announce(ctx, tx, top_up).await?;
    }
    Ok(Outcome::Applied)
}

/// What must not be settled by a program.
fn alarm(top_up: &TopUp, seen: &Observation) -> Result<Option<&'static str>> {
    let Some(payment) = &seen.payment else { return Ok(None) };
    if Currency::parse(&payment.currency) != Some(top_up.amount_micros.currency()) {
        return Ok(Some("other_currency"));
    }
    let is_other = top_up.payment_intent_id.as_ref().is_some_and(|id| *id != payment.id);
    // Of a checkout's payments one may succeed; elsewhere there is one.
    let is_second = match (top_up.is_checkout(), payment.status) {
        (false, _) => true,
        (true, PaymentStatus::Succeeded) => top_up.status()? == TopUpStatus::Succeeded,
        (true, _) => false,
    };
    Ok((is_other && is_second).then_some("second_payment"))
}

async fn raise(tx: &mut Tx<'_>, top_up: &mut TopUp, alarm: &'static str) -> Result<Outcome> {
    if top_up.alarm.as_deref() != Some(alarm) {
        note_alarm(alarm, &top_up.id.to_string());
        top_up.alarm = Some(alarm.to_owned());
    }
    top_up.ask_at = None;
    queries::top_up_update(tx, top_up).await?;
    Ok(Outcome::Alarm)
}

pub(in crate::billing) fn note_alarm(alarm: &'static str, subject: &str) {
    metrics::counter!("rigmark_payment_alarms_total", "alarm" => alarm).increment(1);
    tracing::error!(alarm, subject, "a payment needs an operator; nothing was credited");
}

/// The payment decides; before there is one, the checkout. A canceled payment of a checkout may be one try of several.
fn status_of(top_up: &TopUp, seen: &Observation) -> TopUpStatus {
    let is_one_try = top_up.is_checkout() && seen.checkout.as_ref().is_none_or(|checkout| checkout.status == CheckoutStatus::Open);
    let expired = seen.checkout.as_ref().is_some_and(|checkout| checkout.status == CheckoutStatus::Expired);
    match seen.payment.as_ref().map(|payment| payment.status) {
        Some(PaymentStatus::Succeeded) => TopUpStatus::Succeeded,
        Some(PaymentStatus::Canceled) if !is_one_try => TopUpStatus::Canceled,
        Some(PaymentStatus::Processing | PaymentStatus::RequiresCapture) => TopUpStatus::Processing,
        _ if expired => TopUpStatus::Canceled,
        Some(PaymentStatus::RequiresAction) => TopUpStatus::RequiresAction,
        Some(_) => TopUpStatus::RequiresPaymentMethod,
        None if seen.checkout.as_ref().is_some_and(|checkout| checkout.status == CheckoutStatus::Complete) => TopUpStatus::Processing,
        None => TopUpStatus::RequiresPaymentMethod,
    }
}

async fn move_to(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &mut TopUp, next: TopUpStatus) -> Result<()> {
    next.as_str().clone_into(&mut top_up.status);
    if next.is_over() {
        top_up.ask_at = None;
        top_up.settled_at = Some(ctx.business_now(tx).await?);
    } else {
        top_up.ask_at = Some(ask_next(top_up.created_at, ctx.clock.wall_now()));
    }
    automatic::note_outcome(ctx, tx, top_up).await
}

/// Tells webhooks of money that came, and of tries that failed.
async fn announce(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp) -> Result<()> {
    let event = match top_up.status()? {
        TopUpStatus::Succeeded => EventType::TopUpSucceeded,
        TopUpStatus::Canceled => EventType::TopUpFailed,
        TopUpStatus::RequiresPaymentMethod if top_up.failure_code.is_some() => EventType::TopUpFailed,
        _ => return Ok(()),
    };
    webhooks::service::emit(ctx, tx, top_up.account_id, event, &TopUpView::new(top_up, None)?).await
}

/// Puts what was paid on the account, under an id that follows from the payment.
async fn credit(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &mut TopUp, payment: &Payment) -> Result<()> {
    let received = Money::from_minor_units(payment.received_minor_units, top_up.amount_micros.currency())?;
    if !received.is_positive() {
        return Err(Error::internal(format!("payment {} succeeded with {received}", payment.id)));
    }
    if received != top_up.amount_micros {
        tracing::warn!(top_up = %top_up.id, %received, amount = %top_up.amount_micros, "another amount was paid than asked for");
    }
    let transfer = TransferRequest {
        id: ledger::service::derived_id(&["top_up", &payment.id]),
        code: TransferCode::TopUp,
        postings: Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Available(top_up.account_id), received)?,
        rental: None,
        payment: Some(payment.id.clone()),
        actor: Actor::System,
        business_at: ctx.business_now(tx).await?,
        linked: None,
    };
    ledger::service::post(tx, transfer).await?;
    top_up.received_micros = Some(received);
    Ok(())
}

/// Asks about every top-up that is due, and writes down the answers.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the rest is left for the next time.
pub async fn ask_due(ctx: &Ctx) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queries::top_ups_take_due(&mut conn, ctx.clock.wall_now(), ASK_LEASE, ASK_ROWS).await?
    };
    for id in taken {
        match ask_one(ctx, stripe, id).await {
            Ok(Ok(())) => {}
            // One row's trouble must not keep the others waiting; its lease brings it back.
            Err(error) => tracing::error!(top_up = %id, error = ?error, "a top-up could not be settled"),
            Ok(Err(StripeFault::NotFound)) => tracing::error!(top_up = %id, "Stripe does not know the payment of a top-up"),
            Ok(Err(fault @ StripeFault::Unknown(_))) => {
                tracing::warn!(top_up = %id, %fault, "Stripe cannot be asked");
                break;
            }
            Ok(Err(fault)) => tracing::error!(top_up = %id, %fault, "a top-up could not be settled"),
        }
    }
    Ok(())
}

async fn ask_one(ctx: &Ctx, stripe: &Stripe, id: TopUpId) -> Result<Result<(), StripeFault>> {
    let row = {
        let mut conn = ctx.db.conn().await?;
        queries::top_up_fetch(&mut conn, id).await?
    };
    let Some(row) = row else { return Ok(Ok(())) };
    let seen = match ask_or_end(ctx, stripe, &row).await {
        Ok(seen) => seen,
        Err(fault) => return Ok(Err(fault)),
    };
    let write = async |tx: &mut Tx<'_>| {
        let Some(mut row) = queries::top_up_lock(tx, id).await? else { return Ok(()) };
        match &seen {
            Some(seen) => drop(record(ctx, tx, &mut row, seen).await?),
            None => record_nothing(ctx, tx, &mut row).await?,
        }
        reschedule(tx, &mut row, ctx.clock.wall_now()).await
    };
    ctx.db.tx("top_up_ask", write).await.map(Ok)
}

/// What Stripe says of the top-up now. One that nobody has paid for long is canceled there, so that it can be paid no more and is asked about
/// no more.
async fn ask_or_end(ctx: &Ctx, stripe: &Stripe, row: &TopUp) -> Result<Option<Observation>, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let is_old = asked_at.signed_duration_since(row.created_at) > TimeDelta::days(ctx.config.tunables.top_up_unpaid_days);
    // A checkout ends by itself after a day, and its payments with it.
    if let Some(id) = row.payment_intent_id.as_ref().filter(|_| is_old && !row.is_checkout()) {
        match stripe.payment_cancel(id).await {
            Ok(payment) => return Ok(Some(Observation { asked_at, checkout: None, payment: Some(payment) })),
            // It is being paid, or over.
            Err(StripeFault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    ask(ctx, stripe, row).await
}

/// Stripe knows nothing of it: once every request of ours has ended, that is final.
async fn record_nothing(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &mut TopUp) -> Result<()> {
    let age = ctx.clock.wall_now().signed_duration_since(top_up.created_at);
    if top_up.status()? != TopUpStatus::Pending || age < NEVER_ARRIVED_AFTER {
        return Ok(());
    }
    top_up.failure_code = Some("never_arrived".to_owned());
    move_to(ctx, tx, top_up, TopUpStatus::Canceled).await?;
    queries::top_up_update(tx, top_up).await?;
    announce(ctx, tx, top_up).await
}

/// An answer that changed nothing leaves the lease as the time of the next question.
async fn reschedule(tx: &mut Tx<'_>, top_up: &mut TopUp, now: chrono::DateTime<Utc>) -> Result<()> {
    if top_up.ask_at.is_some() {
        top_up.ask_at = Some(ask_next(top_up.created_at, now));
        queries::top_up_update(tx, top_up).await?;
    }
    Ok(())
}
