//! Saying when to top up, doing it, and what a failure means.

use chrono::{DateTime, Datelike, Months, TimeDelta, Utc};

use super::{
    super::{
        cards::{self, Saved},
        customers,
        model::{Means, TopUp},
        service::{check_amount, check_method, new_row, pay, refused_method, require_stripe},
        state::TopUpStatus,
    },
    model::{AutomaticTopUp, AutomaticTopUpRequest, AutomaticTopUpView, OFF, ON, PAUSED, PausedReason},
    queries,
};
use crate::{
    base::{
        Error, Money, Result,
        faults::Faults,
        id::{AccountId, TopUpId},
    },
    ctx::Ctx,
    db::Tx,
    identity, ledger,
};

/// Between two tries; the database refuses less.
const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::hours(1);
/// When to look again at an account whose last top-up is not over.
const LOOK_AGAIN_AFTER: TimeDelta = TimeDelta::minutes(10);
const DUE_ROWS: i64 = 20;
/// What our own side calls a request that Stripe never got: nobody's card is at fault.
const NEVER_ARRIVED: &str = "never_arrived";
const AUTHENTICATION_REQUIRED: &str = "authentication_required";

/// # Errors
/// `not_found` while it is off.
pub async fn automatic_show(ctx: &Ctx, account: AccountId) -> Result<AutomaticTopUpView> {
    let row = queries::automatic_fetch(&mut *ctx.db.conn().await?, account).await?;
    row.map(AutomaticTopUpView::new).transpose()?.flatten().ok_or_else(not_there)
}

fn not_there() -> Error {
    Error::not_found("automatic top-up")
}

/// Turns it on, or on again after a pause. It does not bring the next try forward.
///
/// # Errors
/// `no_payment_provider` in the sandbox; `invalid_input`.
pub async fn automatic_set(ctx: &Ctx, account: AccountId, request: &AutomaticTopUpRequest) -> Result<AutomaticTopUpView> {
    require_stripe(ctx)?;
    check(ctx, request)?;
    let now = ctx.clock.wall_now();
    let save = async |tx: &mut Tx<'_>| {
        let payment_method_id = card(tx, account, request).await?;
        let new = AutomaticTopUp {
            account_id: account,
            threshold_micros: request.threshold,
            amount_micros: request.amount,
            monthly_max_micros: request.monthly_max,
            payment_method_id,
            state: ON.to_owned(),
            paused_reason: None,
            failure_count: 0,
            last_failure_code: None,
            last_failure_at: None,
            last_failure_top_up_id: None,
            last_top_up_id: None,
            last_try_at: None,
            next_try_at: now,
            // To be looked at: the balance may be low already.
            is_low: true,
            created_at: now,
            updated_at: now,
        };
        if queries::automatic_insert(tx, &new).await? {
            return Ok(new);
        }
        let old = queries::automatic_lock(tx, account).await?.ok_or_else(not_there)?;
        let next_try_at = old.last_try_at.and_then(|at| at.checked_add_signed(TRY_AGAIN_AFTER)).unwrap_or(now).max(now);
        let row = AutomaticTopUp {
            next_try_at,
            last_failure_code: old.last_failure_code,
            last_failure_at: old.last_failure_at,
            last_failure_top_up_id: old.last_failure_top_up_id,
            last_top_up_id: old.last_top_up_id,
            last_try_at: old.last_try_at,
            created_at: old.created_at,
            ..new
        };
        queries::automatic_update(tx, &row).await?;
        Ok(row)
    };
    let row = ctx.db.tx("automatic_top_up_set", save).await?;
    AutomaticTopUpView::new(row)?.ok_or_else(not_there)
}

fn check(ctx: &Ctx, request: &AutomaticTopUpRequest) -> Result<()> {
    let mut faults = Faults::default();
    check_amount(ctx, &mut faults, request.amount)?;
    if !request.threshold.is_positive() {
        faults.add("/threshold", "too_small", "The threshold must be more than zero.");
    }
    if request.monthly_max.is_some_and(|most| most < request.amount) {
        faults.add("/monthly_max", "too_small", "The limit of a month must be at least one top-up.");
    }
    check_method(&mut faults, request.payment_method.as_deref());
    faults.finish()
}

async fn card(tx: &mut Tx<'_>, account: AccountId, request: &AutomaticTopUpRequest) -> Result<String> {
    // Who removes a card waits, or has done so: then it is not found below.
    customers::lock_account(tx, account).await?;
    if let Some(id) = &request.payment_method {
        let is_theirs = matches!(cards::saved_method(tx, account, id).await?, Saved::With(_));
        return if is_theirs { Ok(id.clone()) } else { Err(refused_method()) };
    }
    let default = cards::default_method(tx, account).await?;
    default.ok_or_else(|| Error::invalid("/payment_method", "required", "The account has no default card: name one, or save one first."))
}

/// Turns it off.
///
/// # Errors
/// `not_found` while it is off.
pub async fn automatic_end(ctx: &Ctx, account: AccountId) -> Result<()> {
    let end = async |tx: &mut Tx<'_>| {
        let row = queries::automatic_lock(tx, account).await?.filter(|row| row.state != OFF).ok_or_else(not_there)?;
        let row = AutomaticTopUp { state: OFF.to_owned(), paused_reason: None, ..row };
        queries::automatic_update(tx, &row).await
    };
    ctx.db.tx("automatic_top_up_end", end).await
}

/// Tops up every account that is due.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged; the poller finds out what became of it.
pub async fn top_up_due(ctx: &Ctx) -> Result<()> {
    if ctx.stripe.is_none() {
        return Ok(());
    }
    let due = queries::automatic_list_due(&mut *ctx.db.conn().await?, ctx.clock.wall_now(), DUE_ROWS).await?;
    for account in due {
        let done = async {
            match ctx.db.tx("automatic_top_up_begin", async |tx| begin(ctx, tx, account).await).await? {
                Some(row) => pay(ctx, &row).await,
                None => Ok(()),
            }
        };
        // One account's trouble must not keep the others waiting; its next try is written already.
        if let Err(error) = done.await {
            tracing::warn!(%account, error = ?error, "an automatic top-up is left to the poller");
        }
    }
    Ok(())
}

/// Commits a top-up when one is due, and when the next may be.
async fn begin(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId) -> Result<Option<TopUp>> {
    let now = ctx.clock.wall_now();
    let Some(mut row) = queries::automatic_lock_due(tx, account, now).await? else { return Ok(None) };
    // Read after the lock was had: a posting that commits later finds the mark taken back, and sets it again.
    if ledger::service::balance(tx, account).await?.available >= row.threshold_micros {
        row.is_low = false;
        queries::automatic_update(tx, &row).await?;
        return Ok(None);
    }
    if let Some(later) = not_before(tx, &row, now).await? {
        row.next_try_at = later;
        queries::automatic_update(tx, &row).await?;
        return Ok(None);
    }
    let Saved::With(customer) = cards::saved_method(tx, account, &row.payment_method_id).await? else {
        pause(&mut row, PausedReason::PaymentMethodRemoved);
        queries::automatic_update(tx, &row).await?;
        return Ok(None);
    };
    let mut top_up = new_row(ctx, account, row.amount_micros, Means::Automatic);
    top_up.payment_method = Some(row.payment_method_id.clone());
    top_up.customer_id = Some(customer);
    super::super::queries::top_up_insert(tx, &top_up).await?;
    row.last_top_up_id = Some(top_up.id);
    row.last_try_at = Some(now);
    row.next_try_at = after(now, TRY_AGAIN_AFTER);
    queries::automatic_update(tx, &row).await?;
    Ok(Some(top_up))
}

fn after(now: DateTime<Utc>, pause: TimeDelta) -> DateTime<Utc> {
    now.checked_add_signed(pause).unwrap_or(now)
}

/// When to look again at an account that must not be topped up now.
async fn not_before(tx: &mut Tx<'_>, row: &AutomaticTopUp, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    if queries::is_under_way(tx, row.account_id).await? {
        return Ok(Some(after(now, LOOK_AGAIN_AFTER)));
    }
    let Some(most) = row.monthly_max_micros else { return Ok(None) };
    let (from, to) = month(now)?;
    let brought_in = queries::brought_in_since(tx, row.account_id, from).await?;
    Ok((brought_in.plus(row.amount_micros)? > most).then_some(to))
}

/// The UTC month that holds `now`, half-open.
fn month(now: DateTime<Utc>) -> Result<(DateTime<Utc>, DateTime<Utc>)> {
    let first = now.date_naive().with_day(1).ok_or_else(|| Error::internal("a month without a first day"))?;
    let next = first.checked_add_months(Months::new(1)).ok_or_else(|| Error::internal("the last month of time"))?;
    let midnight = |day: chrono::NaiveDate| day.and_time(chrono::NaiveTime::MIN).and_utc();
    Ok((midnight(first), midnight(next)))
}

fn pause(row: &mut AutomaticTopUp, reason: PausedReason) {
    PAUSED.clone_into(&mut row.state);
    row.paused_reason = Some(reason.as_str().to_owned());
}

/// What the new status of a top-up says about the next one. `top_up` is locked by this transaction, and may be seen again in the same status.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn note_outcome(ctx: &Ctx, tx: &mut Tx<'_>, top_up: &TopUp) -> Result<()> {
    if top_up.means != Means::Automatic.as_str() {
        return Ok(());
    }
    let row = queries::automatic_lock(tx, top_up.account_id).await?;
    let Some(mut row) = row.filter(|row| row.last_top_up_id == Some(top_up.id)) else { return Ok(()) };
    let default = || "payment_failed".to_owned();
    match top_up.status()? {
        TopUpStatus::Pending | TopUpStatus::Processing => return Ok(()),
        TopUpStatus::Succeeded => row.failure_count = 0,
        TopUpStatus::RequiresAction => return failed(ctx, tx, row, top_up, AUTHENTICATION_REQUIRED.to_owned()).await,
        TopUpStatus::RequiresPaymentMethod | TopUpStatus::Canceled => {
            let code = top_up.failure_code.clone().unwrap_or_else(default);
            return failed(ctx, tx, row, top_up, code).await;
        }
    }
    queries::automatic_update(tx, &row).await
}

async fn failed(ctx: &Ctx, tx: &mut Tx<'_>, mut row: AutomaticTopUp, top_up: &TopUp, code: String) -> Result<()> {
    if row.last_failure_top_up_id == Some(top_up.id) || code == NEVER_ARRIVED {
        return Ok(());
    }
    row.failure_count = row.failure_count.saturating_add(1);
    row.last_failure_at = Some(ctx.clock.wall_now());
    row.last_failure_top_up_id = Some(top_up.id);
    let too_many = row.failure_count >= ctx.config.tunables.automatic_top_up_failures_max;
    if row.state == ON && code == AUTHENTICATION_REQUIRED {
        pause(&mut row, PausedReason::AuthenticationRequired);
    } else if row.state == ON && too_many {
        pause(&mut row, PausedReason::PaymentsFailed);
    }
    let text = failure_text(top_up.id, top_up.amount_micros, &code, row.state == PAUSED);
    row.last_failure_code = Some(code);
    queries::automatic_update(tx, &row).await?;
    identity::service::notify(ctx, tx, row.account_id, "An automatic top-up failed", &text).await
}

fn failure_text(id: TopUpId, amount: Money, code: &str, is_paused: bool) -> String {
    let why = match code {
        AUTHENTICATION_REQUIRED => "your bank wants you to confirm the payment yourself".to_owned(),
        code => format!("the payment was declined ({code})"),
    };
    let next = if is_paused {
        "Automatic top-up is paused until you save it again. Running rentals end when the balance is used up."
    } else {
        "It is tried again in an hour at the earliest."
    };
    format!("The automatic top-up {id} of {amount} US dollars failed: {why}.\n\n{next}")
}

/// A card is charged no more: what would have charged it is paused.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn card_removed(ctx: &Ctx, tx: &mut Tx<'_>, payment_method: &str) -> Result<()> {
    let reason = PausedReason::PaymentMethodRemoved.as_str();
    for account in queries::automatic_pause_of_card(tx, payment_method, reason).await? {
        let text = "The card that it charged was removed. Automatic top-up is paused until you save it again with another card. \
                    Running rentals end when the balance is used up.";
        identity::service::notify(ctx, tx, account, "Automatic top-up is paused", text).await?;
    }
    Ok(())
}
