//! Beginning a payout, and reading it.

use chrono::TimeDelta;

use super::{
    super::{
        model::{Payout, PayoutAccount, PayoutAccountStatus, PayoutRequest, PayoutStatus, PayoutView},
        queries,
        state::withdrawable,
    },
    accounts::minimums,
    require_stripe,
    settle::{self, Answer},
};
use crate::{
    base::{
        Code, Error, Money, Result,
        faults::Faults,
        id::{AccountId, PayoutId},
    },
    ctx::Ctx,
    db::Tx,
    identity::Caller,
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Actor,
        service::{Posting, TransferRequest},
    },
};

/// How long a key is its payout's; as long as `web::idempotency` keeps answers.
const KEY_KEPT: TimeDelta = TimeDelta::hours(25);
/// Soon after a request has ended, in case that its end was not written down.
const FIRST_ASK_AFTER: TimeDelta = TimeDelta::minutes(2);

/// A payout that Stripe has been asked for.
pub struct Begun {
    id: PayoutId,
    answer: Answer,
}

/// Which of an account's payouts, newest first.
#[derive(Debug, Clone, Copy)]
pub struct ListFilter {
    pub status: Option<PayoutStatus>,
    pub before: Option<PayoutId>,
    pub limit: i64,
}

/// Takes the money out of what is payable and asks Stripe to transfer it. `request_key` names the request: a repeat finds what the first one did.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`, `idempotency_key_reused`, `payouts_not_enabled`, `insufficient_funds`. That Stripe gives no answer is
/// none: the payout is then pending.
pub async fn payout_begin(ctx: &Ctx, caller: &Caller, request: &PayoutRequest, request_key: &str) -> Result<Begun> {
    let stripe = require_stripe(ctx)?;
    check(ctx, request)?;
    let begin = async |tx: &mut Tx<'_>| begin(ctx, tx, caller, request, request_key).await;
    let (row, is_new) = ctx.db.tx("payout_begin", begin).await?;
    let answer = settle::ask(ctx, stripe, &row, is_new).await?;
    settle::look_after(ctx, stripe, &row, &answer).await?;
    Ok(Begun { id: row.id, answer })
}

/// Writes down what Stripe said.
///
/// # Errors
/// The database's own faults.
pub async fn payout_record(ctx: &Ctx, tx: &mut Tx<'_>, begun: &Begun) -> Result<PayoutView> {
    let mut row = queries::payout_lock(tx, begun.id).await?.ok_or_else(|| Error::internal("a payout is gone"))?;
    settle::apply(ctx, tx, &mut row, &begun.answer).await?;
    PayoutView::new(&row)
}

fn check(ctx: &Ctx, request: &PayoutRequest) -> Result<()> {
    let Some(amount) = request.amount else { return Ok(()) };
    let mut faults = Faults::default();
    let (min, _) = minimums(ctx)?;
    if amount.minor_units().is_none() {
        faults.add("/amount", "not_whole_cents", "The amount must be whole cents.");
    }
    if amount < min {
        faults.add("/amount", "too_small", format!("The amount is at least {min}."));
    }
    faults.finish()
}

/// The payout's row, and whether it is new.
async fn begin(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, request: &PayoutRequest, request_key: &str) -> Result<(Payout, bool)> {
    let now = ctx.clock.wall_now();
    queries::payout_release_key(tx, request_key, now.checked_sub_signed(KEY_KEPT).unwrap_or(now)).await?;
    // Payouts of an account come one after another.
    let account = queries::account_lock_current(tx, caller.account_id).await?;
    if let Some(row) = queries::payout_by_request(tx, request_key).await? {
        if row.requested_micros == request.amount {
            return Ok((row, false));
        }
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key came with another body before."));
    }
    let account = payable_account(account)?;
    let (min, _) = minimums(ctx)?;
    let payable = withdrawable(&ledger::service::balance_lock(tx, caller.account_id).await?)?.floor_to_cents();
    let amount = request.amount.unwrap_or(payable);
    if amount > payable || amount < min {
        return Err(insufficient(amount.max(min), payable));
    }
    let mut row = Payout::new(&account, amount, now, now.checked_add_signed(FIRST_ASK_AFTER));
    row.request_key = Some(request_key.to_owned());
    row.requested_micros = request.amount;
    if take(ctx, tx, &row, caller.into()).await? { Ok((row, true)) } else { Err(Error::internal("the request has a payout already")) }
}

fn insufficient(required: Money, payable: Money) -> Error {
    Error::new(Code::InsufficientFunds, format!("This needs {required} usd; {payable} usd is payable."))
        .with_extra("required", required.to_string().into())
        .with_extra("available", payable.to_string().into())
}

fn payable_account(account: Option<PayoutAccount>) -> Result<PayoutAccount> {
    let refuse = |detail: &'static str| Err(Error::new(Code::PayoutsNotEnabled, detail));
    let Some(account) = account else { return refuse("Set up a payout account first: POST /api/v1/payout-account.") };
    match account.status()? {
        PayoutAccountStatus::Enabled if account.paused_reason.is_some() => refuse(
            "The bank sent a payout back. Check the bank account at Stripe, then set the schedule again: PATCH /api/v1/payout-account.",
        ),
        PayoutAccountStatus::Enabled => Ok(account),
        PayoutAccountStatus::None | PayoutAccountStatus::Onboarding => {
            refuse("Stripe has not been told all it has to know: POST /api/v1/payout-account leads there.")
        }
        PayoutAccountStatus::Restricted => refuse("Stripe wants to know more before it pays: POST /api/v1/payout-account leads there."),
        PayoutAccountStatus::Disabled => refuse("The payout account is closed."),
    }
}

/// The id of the ledger's transfer out of `payable`.
pub(super) fn taken_id(payout: PayoutId) -> crate::base::id::TransferId {
    ledger::service::derived_id(&["payout", &payout.to_string()])
}

/// Stores the payout and takes its money out of what is payable, together. False when its request or week has one already.
pub(super) async fn take(ctx: &Ctx, tx: &mut Tx<'_>, row: &Payout, actor: Actor) -> Result<bool> {
    if !queries::payout_insert(tx, row).await? {
        return Ok(false);
    }
    let transfer = TransferRequest {
        id: taken_id(row.id),
        code: TransferCode::Payout,
        postings: Posting::between(LedgerAccount::Payable(row.account_id), LedgerAccount::StripeClearing, row.amount_micros)?,
        rental: None,
        payment: Some(row.id.to_string()),
        actor,
        business_at: ctx.business_now(tx).await?,
        linked: None,
    };
    ledger::service::post(tx, transfer).await?;
    Ok(true)
}

/// # Errors
/// `not_found` for one that is not the account's.
pub async fn payout_fetch(ctx: &Ctx, account: AccountId, id: PayoutId) -> Result<PayoutView> {
    let row = queries::payout_fetch(&mut *ctx.db.conn().await?, id).await?;
    PayoutView::new(&row.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("payout"))?)
}

/// # Errors
/// The database's own faults.
pub async fn payout_list(ctx: &Ctx, account: AccountId, filter: &ListFilter) -> Result<Vec<PayoutView>> {
    let mut conn = ctx.db.conn().await?;
    let status = filter.status.map(PayoutStatus::as_str);
    let rows = queries::payout_list(&mut conn, account, status, filter.before, filter.limit).await?;
    rows.iter().map(PayoutView::new).collect()
}
