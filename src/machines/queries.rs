//! All SQL of the machines' tables.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::{Machine, MachineChange};
use crate::{
    base::{
        Result,
        id::{AccountId, MachineId},
    },
    db::{
        Conn, KeptDsl, Tx,
        schema::{machine_watches, machines},
    },
};

pub async fn machine_insert(tx: &mut Tx<'_>, machine: &Machine) -> Result<()> {
    diesel::insert_into(machines::table).values(machine).execute(&mut **tx).await?;
    Ok(())
}

/// The machine, deleted or not.
pub async fn machine_fetch(conn: &mut Conn, id: MachineId) -> Result<Option<Machine>> {
    Ok(machines::table.find(id).select(Machine::as_select()).first(conn).await.optional()?)
}

/// The machine of this account unless it is deleted.
pub async fn machine_fetch_owned(conn: &mut Conn, account: AccountId, id: MachineId) -> Result<Option<Machine>> {
    let own = machines::table.find(id).filter(machines::account_id.eq(account)).filter(machines::deleted_at.is_null());
    Ok(own.select(Machine::as_select()).first(conn).await.optional()?)
}

/// The machine with its row locked against changes, deleted or not.
pub async fn machine_lock(tx: &mut Tx<'_>, id: MachineId) -> Result<Option<Machine>> {
    Ok(machines::table.find(id).select(Machine::as_select()).for_no_key_update().first(&mut **tx).await.optional()?)
}

/// An account's machines, newest first.
pub async fn machine_list(conn: &mut Conn, account: AccountId, before: Option<MachineId>, limit: i64) -> Result<Vec<Machine>> {
    let mut query = machines::table.filter(machines::account_id.eq(account)).filter(machines::deleted_at.is_null()).into_boxed();
    if let Some(before) = before {
        query = query.filter(machines::id.lt(before));
    }
    Ok(query.order(machines::id.desc()).limit(limit).select(Machine::as_select()).load(conn).await?)
}

/// Writes what a PATCH may change. The caller holds the row's lock.
pub async fn machine_update(tx: &mut Tx<'_>, machine: &Machine) -> Result<()> {
    diesel::update(machines::table.find(machine.id)).set(MachineChange::from(machine)).kept().execute(&mut **tx).await?;
    Ok(())
}

pub async fn machine_delete(tx: &mut Tx<'_>, id: MachineId, now: DateTime<Utc>) -> Result<()> {
    // The key has no use any more.
    let gone = (machines::deleted_at.eq(now), machines::endpoint_key_sealed.eq(None::<Vec<u8>>));
    diesel::update(machines::table.find(id)).set(gone).execute(&mut **tx).await?;
    Ok(())
}

pub async fn machine_set_simulated(tx: &mut Tx<'_>, id: MachineId, is_simulated: bool) -> Result<()> {
    diesel::update(machines::table.find(id)).set(machines::is_simulated.eq(is_simulated)).execute(&mut **tx).await?;
    Ok(())
}

pub async fn machine_count_start_failure(tx: &mut Tx<'_>, id: MachineId) -> Result<()> {
    let one_more = machines::start_failures.eq(machines::start_failures + 1);
    diesel::update(machines::table.find(id)).set(one_more).kept().execute(&mut **tx).await?;
    Ok(())
}

pub async fn watch_insert(tx: &mut Tx<'_>, id: MachineId, reason: &str) -> Result<()> {
    diesel::insert_into(machine_watches::table)
        .values((machine_watches::machine_id.eq(id), machine_watches::reason.eq(reason)))
        .on_conflict_do_nothing()
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn watch_delete(tx: &mut Tx<'_>, id: MachineId, reason: &str) -> Result<()> {
    diesel::delete(machine_watches::table.find((id.uuid(), reason))).execute(&mut **tx).await?;
    Ok(())
}

pub async fn machine_is_watched(conn: &mut Conn, id: MachineId) -> Result<bool> {
    let rows = machine_watches::table.filter(machine_watches::machine_id.eq(id));
    Ok(diesel::select(diesel::dsl::exists(rows)).get_result(conn).await?)
}

/// Why signs of life of the machine are wanted.
pub async fn watch_reasons(conn: &mut Conn, id: MachineId) -> Result<Vec<String>> {
    Ok(machine_watches::table.filter(machine_watches::machine_id.eq(id)).select(machine_watches::reason).load(conn).await?)
}

/// Machines on the market.
pub async fn machine_list_listed(conn: &mut Conn) -> Result<Vec<Machine>> {
    let listed = machine_watches::table.filter(machine_watches::reason.like("listing:%")).select(machine_watches::machine_id);
    Ok(machines::table.filter(machines::id.eq_any(listed)).order(machines::id).select(Machine::as_select()).load(conn).await?)
}

/// Machines of which signs of life are wanted.
pub async fn machine_list_watched(conn: &mut Conn) -> Result<Vec<Machine>> {
    let watched = machine_watches::table.select(machine_watches::machine_id);
    Ok(machines::table.filter(machines::id.eq_any(watched)).order(machines::id).select(Machine::as_select()).load(conn).await?)
}

/// Writes good signs of life at `now`. An observation never undoes one that is younger: processes probe at the same time, and the sandbox's
/// clock may have been moved meanwhile.
pub async fn machine_set_seen(tx: &mut Tx<'_>, ids: &[MachineId], now: DateTime<Utc>) -> Result<()> {
    diesel::sql_query(
        "UPDATE machines SET last_seen_at = greatest(last_seen_at, $2),
             probe_failed_at = CASE WHEN probe_failed_at > $2 THEN probe_failed_at END
         WHERE id IN (SELECT id FROM machines WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE)",
    )
    .bind::<sql_types::Array<sql_types::Uuid>, _>(ids)
    .bind::<sql_types::Timestamptz, _>(now)
    .kept()
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes failed probes at `now`; the first one since the last good sign stays.
pub async fn machine_set_failed(tx: &mut Tx<'_>, ids: &[MachineId], now: DateTime<Utc>) -> Result<()> {
    diesel::sql_query(
        "UPDATE machines SET probe_failed_at = least(probe_failed_at, $2)
         WHERE id IN (SELECT id FROM machines WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE)
           AND (last_seen_at IS NULL OR last_seen_at <= $2)",
    )
    .bind::<sql_types::Array<sql_types::Uuid>, _>(ids)
    .bind::<sql_types::Timestamptz, _>(now)
    .kept()
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Machines of the account that have an engine, oldest first.
pub async fn machine_list_with_endpoint(conn: &mut Conn, account: AccountId, limit: i64) -> Result<Vec<Machine>> {
    Ok(machines::table
        .filter(machines::account_id.eq(account.uuid()))
        .filter(machines::deleted_at.is_null())
        .filter(machines::endpoint_url.is_not_null())
        .order(machines::id)
        .limit(limit)
        .select(Machine::as_select())
        .load(conn)
        .await?)
}
