//! The connected account of a host: making it, sending its owner to Stripe's questions, and writing down what Stripe says of it.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        letters,
        model::{
            GONE, OnboardingRequest, OnboardingView, PayoutAccount, PayoutAccountStatus, PayoutAccountView, PayoutSchedule,
            UpdatePayoutAccount,
        },
        queries,
        state::{next_week, withdrawable},
    },
    require_stripe,
};
use crate::{
    base::{
        Code, Error, Money, Result,
        faults::Faults,
        id::{AccountId, PayoutAccountId},
        money::Currency,
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{self, Caller},
    integrations::stripe::{ConnectedAccount, Find, Stripe, StripeFault},
    ledger,
};

const URL_BYTES_MAX: usize = 2_000;
/// A request of ours to make an account has long ended after this: what Stripe does not list by then was never made.
const NEVER_ARRIVED_AFTER: TimeDelta = TimeDelta::minutes(30);

/// What Stripe said of a connected account; `None` when it is gone.
pub(super) type Said = Option<ConnectedAccount>;

/// Makes the payout account, if there is none, and a link to Stripe's questions.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`; `invalid_state` for another country than that of the account, and for one that Stripe has rejected;
/// `unavailable` when Stripe gives no answer: a repeat goes on where this one ended.
pub async fn payout_account_onboard(ctx: &Ctx, caller: &Caller, request: &OnboardingRequest) -> Result<OnboardingView> {
    let stripe = require_stripe(ctx)?;
    let country = checked(request)?;
    let row = ctx.db.tx("payout_account_begin", async |tx| begin(ctx, tx, caller.account_id, country.as_deref()).await).await?;
    let row = match row.stripe_account_id {
        Some(_) => row,
        None => make(ctx, stripe, row).await?,
    };
    let id = row.stripe_account_id.as_deref().ok_or_else(|| Error::internal("a payout account without its account at Stripe"))?;
    let refresh_url = request.refresh_url.as_deref().unwrap_or(&request.return_url);
    // A link is good for one visit, so each request makes its own.
    let key = format!("{}:link:{}", row.id, uuid::Uuid::new_v4());
    let link = match stripe.onboarding_link(id, &request.return_url, refresh_url, &key).await {
        Ok(link) => link,
        Err(StripeFault::Refused(refusal)) if refusal.param.as_deref().is_some_and(|param| param.ends_with("_url")) => {
            return Err(Error::invalid("/return_url", "refused_by_stripe", "Stripe does not take this address."));
        }
        Err(fault) => return Err(fault.into()),
    };
    let view = shown(ctx, &mut *ctx.db.conn().await?, caller.account_id, Some(&row)).await?;
    Ok(OnboardingView::new(link, view))
}

/// The country, as Stripe writes it.
fn checked(request: &OnboardingRequest) -> Result<Option<String>> {
    let mut faults = Faults::default();
    let is_address =
        |text: &str| text.len() <= URL_BYTES_MAX && url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    for (pointer, text) in [("/return_url", Some(&request.return_url)), ("/refresh_url", request.refresh_url.as_ref())] {
        if text.is_some_and(|text| !is_address(text)) {
            faults.add(pointer, "invalid", "The address must be http or https, with at most 2000 characters.");
        }
    }
    let is_country = |text: &String| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if request.country.as_ref().is_some_and(|text| !is_country(text)) {
        faults.add("/country", "invalid", "A country is the two letters of ISO 3166-1, such as US.");
    }
    faults.finish()?;
    Ok(request.country.as_ref().map(|text| text.to_ascii_uppercase()))
}

/// The account's row; a new one when there is none, or when the old one is gone.
async fn begin(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, country: Option<&str>) -> Result<PayoutAccount> {
    if let Some(mut old) = queries::account_lock_current(tx, account).await? {
        if !old.is_gone() {
            return kept(ctx, tx, old, country).await;
        }
        retire(tx, &mut old).await?;
    }
    let new = PayoutAccount::new(account, country.map(str::to_owned), ctx.clock.wall_now());
    if queries::account_insert(tx, &new).await? {
        return Ok(new);
    }
    queries::account_lock_current(tx, account).await?.ok_or_else(|| Error::internal("a payout account is gone"))
}

/// An account that is there goes on; its owner has come to put it right, so that payouts may be tried again.
async fn kept(ctx: &Ctx, tx: &mut Tx<'_>, mut row: PayoutAccount, country: Option<&str>) -> Result<PayoutAccount> {
    if row.status()? == PayoutAccountStatus::Disabled {
        return Err(Error::new(Code::InvalidState, "Stripe has rejected this payout account; ask Stripe's support."));
    }
    let is_made = row.stripe_account_id.is_some();
    match (country, row.country.as_deref()) {
        (Some(wanted), Some(fixed)) if is_made && wanted != fixed => {
            return Err(Error::new(Code::InvalidState, format!("The payout account is in {fixed}, which cannot be changed.")));
        }
        _ if is_made => {}
        _ => {
            // Nobody knows whether Stripe has heard of it: under another country it is another request.
            let has_arrived = ctx.clock.wall_now().signed_duration_since(row.created_at) < NEVER_ARRIVED_AFTER;
            if has_arrived && country.is_some_and(|wanted| row.country.as_deref() != Some(wanted)) {
                return Err(Error::new(Code::InvalidState, "The payout account is being made with another country; try again later."));
            }
        }
    }
    row.paused_reason = None;
    queries::account_update(tx, &row).await?;
    Ok(row)
}

/// It stays in the books, and another takes its place.
async fn retire(tx: &mut Tx<'_>, row: &mut PayoutAccount) -> Result<()> {
    row.is_current = false;
    row.weekly_at = None;
    PayoutSchedule::Manual.as_str().clone_into(&mut row.schedule);
    queries::account_update(tx, row).await
}

/// Has Stripe make the account of the row, or finds what an earlier request has made.
async fn make(ctx: &Ctx, stripe: &Stripe, row: PayoutAccount) -> Result<PayoutAccount> {
    let mut asked_at = ctx.clock.wall_now();
    let mut row = row;
    if asked_at.signed_duration_since(row.created_at) > NEVER_ARRIVED_AFTER {
        if let Some(made) = found(stripe, &row).await? {
            return written(ctx, row.id, Some(made), asked_at).await;
        }
        row = replaced(ctx, &row).await?;
        asked_at = ctx.clock.wall_now();
    }
    let made = match stripe.account_create(&row.id.to_string(), row.country.as_deref()).await {
        Ok(made) => made,
        Err(fault @ StripeFault::Unknown(_)) => {
            tracing::warn!(payout_account = %row.id, %fault, "asking Stripe what became of an account");
            found(stripe, &row).await?.ok_or(fault)?
        }
        Err(fault) => return Err(refused(fault)),
    };
    written(ctx, row.id, Some(made), asked_at).await
}

async fn found(stripe: &Stripe, row: &PayoutAccount) -> Result<Said, StripeFault> {
    let until = row.created_at.checked_add_signed(NEVER_ARRIVED_AFTER).unwrap_or(row.created_at);
    stripe.account_find(Find { row_id: &row.id.to_string(), from: row.created_at, until }).await
}

/// A request that came to nothing may be answered so for ever under its key: with another row it is another request.
async fn replaced(ctx: &Ctx, row: &PayoutAccount) -> Result<PayoutAccount> {
    let replace = async |tx: &mut Tx<'_>| {
        if let Some(mut old) = queries::account_lock_current(tx, row.account_id).await?.filter(|old| old.id == row.id) {
            retire(tx, &mut old).await?;
        }
        begin(ctx, tx, row.account_id, row.country.as_deref()).await
    };
    ctx.db.tx("payout_account_replace", replace).await
}

fn refused(fault: StripeFault) -> Error {
    match fault {
        StripeFault::Refused(refusal) if refusal.param.as_deref() == Some("country") => {
            Error::invalid("/country", "refused_by_stripe", "Stripe does not pay there.")
        }
        fault => fault.into(),
    }
}

async fn written(ctx: &Ctx, id: PayoutAccountId, said: Said, asked_at: DateTime<Utc>) -> Result<PayoutAccount> {
    let write = async |tx: &mut Tx<'_>| {
        let mut row = queries::account_lock(tx, id).await?.ok_or_else(|| Error::internal("a payout account is gone"))?;
        record(ctx, tx, &mut row, said.as_ref(), asked_at).await?;
        Ok(row)
    };
    ctx.db.tx("payout_account_record", write).await
}

/// Writes down what Stripe says of the account; `None`: it is gone. `row` is locked by this transaction. Returns whether something changed.
///
/// # Errors
/// The database's own faults.
pub(super) async fn record(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    row: &mut PayoutAccount,
    said: Option<&ConnectedAccount>,
    asked_at: DateTime<Utc>,
) -> Result<bool> {
    if row.is_gone() || row.observed_at.is_some_and(|at| at >= asked_at) {
        return Ok(false);
    }
    let was =
        (row.status()?, row.requirements_due.clone(), row.disabled_reason.clone(), row.payouts_enabled, row.stripe_account_id.clone());
    let status = match said.filter(|account| !account.is_deleted) {
        Some(account) => {
            row.stripe_account_id.get_or_insert_with(|| account.id.clone());
            if row.country.is_none() {
                row.country.clone_from(&account.country);
            }
            row.requirements_due.clone_from(&account.requirements_due);
            row.disabled_reason.clone_from(&account.disabled_reason);
            row.payouts_enabled = account.payouts_enabled;
            PayoutAccountStatus::of(account)
        }
        None => {
            row.requirements_due.clear();
            row.disabled_reason = Some(GONE.to_owned());
            row.payouts_enabled = false;
            PayoutAccountStatus::Disabled
        }
    };
    status.as_str().clone_into(&mut row.status);
    row.observed_at = Some(asked_at);
    queries::account_update(tx, row).await?;
    if status == PayoutAccountStatus::Disabled && was.0 != status {
        queries::payouts_abandon(tx, row.id, ctx.clock.wall_now()).await?;
        let (subject, text) = letters::account_disabled(row.disabled_reason.as_deref().unwrap_or(GONE));
        identity::service::notify(ctx, tx, row.account_id, subject, &text).await?;
    }
    Ok(was != (status, row.requirements_due.clone(), row.disabled_reason.clone(), row.payouts_enabled, row.stripe_account_id.clone()))
}

/// What Stripe says of a connected account now.
pub(super) async fn said_of(stripe: &Stripe, id: &str) -> Result<Said, StripeFault> {
    match stripe.account_fetch(id).await {
        Ok(account) => Ok(Some(account)),
        Err(StripeFault::NotFound) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Looks at the account again, after Stripe has refused to pay to it.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged.
pub(super) async fn refresh(ctx: &Ctx, stripe: &Stripe, row: PayoutAccount) -> Result<PayoutAccount> {
    let Some(id) = row.stripe_account_id.as_deref().filter(|_| !row.is_gone()) else { return Ok(row) };
    let asked_at = ctx.clock.wall_now();
    match said_of(stripe, id).await {
        Ok(said) => written(ctx, row.id, said, asked_at).await,
        Err(fault) => {
            tracing::warn!(payout_account = %row.id, %fault, "showing a payout account as it was last seen");
            Ok(row)
        }
    }
}

/// The payout account, as Stripe has it now.
///
/// # Errors
/// The database's own faults.
pub async fn payout_account_show(ctx: &Ctx, account: AccountId) -> Result<PayoutAccountView> {
    let row = queries::account_current(&mut *ctx.db.conn().await?, account).await?;
    let row = match (row, &ctx.stripe) {
        (Some(row), Some(stripe)) => Some(refresh(ctx, stripe, row).await?),
        (row, _) => row,
    };
    shown(ctx, &mut *ctx.db.conn().await?, account, row.as_ref()).await
}

/// Sets the schedule.
///
/// # Errors
/// `no_payment_provider`; `not_found` when there is no payout account.
pub async fn payout_account_update(ctx: &Ctx, caller: &Caller, request: &UpdatePayoutAccount) -> Result<PayoutAccountView> {
    require_stripe(ctx)?;
    let account = caller.account_id;
    let set = async |tx: &mut Tx<'_>| {
        let mut row = queries::account_lock_current(tx, account).await?.ok_or_else(|| Error::not_found("payout account"))?;
        let now = ctx.business_now(tx).await?;
        row.weekly_at = match request.schedule {
            PayoutSchedule::Manual => None,
            PayoutSchedule::Weekly => Some(row.weekly_at.unwrap_or_else(|| next_week(now))),
        };
        request.schedule.as_str().clone_into(&mut row.schedule);
        row.paused_reason = None;
        queries::account_update(tx, &row).await?;
        shown(ctx, tx, account, Some(&row)).await
    };
    ctx.db.tx("payout_account_update", set).await
}

async fn shown(ctx: &Ctx, conn: &mut Conn, account: AccountId, row: Option<&PayoutAccount>) -> Result<PayoutAccountView> {
    let balance = ledger::service::balance(conn, account).await?;
    let (amount_min, weekly_amount_min) = minimums(ctx)?;
    Ok(PayoutAccountView {
        status: row.map(PayoutAccount::status).transpose()?.unwrap_or(PayoutAccountStatus::None),
        country: row.and_then(|row| row.country.clone()),
        payouts_enabled: row.is_some_and(|row| row.payouts_enabled),
        requirements_due: row.map(|row| row.requirements_due.clone()).unwrap_or_default(),
        disabled_reason: row.and_then(|row| row.disabled_reason.clone()),
        paused_reason: row.and_then(|row| row.paused_reason.clone()),
        schedule: row.map(PayoutAccount::schedule).transpose()?.unwrap_or(PayoutSchedule::Manual),
        weekly_at: row.and_then(|row| row.weekly_at),
        payable: withdrawable(&balance)?.floor_to_cents(),
        amount_min,
        weekly_amount_min,
        currency: Currency::Usd,
    })
}

/// The least that is paid out on demand, and weekly.
pub(super) fn minimums(ctx: &Ctx) -> Result<(Money, Money)> {
    let tunables = &ctx.config.tunables;
    let of = |cents| Money::from_minor_units(cents, Currency::Usd);
    Ok((of(tunables.payout_min_cents)?, of(tunables.payout_weekly_min_cents)?))
}
