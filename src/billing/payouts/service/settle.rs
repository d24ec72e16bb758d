//! Asking Stripe for a payout's transfer or what became of it, and writing down what it said. The one way on which a payout changes.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        super::{model::Outcome, service::note_alarm, state::ask_next},
        letters,
        model::{Payout, PayoutStatus},
        queries,
        state::again_at,
    },
    accounts,
    payouts::taken_id,
};
use crate::{
    base::{Error, Money, Result, id::PayoutId, money::Currency},
    ctx::Ctx,
    db::Tx,
    identity,
    integrations::stripe::{NewTransfer, Refusal, Stripe, StripeFault, StripeTransfer},
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Actor,
        service::{Posting, TransferRequest},
    },
};

/// How long the poller has for what it took.
const ASK_LEASE: TimeDelta = TimeDelta::minutes(5);
const ASK_ROWS: i64 = 20;
/// A request of ours has long ended after this: what Stripe does not list by then was never made, and is asked for under another key.
const NEVER_ARRIVED_AFTER: TimeDelta = TimeDelta::minutes(30);
/// What became of money that is on the payout account is left to webhooks after this.
const ASKED_FOR: TimeDelta = TimeDelta::days(30);
/// Stripe has too little of our money; it comes with the next top-ups.
const PLATFORM_IS_SHORT: &str = "balance_insufficient";

/// What came of asking.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Seen {
        transfer: StripeTransfer,
        asked_at: DateTime<Utc>,
    },
    /// Stripe will not make this transfer.
    Refused {
        attempt: i32,
        code: String,
    },
    /// It cannot now, and did nothing.
    NotNow {
        attempt: i32,
        code: String,
    },
    /// It lists no transfer, though it was asked for one some time ago.
    Absent {
        attempt: i32,
    },
    /// Stripe will not take it back: the payout account no longer has it.
    NotReturned {
        transfer: StripeTransfer,
        asked_at: DateTime<Utc>,
        code: String,
    },
    /// Nobody knows: Stripe cannot be asked.
    Unclear,
    /// There was nothing to ask.
    Nothing,
}

/// Asks, outside any transaction. `is_new`: nobody has asked for its transfer before.
///
/// # Errors
/// The database's own faults; what Stripe does is in the answer.
pub(super) async fn ask(ctx: &Ctx, stripe: &Stripe, row: &Payout, is_new: bool) -> Result<Answer> {
    let asked_at = ctx.clock.wall_now();
    if let Some(id) = &row.stripe_transfer_id {
        return Ok(ask_again(ctx, stripe, row, id).await);
    }
    if row.status()? != PayoutStatus::Pending {
        return Ok(Answer::Nothing);
    }
    let account = queries::account_fetch(&mut *ctx.db.conn().await?, row.payout_account_id).await?;
    let destination = account.and_then(|account| account.stripe_account_id);
    let destination = destination.ok_or_else(|| Error::internal("a payout to an account that was never made"))?;
    let row_id = row.id.to_string();
    if !is_new {
        match stripe.transfer_find(&row_id).await {
            Ok(Some(transfer)) => return Ok(Answer::Seen { transfer, asked_at }),
            Ok(None) => {}
            Err(fault) => return Ok(unclear(row.id, &fault)),
        }
    }
    let new = NewTransfer { row_id: &row_id, attempt: row.attempt, amount: row.amount_micros, destination: &destination };
    let fault = match stripe.transfer_create(&new).await {
        Ok(transfer) => return Ok(Answer::Seen { transfer, asked_at }),
        Err(fault) => fault,
    };
    let attempt = row.attempt;
    Ok(match fault {
        StripeFault::Refused(Refusal { code: Some(code), .. }) if code == PLATFORM_IS_SHORT => Answer::NotNow { attempt, code },
        StripeFault::Refused(refusal) => Answer::Refused { attempt, code: refusal.code.unwrap_or_else(|| "refused".to_owned()) },
        StripeFault::NotFound => Answer::Refused { attempt, code: "account_invalid".to_owned() },
        StripeFault::Declined { code, .. } => Answer::Refused { attempt, code: code.unwrap_or_else(|| "declined".to_owned()) },
        fault => match stripe.transfer_find(&row_id).await {
            Ok(Some(transfer)) => Answer::Seen { transfer, asked_at },
            Ok(None) => Answer::Absent { attempt },
            Err(_) => unclear(row.id, &fault),
        },
    })
}

fn unclear(payout: PayoutId, fault: &StripeFault) -> Answer {
    tracing::warn!(%payout, %fault, "nobody knows what became of a payout");
    Answer::Unclear
}

/// What became of a transfer; one that is recalled is taken back first.
async fn ask_again(ctx: &Ctx, stripe: &Stripe, row: &Payout, id: &str) -> Answer {
    let fetch = async || Ok::<_, StripeFault>((ctx.clock.wall_now(), stripe.transfer_fetch(id).await?));
    let (asked_at, transfer) = match fetch().await {
        Ok(found) => found,
        Err(fault) => return unclear(row.id, &fault),
    };
    if !row.is_recalled || transfer.reversed_minor_units >= transfer.minor_units {
        return Answer::Seen { transfer, asked_at };
    }
    match stripe.transfer_reverse(&transfer).await {
        Ok(()) => match fetch().await {
            Ok((asked_at, transfer)) => Answer::Seen { transfer, asked_at },
            Err(fault) => unclear(row.id, &fault),
        },
        Err(StripeFault::Refused(refusal)) => {
            Answer::NotReturned { transfer, asked_at, code: refusal.code.unwrap_or_else(|| "refused".to_owned()) }
        }
        Err(StripeFault::NotFound) => Answer::NotReturned { transfer, asked_at, code: "account_invalid".to_owned() },
        Err(fault) => unclear(row.id, &fault),
    }
}

/// Writes down what came of asking. `row` is locked by this transaction.
///
/// # Errors
/// The ledger's.
pub(super) async fn apply(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut Payout, answer: &Answer) -> Result<Outcome> {
    let now = ctx.clock.wall_now();
    // An answer to a request that another has gone beyond says nothing of the present one.
    let is_open = |row: &Payout, attempt: i32| Ok::<_, Error>(row.status()? == PayoutStatus::Pending && row.attempt == attempt);
    match answer {
        Answer::Seen { transfer, asked_at } => return record(ctx, tx, row, transfer, *asked_at).await,
        Answer::Refused { attempt, code } if is_open(row, *attempt)? => return fail(ctx, tx, row, code).await,
        Answer::NotNow { attempt, code } if is_open(row, *attempt)? => {
            next_attempt(row, now);
            row.failure_code = Some(code.clone());
            row.ask_at = Some(again_at(row.created_at, now));
        }
        Answer::Absent { attempt } if is_open(row, *attempt)? => {
            let is_old = row.attempted_at.is_none_or(|at| now.signed_duration_since(at) > NEVER_ARRIVED_AFTER);
            if is_old {
                next_attempt(row, now);
            }
        }
        Answer::NotReturned { transfer, asked_at, code } => {
            record(ctx, tx, row, transfer, *asked_at).await?;
            row.failure_code = Some(code.clone());
            row.ask_at = None;
        }
        Answer::Refused { .. } | Answer::NotNow { .. } | Answer::Absent { .. } | Answer::Unclear | Answer::Nothing => {
            return Ok(Outcome::Unchanged);
        }
    }
    queries::payout_update(tx, row).await?;
    Ok(Outcome::Applied)
}

fn next_attempt(row: &mut Payout, now: DateTime<Utc>) {
    row.attempt = row.attempt.saturating_add(1);
    row.attempted_at = Some(now);
}

/// Writes down a transfer as Stripe has it.
///
/// # Errors
/// The ledger's.
pub(super) async fn record(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    row: &mut Payout,
    transfer: &StripeTransfer,
    asked_at: DateTime<Utc>,
) -> Result<Outcome> {
    let Some(reversed) = figures(row, transfer)? else { return raise(tx, row).await };
    let was = (row.status.clone(), row.reversed_micros);
    if row.status()? == PayoutStatus::Pending {
        PayoutStatus::Sent.as_str().clone_into(&mut row.status);
        row.stripe_transfer_id = Some(transfer.id.clone());
        row.transferred_at = Some(transfer.created);
        row.failure_code = None;
        row.ask_at = Some(ask_next(row.created_at, asked_at));
    }
    // Cumulative: an older answer has a smaller figure, and is of no concern.
    if reversed > row.reversed_micros {
        give_back(ctx, tx, row, reversed).await?;
    }
    queries::payout_update(tx, row).await?;
    Ok(if was == (row.status.clone(), row.reversed_micros) { Outcome::Unchanged } else { Outcome::Applied })
}

/// What was taken back of the payout's transfer; `None` when this transfer is not the one that was asked for.
fn figures(row: &Payout, transfer: &StripeTransfer) -> Result<Option<Money>> {
    let currency = row.amount_micros.currency();
    let is_other = row.stripe_transfer_id.as_ref().is_some_and(|id| *id != transfer.id);
    // A payout that was booked back must not have been sent after all.
    let is_over = row.stripe_transfer_id.is_none() && row.status()? != PayoutStatus::Pending;
    let is_alike = Currency::parse(&transfer.currency) == Some(currency)
        && Money::from_minor_units(transfer.minor_units, currency)? == row.amount_micros;
    if is_other || is_over || !is_alike {
        return Ok(None);
    }
    Money::from_minor_units(transfer.reversed_minor_units, currency).map(Some)
}

async fn raise(tx: &mut Tx<'_>, row: &mut Payout) -> Result<Outcome> {
    const ALARM: &str = "other_transfer";
    if row.alarm.is_none() {
        note_alarm(ALARM, &row.id.to_string());
        row.alarm = Some(ALARM.to_owned());
    }
    row.ask_at = None;
    queries::payout_update(tx, row).await?;
    Ok(Outcome::Alarm)
}

/// Books back what Stripe took back beyond what is booked.
async fn give_back(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut Payout, reversed: Money) -> Result<()> {
    let more = reversed.minus(row.reversed_micros)?;
    let id = ledger::service::derived_id(&["payout_reversed", &row.id.to_string(), &reversed.micros().to_string()]);
    return_money(ctx, tx, row, id, more).await?;
    row.reversed_micros = reversed;
    if reversed == row.amount_micros {
        over(ctx, tx, row, PayoutStatus::Reversed).await?;
    }
    Ok(())
}

/// Stripe will never make it: the money is payable again.
async fn fail(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut Payout, code: &str) -> Result<Outcome> {
    let id = ledger::service::derived_id(&["payout_failed", &row.id.to_string()]);
    return_money(ctx, tx, row, id, row.amount_micros).await?;
    row.failure_code = Some(code.to_owned());
    over(ctx, tx, row, PayoutStatus::Failed).await?;
    queries::payout_update(tx, row).await?;
    let (subject, text) = letters::payout_failed(row.amount_micros, code);
    identity::service::notify(ctx, tx, row.account_id, subject, &text).await?;
    Ok(Outcome::Applied)
}

async fn over(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut Payout, status: PayoutStatus) -> Result<()> {
    status.as_str().clone_into(&mut row.status);
    row.ask_at = None;
    row.settled_at = Some(ctx.business_now(tx).await?);
    Ok(())
}

async fn return_money(ctx: &Ctx, tx: &mut Tx<'_>, row: &Payout, id: crate::base::id::TransferId, amount: Money) -> Result<()> {
    let transfer = TransferRequest {
        id,
        code: TransferCode::PayoutFailed,
        postings: Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Payable(row.account_id), amount)?,
        rental: None,
        payment: Some(row.id.to_string()),
        actor: Actor::System,
        business_at: ctx.business_now(tx).await?,
        linked: Some(taken_id(row.id)),
    };
    ledger::service::post(tx, transfer).await.map(drop)
}

/// Sends what waits and asks about every payout that is due, and writes down the answers.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the rest is left for the next time.
pub async fn ask_due(ctx: &Ctx) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queries::payouts_take_due(&mut conn, ctx.clock.wall_now(), ASK_LEASE, ASK_ROWS).await?
    };
    for id in taken {
        match ask_one(ctx, stripe, id).await {
            // Nor can it be asked about the others now.
            Ok(Answer::Unclear) => break,
            Ok(_) => {}
            // One row's trouble must not keep the others waiting; its lease brings it back.
            Err(error) => tracing::error!(payout = %id, error = ?error, "a payout could not be settled"),
        }
    }
    Ok(())
}

async fn ask_one(ctx: &Ctx, stripe: &Stripe, id: PayoutId) -> Result<Answer> {
    let row = queries::payout_fetch(&mut *ctx.db.conn().await?, id).await?;
    let Some(row) = row else { return Ok(Answer::Nothing) };
    let answer = ask(ctx, stripe, &row, false).await?;
    let write = async |tx: &mut Tx<'_>| {
        let Some(mut row) = queries::payout_lock(tx, id).await? else { return Ok(()) };
        apply(ctx, tx, &mut row, &answer).await?;
        reschedule(tx, &mut row, ctx.clock.wall_now()).await
    };
    ctx.db.tx("payout_ask", write).await?;
    look_after(ctx, stripe, &row, &answer).await?;
    Ok(answer)
}

/// What Stripe refuses may be the payout account's fault: it is looked at again.
///
/// # Errors
/// The database's own faults.
pub(super) async fn look_after(ctx: &Ctx, stripe: &Stripe, row: &Payout, answer: &Answer) -> Result<()> {
    let Answer::Refused { .. } = answer else { return Ok(()) };
    let account = queries::account_fetch(&mut *ctx.db.conn().await?, row.payout_account_id).await?;
    if let Some(account) = account {
        accounts::refresh(ctx, stripe, account).await?;
    }
    Ok(())
}

/// An answer that set no time leaves the lease; what is long on the payout account is left to webhooks.
async fn reschedule(tx: &mut Tx<'_>, row: &mut Payout, now: DateTime<Utc>) -> Result<()> {
    if row.ask_at.is_none() {
        return Ok(());
    }
    let is_old = now.signed_duration_since(row.created_at) > ASKED_FOR;
    let next = ask_next(row.created_at, now);
    row.ask_at = match row.status()? {
        PayoutStatus::Pending => Some(row.ask_at.map_or(next, |at| if row.failure_code.is_some() { at } else { next })),
        PayoutStatus::Sent if is_old && !row.is_recalled => None,
        _ => Some(next),
    };
    queries::payout_update(tx, row).await
}
