//! What Stripe's events about connected accounts, transfers and banks do.

use chrono::{DateTime, Utc};

use super::{
    super::{super::model::Outcome, letters, queries},
    accounts::{self, Said, said_of},
    settle,
};
use crate::{
    base::{
        Error, Result,
        id::{PayoutAccountId, PayoutId},
    },
    ctx::Ctx,
    db::Tx,
    identity,
    integrations::stripe::{BankPayout, BankPayoutStatus, Stripe, StripeFault, StripeTransfer},
};

/// A connected account, as Stripe has it now.
pub struct AccountSeen {
    id: String,
    asked_at: DateTime<Utc>,
    said: Said,
}

/// A transfer, as Stripe has it now.
pub struct TransferSeen {
    asked_at: DateTime<Utc>,
    transfer: StripeTransfer,
}

/// A connected account's payout to its bank, as Stripe has it now.
pub struct BankSeen {
    account: String,
    payout: BankPayout,
}

pub async fn account_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<AccountSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    Ok(AccountSeen { id: id.to_owned(), asked_at, said: said_of(stripe, id).await? })
}

pub async fn transfer_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<TransferSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    Ok(TransferSeen { asked_at, transfer: stripe.transfer_fetch(id).await? })
}

pub async fn bank_payout_seen(stripe: &Stripe, account: &str, id: &str) -> Result<BankSeen, StripeFault> {
    Ok(BankSeen { account: account.to_owned(), payout: stripe.bank_payout_fetch(account, id).await? })
}

/// # Errors
/// `not_found` for an account that is not known (yet).
pub async fn apply_to_account(ctx: &Ctx, tx: &mut Tx<'_>, seen: &AccountSeen) -> Result<Outcome> {
    let named = seen.said.as_ref().and_then(|account| account.row_id.as_deref()).and_then(|text| text.parse::<PayoutAccountId>().ok());
    let row = match (queries::account_lock_by_stripe(tx, &seen.id).await?, named) {
        (None, Some(id)) => queries::account_lock(tx, id).await?.filter(|row| row.stripe_account_id.is_none()),
        (row, _) => row,
    };
    let mut row = row.ok_or_else(|| Error::not_found("payout account"))?;
    let changed = accounts::record(ctx, tx, &mut row, seen.said.as_ref(), seen.asked_at).await?;
    Ok(if changed { Outcome::Applied } else { Outcome::Unchanged })
}

/// # Errors
/// `not_found` for a transfer that is of no payout that is known (yet).
pub async fn apply_to_payout(ctx: &Ctx, tx: &mut Tx<'_>, seen: &TransferSeen) -> Result<Outcome> {
    let id = seen.transfer.row_id.as_deref().and_then(|text| text.parse::<PayoutId>().ok());
    let row = match id {
        Some(id) => queries::payout_lock(tx, id).await?,
        None => None,
    };
    let mut row = row.ok_or_else(|| Error::not_found("payout"))?;
    settle::record(ctx, tx, &mut row, &seen.transfer, seen.asked_at).await
}

/// Stripe empties a connected account with each payout it makes by itself, so what was there when it was made was in it.
///
/// # Errors
/// `not_found` for an account that is not known (yet).
pub async fn apply_to_bank_payout(ctx: &Ctx, tx: &mut Tx<'_>, seen: &BankSeen) -> Result<Outcome> {
    let row = queries::account_lock_by_stripe(tx, &seen.account).await?;
    let mut row = row.ok_or_else(|| Error::not_found("payout account"))?;
    let payout = &seen.payout;
    let count = match payout.status {
        BankPayoutStatus::Paid => {
            let now = ctx.business_now(tx).await?;
            queries::payouts_arrived(tx, row.id, &payout.id, payout.created, now).await?
        }
        BankPayoutStatus::Failed => {
            let code = payout.failure_code.as_deref().unwrap_or("failed");
            let count = queries::payouts_recall(tx, row.id, &payout.id, payout.created, Some(code), ctx.clock.wall_now()).await?;
            if count > 0 {
                row.paused_reason = Some(code.to_owned());
                queries::account_update(tx, &row).await?;
                let (subject, text) = letters::bank_refused(code);
                identity::service::notify(ctx, tx, row.account_id, subject, &text).await?;
            }
            count
        }
        BankPayoutStatus::Pending | BankPayoutStatus::InTransit | BankPayoutStatus::Canceled => 0,
    };
    Ok(if count > 0 { Outcome::Applied } else { Outcome::Unchanged })
}
