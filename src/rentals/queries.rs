//! All SQL of the rentals' tables, and reads of `machines` for signs of life and names of hardware.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{
    model::{Rental, RentalEvent, Running, SegmentRow},
    state::PROBE_GAP,
};
use crate::{
    base::{
        Code, Error, Money, Result,
        id::{AccountId, MachineId, RentalId},
    },
    db::{
        Conn, KeptDsl, OnConstraint, Tx,
        schema::{hardware_models, machines, rental_events, rental_segments, rentals},
    },
};

const OVER: [&str; 2] = ["ended", "failed"];

fn already_rented() -> Error {
    Error::new(Code::AlreadyRented, "The machine is rented or reserved for this time.")
}

/// # Errors
/// `already_rented` when the machine is taken for any part of the span.
pub async fn rental_insert(tx: &mut Tx<'_>, rental: &Rental) -> Result<()> {
    diesel::insert_into(rentals::table)
        .values(rental)
        .kept()
        .execute(&mut **tx)
        .await
        .on_constraint("rentals_machine_taken", already_rented)?;
    Ok(())
}

pub async fn rental_fetch(conn: &mut Conn, id: RentalId) -> Result<Option<Rental>> {
    Ok(rentals::table.find(id.uuid()).select(Rental::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends: every change of a rental starts here.
pub async fn rental_lock(tx: &mut Tx<'_>, id: RentalId) -> Result<Option<Rental>> {
    Ok(rentals::table.find(id.uuid()).select(Rental::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
///
/// # Errors
/// `already_rented` when a longer span meets another rental.
pub async fn rental_update(tx: &mut Tx<'_>, rental: &Rental) -> Result<()> {
    diesel::update(rentals::table.find(rental.id.uuid()))
        .set(rental)
        .kept()
        .execute(&mut **tx)
        .await
        .on_constraint("rentals_machine_taken", already_rented)?;
    Ok(())
}

/// Rentals in which the account is renter or host, newest first, older than `before`.
pub async fn rental_list(
    conn: &mut Conn,
    account: AccountId,
    status: Option<&str>,
    before: Option<RentalId>,
    limit: i64,
) -> Result<Vec<Rental>> {
    let mut query =
        rentals::table.filter(rentals::renter_account_id.eq(account.uuid()).or(rentals::host_account_id.eq(account.uuid()))).into_boxed();
    if let Some(status) = status {
        query = query.filter(rentals::status.eq(status.to_owned()));
    }
    if let Some(before) = before {
        query = query.filter(rentals::id.lt(before.uuid()));
    }
    Ok(query.order(rentals::id.desc()).limit(limit).select(Rental::as_select()).load(conn).await?)
}

/// The account's active rentals, newest first: what its keys reach through the endpoint.
pub async fn rental_list_active(conn: &mut Conn, renter: AccountId) -> Result<Vec<Rental>> {
    Ok(rentals::table
        .filter(rentals::renter_account_id.eq(renter.uuid()))
        .filter(rentals::status.eq("active"))
        .order(rentals::id.desc())
        .select(Rental::as_select())
        .load(conn)
        .await?)
}

/// These rentals, with the name and number of the machine's GPUs.
pub async fn rental_list_with_gpus(conn: &mut Conn, ids: &[RentalId]) -> Result<Vec<(Rental, String, i32)>> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.uuid()).collect();
    Ok(rentals::table
        .inner_join(machines::table.inner_join(hardware_models::table))
        .filter(rentals::id.eq_any(ids))
        .select((Rental::as_select(), hardware_models::name, machines::gpu_count))
        .load(conn)
        .await?)
}

/// Status of the rental, and when something is next to be done for it.
pub async fn rental_status(conn: &mut Conn, id: RentalId) -> Result<Option<(String, Option<DateTime<Utc>>)>> {
    Ok(rentals::table.find(id.uuid()).select((rentals::status, rentals::next_due_at)).first(conn).await.optional()?)
}

/// Rentals whose clock runs, of one renter or of all.
pub async fn rental_list_running(conn: &mut Conn, renter: Option<AccountId>) -> Result<Vec<Running>> {
    let mut query = rentals::table.filter(rentals::status.eq("active")).filter(rentals::paused_at.is_null()).into_boxed();
    if let Some(renter) = renter {
        query = query.filter(rentals::renter_account_id.eq(renter.uuid()));
    }
    Ok(query.select(Running::as_select()).load(conn).await?)
}

/// The start of the next rental of the machine after `after`, other than `except`.
pub async fn rental_next_start(
    conn: &mut Conn,
    machine: MachineId,
    after: DateTime<Utc>,
    except: RentalId,
) -> Result<Option<DateTime<Utc>>> {
    Ok(rentals::table
        .filter(rentals::machine_id.eq(machine.uuid()))
        .filter(rentals::status.ne_all(OVER))
        .filter(rentals::id.ne(except.uuid()))
        .filter(rentals::starts_at.gt(after))
        .select(diesel::dsl::min(rentals::starts_at))
        .first(conn)
        .await?)
}

/// Rentals of the machine that are not over, other than `except`.
pub async fn rental_count_live_of_machine(conn: &mut Conn, machine: MachineId, except: RentalId) -> Result<i64> {
    Ok(rentals::table
        .filter(rentals::machine_id.eq(machine.uuid()))
        .filter(rentals::status.ne_all(OVER))
        .filter(rentals::id.ne(except.uuid()))
        .count()
        .get_result(conn)
        .await?)
}

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = sql_types::Uuid)]
    id: RentalId,
}

#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = sql_types::Nullable<sql_types::Timestamptz>)]
    due: Option<DateTime<Utc>>,
}

/// Rentals with an id above `after` for which something is to be done: an instant has come, the machine fell silent or spoke again, or the
/// last bill is older than `tick`. `pause_after` is the silence that stops the clock.
pub async fn rental_list_due(
    conn: &mut Conn,
    now: DateTime<Utc>,
    tick: TimeDelta,
    pause_after: TimeDelta,
    after: Option<RentalId>,
    limit: i64,
) -> Result<Vec<RentalId>> {
    let rows: Vec<IdRow> = diesel::sql_query(
        "SELECT r.id FROM rentals r JOIN machines m ON m.id = r.machine_id
         WHERE r.status NOT IN ('ended', 'failed') AND ($4 IS NULL OR r.id > $4) AND (
             r.next_due_at <= $1
             OR (r.status = 'active' AND r.paused_at IS NULL
                 AND (r.settled_through <= $2 OR greatest(m.last_seen_at, m.probe_failed_at - $6) <= $3 AND m.probe_failed_at IS NOT NULL))
             OR (r.paused_at IS NOT NULL AND m.probe_failed_at IS NULL AND m.last_seen_at > r.paused_at))
         ORDER BY r.id LIMIT $5",
    )
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::Timestamptz, _>(now - tick)
    .bind::<sql_types::Timestamptz, _>(now - pause_after)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(after)
    .bind::<sql_types::BigInt, _>(limit)
    .bind::<sql_types::Interval, _>(interval(PROBE_GAP))
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(|r| r.id).collect())
}

/// The next instant after `after` at which something happens to a rental by itself, but for holds that are renewed: a start, a deadline, the
/// end of a boot or of a silence. A rental whose machine has not been asked yet is due at once.
pub async fn rental_next_due(
    conn: &mut Conn,
    after: DateTime<Utc>,
    pause_after: TimeDelta,
    end_after: TimeDelta,
) -> Result<Option<DateTime<Utc>>> {
    let row: DueRow = diesel::sql_query(
        "SELECT min(due) AS due FROM (
             SELECT r.next_due_at AS due FROM rentals r
             WHERE r.status IN ('reserved', 'held', 'provisioning') OR (r.status = 'active' AND r.paused_at IS NOT NULL)
             UNION ALL
             SELECT r.ends_at FROM rentals r WHERE r.status = 'active'
             UNION ALL
             SELECT $1 + interval '1 millisecond' FROM rentals r WHERE r.status = 'held'
             UNION ALL
             SELECT greatest(m.last_seen_at, m.probe_failed_at - $4) + $2 FROM rentals r JOIN machines m ON m.id = r.machine_id
             WHERE r.status = 'active' AND r.paused_at IS NULL AND m.probe_failed_at IS NOT NULL
             UNION ALL
             SELECT greatest(m.last_seen_at, m.probe_failed_at - $4, r.paused_at) + $3
             FROM rentals r JOIN machines m ON m.id = r.machine_id
             WHERE r.status = 'active' AND r.paused_at IS NOT NULL AND m.probe_failed_at IS NOT NULL
         ) all_due WHERE due > $1",
    )
    .bind::<sql_types::Timestamptz, _>(after)
    .bind::<sql_types::Interval, _>(interval(pause_after))
    .bind::<sql_types::Interval, _>(interval(end_after))
    .bind::<sql_types::Interval, _>(interval(PROBE_GAP))
    .get_result(conn)
    .await?;
    Ok(row.due)
}

fn interval(length: TimeDelta) -> diesel::pg::data_types::PgInterval {
    diesel::pg::data_types::PgInterval::from_microseconds(length.num_microseconds().unwrap_or(0))
}

/// Rentals that wait for their machine's first answer, oldest first.
pub async fn rental_list_starting(conn: &mut Conn, limit: i64) -> Result<Vec<Rental>> {
    Ok(rentals::table
        .filter(rentals::status.eq_any(["held", "provisioning"]))
        .order(rentals::id)
        .limit(limit)
        .select(Rental::as_select())
        .load(conn)
        .await?)
}

pub async fn segment_insert(tx: &mut Tx<'_>, row: &SegmentRow) -> Result<()> {
    diesel::insert_into(rental_segments::table).values(row).execute(&mut **tx).await?;
    Ok(())
}

pub async fn segment_update(tx: &mut Tx<'_>, row: &SegmentRow) -> Result<()> {
    diesel::update(rental_segments::table.find((row.rental_id.uuid(), row.sequence)))
        .set((rental_segments::ended_at.eq(row.ended_at), rental_segments::gross_posted_micros.eq(row.gross_posted_micros)))
        .kept()
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn segment_list(conn: &mut Conn, rental: RentalId) -> Result<Vec<SegmentRow>> {
    Ok(rental_segments::table
        .filter(rental_segments::rental_id.eq(rental.uuid()))
        .order(rental_segments::sequence)
        .select(SegmentRow::as_select())
        .load(conn)
        .await?)
}

pub async fn segment_list_of_many(conn: &mut Conn, rentals: &[RentalId]) -> Result<Vec<SegmentRow>> {
    let ids: Vec<uuid::Uuid> = rentals.iter().map(|r| r.uuid()).collect();
    Ok(rental_segments::table
        .filter(rental_segments::rental_id.eq_any(ids))
        .order((rental_segments::rental_id, rental_segments::sequence))
        .select(SegmentRow::as_select())
        .load(conn)
        .await?)
}

pub async fn event_insert(tx: &mut Tx<'_>, rental: RentalId, kind: &str, detail: serde_json::Value, at: DateTime<Utc>) -> Result<()> {
    diesel::insert_into(rental_events::table)
        .values((
            rental_events::rental_id.eq(rental.uuid()),
            rental_events::kind.eq(kind),
            rental_events::detail.eq(detail),
            rental_events::at.eq(at),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Events of the rental after `after`, in order.
pub async fn event_list(conn: &mut Conn, rental: RentalId, after: i64) -> Result<Vec<RentalEvent>> {
    Ok(rental_events::table
        .filter(rental_events::rental_id.eq(rental.uuid()))
        .filter(rental_events::sequence.gt(after))
        .order(rental_events::sequence)
        .limit(1_000)
        .select(RentalEvent::as_select())
        .load(conn)
        .await?)
}

/// Locks those of these rentals that are active, in the order of their ids, leaving out what somebody else has locked.
pub async fn rental_lock_active(tx: &mut Tx<'_>, ids: &[RentalId]) -> Result<Vec<Rental>> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.uuid()).collect();
    Ok(rentals::table
        .filter(rentals::id.eq_any(ids))
        .filter(rentals::status.eq("active"))
        .order(rentals::id)
        .select(Rental::as_select())
        .for_update()
        .skip_locked()
        .load(&mut **tx)
        .await?)
}

/// The open spans of these rentals.
pub async fn segment_list_open(conn: &mut Conn, rentals: &[RentalId]) -> Result<Vec<SegmentRow>> {
    let ids: Vec<uuid::Uuid> = rentals.iter().map(|r| r.uuid()).collect();
    Ok(rental_segments::table
        .filter(rental_segments::rental_id.eq_any(ids))
        .filter(rental_segments::ended_at.is_null())
        .select(SegmentRow::as_select())
        .load(conn)
        .await?)
}

type LastSigns = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// Of the machine of each rental: its last sign of life, and the first failed probe since.
pub async fn machine_signs(conn: &mut Conn, ids: &[RentalId]) -> Result<HashMap<RentalId, LastSigns>> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows: Vec<(RentalId, LastSigns)> = rentals::table
        .inner_join(machines::table)
        .filter(rentals::id.eq_any(ids))
        .select((rentals::id, (machines::last_seen_at, machines::probe_failed_at)))
        .load(conn)
        .await?;
    Ok(rows.into_iter().collect())
}

#[derive(QueryableByName)]
struct RateRow {
    #[diesel(sql_type = sql_types::Uuid)]
    renter: AccountId,
    #[diesel(sql_type = sql_types::BigInt)]
    rate: Money,
}

/// What all running rentals of each renter cost an hour.
pub async fn rate_list_running(conn: &mut Conn, renters: &[AccountId]) -> Result<Vec<(AccountId, Money)>> {
    let rows: Vec<RateRow> = diesel::sql_query(
        "SELECT renter_account_id AS renter, sum(price_per_hour_micros)::bigint AS rate FROM rentals
         WHERE renter_account_id = ANY ($1) AND status = 'active' AND paused_at IS NULL GROUP BY renter_account_id",
    )
    .bind::<sql_types::Array<sql_types::Uuid>, _>(renters)
    .kept()
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.renter, row.rate)).collect())
}

/// What a tick changes of a rental and its open span.
#[derive(Debug, Clone)]
pub struct Billed {
    pub id: RentalId,
    segment_sequence: i32,
    segment_gross: Money,
    settled_through: Option<DateTime<Utc>>,
    gross_posted: Money,
    fee_posted: Money,
    transfer_sequence: i32,
    next_due_at: Option<DateTime<Utc>>,
}

impl Billed {
    pub fn of(rental: &Rental, segment_sequence: i32, segment_gross: Money) -> Self {
        Self {
            id: rental.id,
            segment_sequence,
            segment_gross,
            settled_through: rental.settled_through,
            gross_posted: rental.gross_posted_micros,
            fee_posted: rental.fee_posted_micros,
            transfer_sequence: rental.transfer_sequence,
            next_due_at: rental.next_due_at,
        }
    }
}

const UPDATE_SEGMENTS: &str = "
UPDATE rental_segments s SET gross_posted_micros = n.gross
FROM unnest($1, $2, $3) n (rental, sequence, gross) WHERE s.rental_id = n.rental AND s.sequence = n.sequence";

const UPDATE_RENTALS: &str = "
UPDATE rentals r SET settled_through = n.settled, gross_posted_micros = n.gross, fee_posted_micros = n.fee, transfer_sequence = n.sequence,
    next_due_at = n.due
FROM unnest($1, $2, $3, $4, $5, $6) n (rental, settled, gross, fee, sequence, due) WHERE r.id = n.rental";

/// Writes back what a tick changed; the caller holds the rentals' locks.
pub async fn rental_update_billed(tx: &mut Tx<'_>, billed: &[Billed]) -> Result<()> {
    use sql_types::{Array, BigInt, Integer, Nullable, Timestamptz, Uuid};
    if billed.is_empty() {
        return Ok(());
    }
    let ids: Vec<uuid::Uuid> = billed.iter().map(|row| row.id.uuid()).collect();
    diesel::sql_query(UPDATE_SEGMENTS)
        .bind::<Array<Uuid>, _>(&ids)
        .bind::<Array<Integer>, _>(billed.iter().map(|row| row.segment_sequence).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(billed.iter().map(|row| row.segment_gross.micros()).collect::<Vec<_>>())
        .kept()
        .execute(&mut **tx)
        .await?;
    diesel::sql_query(UPDATE_RENTALS)
        .bind::<Array<Uuid>, _>(&ids)
        .bind::<Array<Nullable<Timestamptz>>, _>(billed.iter().map(|row| row.settled_through).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(billed.iter().map(|row| row.gross_posted.micros()).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(billed.iter().map(|row| row.fee_posted.micros()).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(billed.iter().map(|row| row.transfer_sequence).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(billed.iter().map(|row| row.next_due_at).collect::<Vec<_>>())
        .kept()
        .execute(&mut **tx)
        .await?;
    Ok(())
}
