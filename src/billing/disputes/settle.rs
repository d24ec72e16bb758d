//! Writing down where a dispute stands, and moving its money. The one way on which a dispute changes, whoever saw it first; under the lock of
//! the payment's top-up.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        model::{Outcome, TopUp},
        service::note_alarm,
        state::ask_next,
    },
    model::{Dispute, DisputeStatus},
    queries,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{DisputeId, HoldId, TopUpId, TransferId},
        money::Currency,
    },
    ctx::Ctx,
    db::Tx,
    identity,
    integrations::stripe::StripeDispute,
    ledger::{
        self, LedgerAccount, TransferCode,
        model::{Actor, HoldRequest, derived_id},
        service::{Posting, TransferRequest},
    },
};

/// What was won comes back within days.
const COMES_BACK_WITHIN: TimeDelta = TimeDelta::days(30);

/// What of a payment cannot be refunded because it is or was disputed. The top-up is locked.
///
/// # Errors
/// The database's own faults.
pub(in super::super) async fn disputed_of(tx: &mut Tx<'_>, top_up: TopUpId) -> Result<Money> {
    let rows = queries::disputes_of_top_up(tx, top_up).await?;
    rows.iter().try_fold(Money::ZERO, |sum, row| sum.plus(row.out_of_reach()?))
}

/// Writes down one dispute as Stripe has it.
///
/// # Errors
/// The ledger's; `internal` when Stripe has given back what it never took.
pub(in super::super) async fn record(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, seen: &StripeDispute) -> Result<Outcome> {
    let currency = top_up.amount_micros.currency();
    if Currency::parse(&seen.currency) != Some(currency) {
        note_alarm("other_currency", &seen.id);
        return Ok(Outcome::Alarm);
    }
    let found = queries::dispute_by_stripe_id(tx, &seen.id).await?;
    if found.as_ref().is_some_and(|row| row.top_up_id != top_up.id) {
        note_alarm("dispute_of_another_payment", &seen.id);
        return Ok(Outcome::Alarm);
    }
    let is_new = found.is_none();
    let mut row = match found {
        Some(row) => row,
        None => opened(ctx, tx, top_up, seen).await?,
    };
    let before = row.clone();
    let now = ctx.business_now(tx).await?;
    let next = DisputeStatus::from(seen.status);
    if row.status()?.may_become(next) {
        next.as_str().clone_into(&mut row.status);
        row.closed_at = (!next.is_open()).then_some(now);
    }
    row.amount_micros = Money::from_minor_units(seen.minor_units, currency)?;
    row.fee_micros = Money::from_minor_units(seen.fee_minor_units, currency)?;
    row.evidence_due_at = seen.evidence_due_at;
    let withdrawn = Money::from_minor_units(seen.withdrawn_minor_units, currency)?;
    let reinstated = Money::from_minor_units(seen.reinstated_minor_units, currency)?;
    book(tx, top_up, &mut row, withdrawn, reinstated, now).await?;
    keep_out_of_reach(tx, &mut row, now).await?;
    row.ask_at = ask_again(&row, ctx.clock.wall_now())?;
    queries::dispute_update(tx, &row).await?;
    if is_new || before.status != row.status {
        tell(ctx, tx, &row, is_new).await?;
    }
    let same = Dispute { ask_at: before.ask_at, ..row.clone() } == before;
    Ok(if same && !is_new { Outcome::Unchanged } else { Outcome::Applied })
}

async fn opened(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp, seen: &StripeDispute) -> Result<Dispute> {
    let status = DisputeStatus::from(seen.status);
    let row = Dispute {
        id: DisputeId::new(),
        top_up_id: top_up.id,
        account_id: top_up.account_id,
        stripe_dispute_id: seen.id.clone(),
        amount_micros: Money::from_minor_units(seen.minor_units, top_up.amount_micros.currency())?,
        reason: seen.reason.clone(),
        status: status.as_str().to_owned(),
        withdrawn_micros: Money::ZERO,
        reinstated_micros: Money::ZERO,
        fee_micros: Money::ZERO,
        hold_id: None,
        evidence_due_at: seen.evidence_due_at,
        ask_at: None,
        ask_count: 0,
        created_at: ctx.clock.wall_now(),
        closed_at: if status.is_open() { None } else { Some(ctx.business_now(tx).await?) },
    };
    queries::dispute_insert(tx, &row).await?;
    Ok(row)
}

/// Books what Stripe has taken and given back beyond what is booked. Its sums only grow, so an older answer books nothing.
async fn book(tx: &mut Tx<'_>, top_up: &TopUp, row: &mut Dispute, withdrawn: Money, reinstated: Money, now: DateTime<Utc>) -> Result<()> {
    let (available, clearing) = (LedgerAccount::Available(row.account_id), LedgerAccount::StripeClearing);
    let taken = withdrawn.minus(row.withdrawn_micros)?;
    let given = reinstated.minus(row.reinstated_micros)?;
    if taken.is_positive() {
        // What was set aside for it is there to be taken.
        release(tx, row, now).await?;
        row.withdrawn_micros = withdrawn;
        let transfer = TransferRequest {
            id: chargeback_id(row),
            code: TransferCode::Chargeback,
            postings: Posting::between(available, clearing, taken)?,
            rental: None,
            payment: top_up.payment_intent_id.clone(),
            actor: Actor::System,
            business_at: now,
            linked: None,
        };
        ledger::service::post(tx, transfer).await?;
    }
    if given.is_positive() {
        if row.withdrawn_micros < reinstated {
            return Err(Error::internal(format!("dispute {} gives back {reinstated} of {}", row.id, row.withdrawn_micros)));
        }
        row.reinstated_micros = reinstated;
        let transfer = TransferRequest {
            id: derived_id(&["chargeback_reversed", &row.id.to_string(), &reinstated.micros().to_string()]),
            code: TransferCode::ChargebackReversed,
            postings: Posting::between(clearing, available, given)?,
            rental: None,
            payment: top_up.payment_intent_id.clone(),
            actor: Actor::System,
            business_at: now,
            linked: Some(chargeback_id(row)),
        };
        ledger::service::post(tx, transfer).await?;
    }
    Ok(())
}

/// The chargeback that brought the sum to what it is.
fn chargeback_id(row: &Dispute) -> TransferId {
    derived_id(&["chargeback", &row.id.to_string(), &row.withdrawn_micros.micros().to_string()])
}

/// While it is open: the account rents nothing new, and what was not taken is set aside.
async fn keep_out_of_reach(tx: &mut Tx<'_>, row: &mut Dispute, now: DateTime<Utc>) -> Result<()> {
    let subject = row.id.to_string();
    if !row.status()?.is_open() {
        release(tx, row, now).await?;
        return ledger::service::unfreeze(tx, row.account_id, &subject).await;
    }
    ledger::service::freeze(tx, row.account_id, &subject).await?;
    if row.hold_id.is_none() && row.withdrawn_micros.is_zero() {
        let hold = HoldRequest {
            id: HoldId::new(),
            transfer_id: derived_id(&["dispute_hold", &subject]),
            account: row.account_id,
            rental: None,
            amount: row.amount_micros,
            actor: Actor::System,
            business_at: now,
            expires_at: None,
        };
        row.hold_id = Some(hold.id);
        ledger::service::hold_at_most(tx, hold).await?;
    }
    Ok(())
}

/// Once for each dispute: none is held for again after something was taken or it was closed.
async fn release(tx: &mut Tx<'_>, row: &Dispute, now: DateTime<Utc>) -> Result<()> {
    if let Some(hold) = row.hold_id {
        ledger::service::release(tx, hold, derived_id(&["dispute_release", &row.id.to_string()]), now).await?;
    }
    Ok(())
}

/// When Stripe is asked next: while it is open, and until what was won has come back.
fn ask_again(row: &Dispute, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let status = row.status()?;
    let comes_back = status == DisputeStatus::Won
        && row.reinstated_micros < row.withdrawn_micros
        && row.closed_at.is_some_and(|closed_at| now.signed_duration_since(closed_at) < COMES_BACK_WITHIN);
    Ok((status.is_open() || comes_back).then(|| ask_next(row.created_at, now)))
}

/// Writes to whoever looks after the account when a dispute opens and when it is decided.
async fn tell(ctx: &Ctx, tx: &mut Tx<'_>, row: &Dispute, is_new: bool) -> Result<()> {
    let status = row.status()?;
    let (amount, id) = (row.amount_micros, row.id);
    let (subject, text) = match status {
        DisputeStatus::Won => ("A dispute is won", format!("The dispute {id} of {amount} usd is won.")),
        DisputeStatus::Lost => ("A dispute is lost", format!("The dispute {id} of {amount} usd is lost; the payment stays taken back.")),
        DisputeStatus::WarningClosed | DisputeStatus::Prevented => {
            ("A dispute is closed", format!("The bank's inquiry {id} about {amount} usd is closed."))
        }
        _ if is_new => (
            "A payment is disputed",
            format!(
                "The payer's bank disputes a payment of {amount} usd ({id}). Until that is decided the amount is out of reach and nothing new \
                 can be rented. What shows that the payment was right is in one file: {}/api/v1/disputes/{id}/evidence",
                ctx.public_url
            ),
        ),
        _ => return Ok(()),
    };
    identity::service::notify(ctx, tx, row.account_id, subject, &text).await
}
