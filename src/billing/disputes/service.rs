//! Reading disputes, and asking Stripe about them.

use chrono::TimeDelta;

use super::{
    super::refunds::history,
    model::{Dispute, DisputeStatus, DisputeView},
    queries,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, DisputeId},
    },
    ctx::Ctx,
};

pub use super::evidence::{evidence_for_account, evidence_for_operator};

const ASK_LEASE: TimeDelta = TimeDelta::minutes(5);
const ASK_ROWS: i64 = 20;

/// Which of an account's disputes, newest first.
#[derive(Debug, Clone, Copy)]
pub struct ListFilter {
    pub status: Option<DisputeStatus>,
    pub before: Option<DisputeId>,
    pub limit: i64,
}

/// # Errors
/// `not_found` for one that is not the account's.
pub async fn dispute_fetch(ctx: &Ctx, account: AccountId, id: DisputeId) -> Result<DisputeView> {
    DisputeView::new(&of_account(ctx, account, id).await?)
}

pub(super) async fn of_account(ctx: &Ctx, account: AccountId, id: DisputeId) -> Result<Dispute> {
    let mut conn = ctx.db.conn().await?;
    let row = queries::dispute_fetch(&mut conn, id).await?;
    row.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("dispute"))
}

/// # Errors
/// The database's own faults.
pub async fn dispute_list(ctx: &Ctx, account: AccountId, filter: &ListFilter) -> Result<Vec<DisputeView>> {
    let mut conn = ctx.db.conn().await?;
    let status = filter.status.map(DisputeStatus::as_str);
    let rows = queries::dispute_list(&mut conn, account, status, filter.before, filter.limit).await?;
    rows.iter().map(DisputeView::new).collect()
}

/// Asks about every dispute that is due, and reads Stripe's list for those about which no webhook came.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the rest is left for the next time.
pub async fn ask_due(ctx: &Ctx) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    let payments = {
        let mut conn = ctx.db.conn().await?;
        queries::disputes_take_due(&mut conn, ctx.clock.wall_now(), ASK_LEASE, ASK_ROWS).await?
    };
    for payment_id in payments {
        if !history::look_and_record(ctx, stripe, &payment_id).await? {
            break;
        }
    }
    history::scan_due(ctx, stripe, history::Scan::Disputes).await
}
