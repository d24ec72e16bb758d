//! All that Stripe knows of a payment after it was paid: its refunds and disputes. Whatever event or list led here, the whole of it is read
//! and written down, so that the order of events, and who made a refund, do not matter.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures::try_join;

use super::{
    super::{
        disputes,
        model::{Observation, Outcome, TopUp},
        queries as billing_queries,
        service::{note_alarm, record_payment},
        state::TopUpStatus,
    },
    queries, settle,
};
use crate::{
    base::{Code, Error, Result, id::TopUpId, money::Currency},
    ctx::Ctx,
    db::Tx,
    integrations::stripe::{Charge, Stripe, StripeDispute, StripeFault, StripeRefund},
    ledger,
};

/// Between two reads of a list a refund may be made.
const READS_MAX: u32 = 3;
/// A webhook comes sooner.
const SCAN_EVERY: TimeDelta = TimeDelta::minutes(10);
/// How far the reading of a list goes back over what was read before: clocks differ, and an object may be listed late.
const SCAN_OVERLAP: TimeDelta = TimeDelta::hours(1);
const FIRST_SCAN_BACK: TimeDelta = TimeDelta::days(7);

/// What Stripe says of one payment.
#[derive(Debug, Clone)]
pub(in super::super) struct History {
    payment_id: String,
    payment: Observation,
    refunds: Vec<StripeRefund>,
    disputes: Vec<StripeDispute>,
    /// Whether Stripe's own sum of the refunds is that of the list.
    adds_up: bool,
}

/// Reads it.
///
/// # Errors
/// No answer.
pub(in super::super) async fn look(ctx: &Ctx, stripe: &Stripe, payment_id: &str) -> Result<History, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let (payment, disputes, mut refunds, mut charges) = try_join!(
        stripe.payment_fetch(payment_id),
        stripe.disputes_of(payment_id),
        stripe.refunds_of(payment_id),
        stripe.charges_of(payment_id),
    )?;
    let mut reads = 1;
    while !adds_up(&refunds, &charges) && reads < READS_MAX {
        (refunds, charges) = try_join!(stripe.refunds_of(payment_id), stripe.charges_of(payment_id))?;
        reads = reads.saturating_add(1);
    }
    let adds_up = adds_up(&refunds, &charges);
    let payment = Observation { asked_at, checkout: None, payment: Some(payment) };
    Ok(History { payment_id: payment_id.to_owned(), payment, refunds, disputes, adds_up })
}

fn adds_up(refunds: &[StripeRefund], charges: &[Charge]) -> bool {
    let counted = refunds.iter().filter(|refund| refund.counts()).try_fold(0_i64, |sum, refund| sum.checked_add(refund.minor_units));
    let stated = charges.iter().try_fold(0_i64, |sum, charge| sum.checked_add(charge.refunded_minor_units));
    counted.is_some() && counted == stated
}

/// Writes it down.
///
/// # Errors
/// `not_found` when no top-up is known by this payment (yet); the ledger's.
pub(in super::super) async fn record(ctx: &Ctx, tx: &mut Tx<'_>, history: &History) -> Result<Outcome> {
    let Some(mut top_up) = lock(tx, history).await? else {
        let payment = history.payment.payment.as_ref();
        if payment.is_some_and(|payment| Currency::parse(&payment.currency).is_none()) {
            note_alarm("other_currency", &history.payment_id);
            return Ok(Outcome::Alarm);
        }
        return Err(Error::not_found("payment"));
    };
    let mut outcome = Outcome::Unchanged;
    if top_up.status()? != TopUpStatus::Succeeded {
        outcome = record_payment(ctx, tx, &mut top_up, &history.payment).await?;
    }
    // Of a second payment for one top-up, or one in another currency, nothing was credited, so nothing can be taken back.
    if top_up.status()? != TopUpStatus::Succeeded || top_up.payment_intent_id.as_deref() != Some(history.payment_id.as_str()) {
        if history.refunds.is_empty() && history.disputes.is_empty() {
            return Ok(outcome);
        }
        note_alarm("uncredited_payment_moved", &history.payment_id);
        return Ok(Outcome::Alarm);
    }
    ledger::service::available_lock(tx, top_up.account_id).await?;
    let mut rows = queries::refunds_of_top_up(tx, top_up.id).await?;
    // The oldest first.
    for seen in history.refunds.iter().rev() {
        outcome = outcome.and(settle::record(ctx, tx, &top_up, &mut rows, seen).await?);
    }
    for seen in history.disputes.iter().rev() {
        outcome = outcome.and(disputes::settle::record(ctx, tx, &top_up, seen).await?);
    }
    if !history.adds_up {
        note_alarm("refunds_do_not_add_up", &history.payment_id);
        return Ok(Outcome::Alarm);
    }
    Ok(outcome)
}

/// By the payment; before the top-up knows its payment, by the row that the payment names.
async fn lock(tx: &mut Tx<'_>, history: &History) -> Result<Option<TopUp>> {
    if let Some(found) = queries::top_up_lock_by_payment(tx, &history.payment_id).await? {
        return Ok(Some(found));
    }
    let named = history.payment.payment.as_ref().and_then(|payment| payment.row_id.as_deref());
    match named.and_then(|text| text.parse::<TopUpId>().ok()) {
        Some(id) => billing_queries::top_up_lock(tx, id).await,
        None => Ok(None),
    }
}

/// Which of Stripe's lists.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Scan {
    Refunds,
    Disputes,
}

impl Scan {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Refunds => "refunds",
            Self::Disputes => "disputes",
        }
    }

    /// The payments with a new object in the list.
    async fn payments(self, stripe: &Stripe, from: DateTime<Utc>) -> Result<BTreeSet<String>, StripeFault> {
        Ok(match self {
            Self::Refunds => stripe.refunds_since(from).await?.into_iter().filter_map(|refund| refund.payment_id).collect(),
            Self::Disputes => stripe.disputes_since(from).await?.into_iter().filter_map(|dispute| dispute.payment_id).collect(),
        })
    }
}

/// Finds what no webhook has told of, when it is time to: reads the list from where it was read last, and looks at each payment in it.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the list is read from the same place next time.
pub(in super::super) async fn scan_due(ctx: &Ctx, stripe: &Stripe, scan: Scan) -> Result<()> {
    let now = ctx.clock.wall_now();
    let earlier = |span: TimeDelta, at: DateTime<Utc>| at.checked_sub_signed(span).unwrap_or(at);
    let next = now.checked_add_signed(SCAN_EVERY).unwrap_or(now);
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queries::scan_take(&mut conn, scan.as_str(), now, next, earlier(FIRST_SCAN_BACK, now)).await?
    };
    let Some(through) = taken else { return Ok(()) };
    let payments = match scan.payments(stripe, earlier(SCAN_OVERLAP, through)).await {
        Ok(payments) => payments,
        Err(fault) => {
            tracing::warn!(list = scan.as_str(), %fault, "one of Stripe's lists cannot be read");
            return Ok(());
        }
    };
    for payment_id in payments {
        if !look_and_record(ctx, stripe, &payment_id).await? {
            return Ok(());
        }
    }
    let mut conn = ctx.db.conn().await?;
    queries::scan_finish(&mut conn, scan.as_str(), now).await
}

/// Reads and writes down one payment; whether that was possible. A payment that is none of a top-up counts as done.
///
/// # Errors
/// The database's own faults, unless they concern this payment alone.
pub(in super::super) async fn look_and_record(ctx: &Ctx, stripe: &Stripe, payment_id: &str) -> Result<bool> {
    let history = match look(ctx, stripe, payment_id).await {
        Ok(history) => history,
        Err(fault) => {
            tracing::warn!(payment = payment_id, %fault, "a payment's refunds and disputes cannot be read");
            return Ok(matches!(fault, StripeFault::NotFound));
        }
    };
    match ctx.db.tx("payment_history", async |tx| record(ctx, tx, &history).await).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::NotFound => Ok(true),
        Err(error) => {
            tracing::error!(payment = payment_id, error = ?error, "a payment's refunds and disputes cannot be written down");
            Ok(false)
        }
    }
}
