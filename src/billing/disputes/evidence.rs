//! What shows that a disputed payment was right, in one document: the payment, what was rented and used since, and the books.

use chrono::{DateTime, Utc};

use super::{
    super::{
        model::TopUp,
        queries as billing_queries,
        refunds::{self, model::RefundView},
    },
    model::{Dispute, DisputeEvidence, DisputeView, EvidenceEntry, EvidencePayment, EvidenceRental},
    queries, service,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, DisputeId},
    },
    ctx::Ctx,
    identity,
    ledger::{
        self, Period,
        model::{Entry, EntryFilter},
    },
    rentals::{self, model::RentalView},
};

const RENTALS_MAX: usize = 500;
const ENTRIES_MAX: usize = 5_000;
const PAGE_ROWS: i64 = 100;

/// # Errors
/// `not_found` for a dispute that is not the account's.
pub async fn evidence_for_account(ctx: &Ctx, account: AccountId, id: DisputeId) -> Result<DisputeEvidence> {
    let dispute = service::of_account(ctx, account, id).await?;
    evidence(ctx, &dispute).await
}

/// # Errors
/// `not_found`.
pub async fn evidence_for_operator(ctx: &Ctx, id: DisputeId) -> Result<DisputeEvidence> {
    let dispute = {
        let mut conn = ctx.db.conn().await?;
        queries::dispute_fetch(&mut conn, id).await?
    };
    evidence(ctx, &dispute.ok_or_else(|| Error::not_found("dispute"))?).await
}

async fn evidence(ctx: &Ctx, dispute: &Dispute) -> Result<DisputeEvidence> {
    let (top_up, refunds, account, made_at) = {
        let mut conn = ctx.db.conn().await?;
        let top_up = billing_queries::top_up_fetch(&mut conn, dispute.top_up_id).await?;
        let refunds = refunds::queries::refunds_of_top_up(&mut conn, dispute.top_up_id).await?;
        let account = identity::service::account_summary(&mut conn, dispute.account_id).await?;
        (top_up, refunds, account, ctx.business_now(&mut conn).await?)
    };
    let top_up = top_up.ok_or_else(|| Error::internal("a top-up is gone"))?;
    let credited_at = top_up.settled_at.unwrap_or(top_up.created_at);
    let (rentals, has_all_rentals) = rented_since(ctx, dispute.account_id, &account.handle, credited_at).await?;
    let (entries, has_all_entries) = entries_since(ctx, dispute.account_id, top_up.created_at).await?;
    Ok(DisputeEvidence {
        made_at,
        dispute: DisputeView::new(dispute)?,
        account,
        payment: payment_of(&top_up),
        refunds: refunds.iter().map(RefundView::new).collect::<Result<_>>()?,
        rentals: with_usage(ctx, dispute.account_id, rentals).await?,
        ledger_entries: entries.into_iter().map(EvidenceEntry::from).collect(),
        is_complete: has_all_rentals && has_all_entries,
    })
}

fn payment_of(top_up: &TopUp) -> EvidencePayment {
    EvidencePayment {
        top_up_id: top_up.id,
        payment_intent: top_up.payment_intent_id.clone(),
        amount: top_up.amount_micros,
        received: top_up.received_micros,
        currency: top_up.amount_micros.currency(),
        created_at: top_up.created_at,
        credited_at: top_up.settled_at,
    }
}

/// Rentals whose renter the account is, begun since `from`; and whether these are all.
async fn rented_since(ctx: &Ctx, account: AccountId, handle: &str, from: DateTime<Utc>) -> Result<(Vec<RentalView>, bool)> {
    let renter = format!("@{handle}");
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let filter = rentals::service::ListFilter { status: None, before, limit: PAGE_ROWS };
        let page = rentals::service::list(ctx, account, &filter).await?;
        before = page.last().map(|rental| rental.id);
        let is_last = i64::try_from(page.len()).map_err(Error::internal)? < PAGE_ROWS;
        let reaches_back = page.last().is_some_and(|rental| rental.created_at < from);
        found.extend(page.into_iter().filter(|rental| rental.renter == renter && rental.created_at >= from));
        if found.len() > RENTALS_MAX {
            found.truncate(RENTALS_MAX);
            return Ok((found, false));
        }
        if is_last || reaches_back {
            return Ok((found, true));
        }
    }
}

async fn with_usage(ctx: &Ctx, account: AccountId, rentals: Vec<RentalView>) -> Result<Vec<EvidenceRental>> {
    let mut all = Vec::with_capacity(rentals.len());
    for rental in rentals {
        let usage = rentals::service::usage(ctx, account, rental.id).await?;
        let site = &ctx.public_url;
        all.push(EvidenceRental {
            usage,
            listing_url: format!("{site}/en/listings/{}", rental.listing_id),
            run_url: rental.run_id.map(|run| format!("{site}/en/runs/{run}")),
            run_document_url: rental.run_id.map(|run| format!("{site}/api/v1/matrix-runs/{run}/document")),
            rental,
        });
    }
    Ok(all)
}

/// The account's entries since `from`, the latest first; and whether these are all.
async fn entries_since(ctx: &Ctx, account: AccountId, from: DateTime<Utc>) -> Result<(Vec<Entry>, bool)> {
    let filter = EntryFilter { period: Period { from: Some(from), to: None }, ..EntryFilter::default() };
    let limit = i64::try_from(ENTRIES_MAX).map_err(Error::internal)?.saturating_add(1);
    let mut conn = ctx.db.conn().await?;
    let mut entries = ledger::service::entries(&mut conn, account, &filter, None, limit).await?;
    let is_all = entries.len() <= ENTRIES_MAX;
    entries.truncate(ENTRIES_MAX);
    Ok((entries, is_all))
}

impl From<Entry> for EvidenceEntry {
    fn from(entry: Entry) -> Self {
        Self {
            transfer_id: entry.transfer,
            code: entry.code,
            ledger_account: entry.kind.as_str(),
            amount: entry.amount,
            balance_after: entry.balance_after,
            rental_id: entry.rental,
            payment: entry.payment,
            at: entry.business_at,
        }
    }
}
