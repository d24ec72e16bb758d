//! What the API shows of a rental.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::super::{
    model::{Access, Rental, RentalOnStatement, RentalView, SegmentRow, Usage, UsageSegment},
    queries,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, RentalId},
    },
    ctx::Ctx,
    db::Conn,
    identity, ledger,
};

pub(super) async fn one(ctx: &Ctx, conn: &mut Conn, rental: Rental) -> Result<RentalView> {
    let mut views = many(ctx, conn, vec![rental]).await?;
    views.pop().ok_or_else(|| Error::internal("a view is missing"))
}

/// Four queries for a whole page, however long.
pub(super) async fn many(ctx: &Ctx, conn: &mut Conn, rentals: Vec<Rental>) -> Result<Vec<RentalView>> {
    let ids: Vec<RentalId> = rentals.iter().map(|r| r.id).collect();
    let accounts: Vec<AccountId> = rentals.iter().flat_map(|r| [r.renter_account_id, r.host_account_id]).collect();
    let holds: Vec<HoldId> = rentals.iter().map(|r| r.hold_id).collect();
    let mut billed_seconds: HashMap<RentalId, i64> = HashMap::new();
    for row in queries::segment_list_of_many(conn, &ids).await? {
        let through = through_of(&row, &rentals);
        *billed_seconds.entry(row.rental_id).or_default() += seconds(&row, through);
    }
    let handles = identity::service::account_summaries(conn, &accounts).await?;
    let held = ledger::service::holds_remaining(conn, &holds).await?;
    let handle = |id: AccountId| handles.get(&id).map(|a| format!("@{}", a.handle)).unwrap_or_default();
    rentals
        .into_iter()
        .map(|rental| {
            Ok(RentalView {
                renter: handle(rental.renter_account_id),
                host: handle(rental.host_account_id),
                hold: held.get(&rental.hold_id).copied().unwrap_or(Money::ZERO),
                billed_seconds: billed_seconds.get(&rental.id).copied().unwrap_or(0),
                access: Access { base_url: format!("{}/v1", ctx.public_url), model: rental.model.clone() },
                status: rental.status()?,
                end_reason: rental.end_reason(),
                id: rental.id,
                listing_id: rental.listing_id,
                machine_id: rental.machine_id,
                run_id: rental.run_id,
                price_per_hour: rental.price_per_hour_micros,
                currency: rental.price_per_hour_micros.currency(),
                fee_basis_points: rental.fee_basis_points,
                min_hours: rental.min_hours,
                hours: rental.hours,
                max_spend: rental.max_spend_micros,
                spend: rental.gross_posted_micros,
                created_at: rental.created_at,
                starts_at: rental.starts_at,
                active_at: rental.active_at,
                paused_at: rental.paused_at,
                ends_at: rental.ends_at,
                ended_at: rental.ended_at,
                settled_through: rental.settled_through,
            })
        })
        .collect()
}

fn through_of(row: &SegmentRow, rentals: &[Rental]) -> chrono::DateTime<chrono::Utc> {
    let settled = rentals.iter().find(|r| r.id == row.rental_id).and_then(|r| r.settled_through);
    row.ended_at.or(settled).unwrap_or(row.started_at)
}

fn seconds(row: &SegmentRow, through: chrono::DateTime<chrono::Utc>) -> i64 {
    (through - row.started_at).num_seconds().max(0)
}

/// These rentals as a statement over `from` until before `to` names them. Two queries however many there are.
pub(super) async fn on_statement(
    conn: &mut Conn,
    ids: &[RentalId],
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<HashMap<RentalId, RentalOnStatement>> {
    let mut found: HashMap<RentalId, (RentalOnStatement, Option<DateTime<Utc>>)> = HashMap::new();
    for (rental, gpu, gpu_count) in queries::rental_list_with_gpus(conn, ids).await? {
        let named = RentalOnStatement {
            id: rental.id,
            renter_account_id: rental.renter_account_id,
            host_account_id: rental.host_account_id,
            machine: format!("{gpu_count} × {gpu}"),
            price_per_hour: rental.price_per_hour_micros,
            started_at: rental.active_at,
            ended_at: rental.ended_at,
            billed_seconds: 0,
        };
        found.insert(rental.id, (named, rental.settled_through));
    }
    for row in queries::segment_list_of_many(conn, ids).await? {
        let Some((named, settled_through)) = found.get_mut(&row.rental_id) else { continue };
        let through = row.ended_at.or(*settled_through).unwrap_or(row.started_at);
        // Counted as the meter counts: whole seconds from the span's own start.
        let counted_until = |at: DateTime<Utc>| (at.min(through) - row.started_at).num_seconds().max(0);
        named.billed_seconds = named.billed_seconds.saturating_add(counted_until(to).saturating_sub(counted_until(from)));
    }
    Ok(found.into_iter().map(|(id, (named, _))| (id, named)).collect())
}

pub(super) async fn usage(conn: &mut Conn, rental: &Rental) -> Result<Usage> {
    let rows = queries::segment_list(conn, rental.id).await?;
    let by_seconds = rows.iter().try_fold(Money::ZERO, |sum, row| sum.plus(row.gross_posted_micros))?;
    let segments = rows
        .iter()
        .map(|row| UsageSegment {
            started_at: row.started_at,
            ended_at: row.ended_at,
            billed_seconds: seconds(row, through_of(row, std::slice::from_ref(rental))),
            gross: row.gross_posted_micros,
        })
        .collect();
    Ok(Usage {
        rental_id: rental.id,
        status: rental.status()?,
        price_per_hour: rental.price_per_hour_micros,
        currency: rental.price_per_hour_micros.currency(),
        segments,
        min_hours_remainder: rental.gross_posted_micros.minus(by_seconds)?,
        gross: rental.gross_posted_micros,
        platform_fee: rental.fee_posted_micros,
        host_share: rental.gross_posted_micros.minus(rental.fee_posted_micros)?,
        events: queries::event_list(conn, rental.id, 0).await?,
    })
}
