//! What webhooks are told of rentals, in the transaction of what happened. The view is made only where somebody waits for it.

use super::{
    super::{
        model::{Rental, RentalLowFunds},
        state::Status,
    },
    view,
};
use crate::{
    base::{Result, id::AccountId},
    ctx::Ctx,
    db::Tx,
    webhooks::{
        EventType,
        service::{accounts_waiting_for, emit},
    },
};

/// Its machine has given the first token.
pub(super) async fn started(ctx: &Ctx, tx: &mut Tx<'_>, rental: &Rental) -> Result<()> {
    to_both(ctx, tx, rental, EventType::RentalStarted).await
}

/// It has ended or failed.
pub(super) async fn over(ctx: &Ctx, tx: &mut Tx<'_>, rental: &Rental) -> Result<()> {
    let event = if rental.status()? == Status::Failed { EventType::RentalFailed } else { EventType::RentalEnded };
    to_both(ctx, tx, rental, event).await
}

/// How long the renter's money lasts is not the host's to know.
pub(super) async fn low_funds(ctx: &Ctx, tx: &mut Tx<'_>, rental: &Rental, runway_seconds: i64) -> Result<()> {
    let event = EventType::RentalLowFunds;
    for account in waiting(tx, &[rental.renter_account_id], event).await? {
        let data = RentalLowFunds { rental: view::one(ctx, tx, rental.clone()).await?, runway_seconds };
        emit(ctx, tx, account, event, &data).await?;
    }
    Ok(())
}

async fn to_both(ctx: &Ctx, tx: &mut Tx<'_>, rental: &Rental, event: EventType) -> Result<()> {
    let waiting = waiting(tx, &[rental.renter_account_id, rental.host_account_id], event).await?;
    if waiting.is_empty() {
        return Ok(());
    }
    let data = view::one(ctx, tx, rental.clone()).await?;
    for account in waiting {
        emit(ctx, tx, account, event, &data).await?;
    }
    Ok(())
}

async fn waiting(tx: &mut Tx<'_>, accounts: &[AccountId], event: EventType) -> Result<Vec<AccountId>> {
    accounts_waiting_for(tx, accounts, event).await
}
