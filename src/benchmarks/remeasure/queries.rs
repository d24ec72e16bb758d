//! SQL of re-measurements, and of what follows from them for runs.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{
    Reason,
    model::{Due, Remeasurement},
};
use crate::{
    base::{
        Result,
        id::{MachineId, RemeasurementId, RunId},
    },
    benchmarks::model::Run,
    db::{
        Conn, Tx,
        schema::{remeasure_schedules, remeasurements, run_standings, runs},
    },
};

/// `false` when the machine has an open one.
pub async fn remeasurement_insert(tx: &mut Tx<'_>, row: &Remeasurement) -> Result<bool> {
    let inserted = diesel::insert_into(remeasurements::table).values(row).on_conflict_do_nothing().execute(&mut **tx).await?;
    Ok(inserted == 1)
}

pub async fn remeasurement_open(conn: &mut Conn, machine: MachineId) -> Result<Option<Remeasurement>> {
    let open = remeasurements::table
        .filter(remeasurements::machine_id.eq(machine.uuid()))
        .filter(remeasurements::status.eq_any(["queued", "running"]));
    Ok(open.select(Remeasurement::as_select()).first(conn).await.optional()?)
}

/// The row, locked until the transaction ends.
pub async fn remeasurement_lock(tx: &mut Tx<'_>, id: RemeasurementId) -> Result<Option<Remeasurement>> {
    let row = remeasurements::table.find(id.uuid()).select(Remeasurement::as_select());
    Ok(row.for_no_key_update().first(&mut **tx).await.optional()?)
}

pub async fn remeasurement_update(tx: &mut Tx<'_>, row: &Remeasurement) -> Result<()> {
    diesel::update(remeasurements::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// Newest first.
pub async fn remeasurement_list(
    conn: &mut Conn,
    machine: MachineId,
    before: Option<RemeasurementId>,
    limit: i64,
) -> Result<Vec<Remeasurement>> {
    let mut query = remeasurements::table.filter(remeasurements::machine_id.eq(machine.uuid())).into_boxed();
    if let Some(before) = before {
        query = query.filter(remeasurements::id.lt(before.uuid()));
    }
    Ok(query.order(remeasurements::id.desc()).limit(limit).select(Remeasurement::as_select()).load(conn).await?)
}

/// Those asked for since `since`.
pub async fn remeasurement_count_since(conn: &mut Conn, machine: MachineId, since: DateTime<Utc>) -> Result<i64> {
    Ok(remeasurements::table
        .filter(remeasurements::machine_id.eq(machine.uuid()))
        .filter(remeasurements::reason.eq(Reason::Requested.as_str()))
        .filter(remeasurements::created_at.gt(since))
        .count()
        .get_result(conn)
        .await?)
}

/// Open ones that nobody asked for.
pub async fn remeasurement_count_random(conn: &mut Conn) -> Result<i64> {
    Ok(remeasurements::table
        .filter(remeasurements::status.eq_any(["queued", "running"]))
        .filter(remeasurements::reason.eq(Reason::Random.as_str()))
        .count()
        .get_result(conn)
        .await?)
}

/// The newest verified public run of a machine that has not expired.
pub async fn run_newest_verified(conn: &mut Conn, machine: MachineId, now: DateTime<Utc>) -> Result<Option<Run>> {
    Ok(runs::table
        .filter(runs::machine_id.eq(machine.uuid()))
        .filter(runs::status.eq("verified"))
        .filter(runs::visibility.eq("public"))
        .filter(runs::expires_at.gt(now))
        .order((runs::created_at.desc(), runs::id.desc()))
        .select(Run::as_select())
        .first(conn)
        .await
        .optional()?)
}

/// The machine's verified public runs that have not expired, newest first.
pub async fn run_list_verified(tx: &mut Tx<'_>, machine: MachineId, now: DateTime<Utc>) -> Result<Vec<Run>> {
    Ok(runs::table
        .filter(runs::machine_id.eq(machine.uuid()))
        .filter(runs::status.eq("verified"))
        .filter(runs::visibility.eq("public"))
        .filter(runs::expires_at.gt(now))
        .order((runs::created_at.desc(), runs::id.desc()))
        .limit(20)
        .select(Run::as_select())
        .load(&mut **tx)
        .await?)
}

/// The row, locked until the transaction ends.
pub async fn run_lock(tx: &mut Tx<'_>, id: RunId) -> Result<Option<Run>> {
    Ok(runs::table.find(id.uuid()).select(Run::as_select()).for_no_key_update().first(&mut **tx).await.optional()?)
}

#[derive(QueryableByName)]
struct RunIdRow {
    #[diesel(sql_type = sql_types::Uuid)]
    run_id: RunId,
}

/// The server's own measurement agreed: the strongest level, and the dispute that began with this run is over for all that it took along.
/// Returns the runs whose dispute is over.
pub async fn run_note_agreed(tx: &mut Tx<'_>, run: &Run, now: DateTime<Utc>) -> Result<Vec<RunId>> {
    diesel::update(runs::table.find(run.id.uuid())).set(runs::evidence_level.eq("remeasured")).execute(&mut **tx).await?;
    let settled: Vec<RunIdRow> = diesel::sql_query(
        "UPDATE run_standings s SET disputed_at = NULL FROM runs r, run_standings own
         WHERE r.id = s.run_id AND r.machine_id = $2 AND own.run_id = $1 AND s.disputed_at = own.disputed_at
         RETURNING s.run_id",
    )
    .bind::<sql_types::Uuid, _>(run.id)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(run.machine_id)
    .load(&mut **tx)
    .await?;
    let agreed = run_standings::remeasured_at.eq(now);
    diesel::insert_into(run_standings::table)
        .values((run_standings::run_id.eq(run.id.uuid()), agreed))
        .on_conflict(run_standings::run_id)
        .do_update()
        .set(agreed)
        .execute(&mut **tx)
        .await?;
    Ok(settled.into_iter().map(|row| row.run_id).collect())
}

/// The server's own measurement disagreed: neither this run nor an older one of the machine backs anything, and it is not re-measured any more.
/// Returns the runs that were not in doubt before.
pub async fn run_note_disputed(tx: &mut Tx<'_>, run: &Run, now: DateTime<Utc>) -> Result<Vec<RunId>> {
    let doubted: Vec<RunIdRow> = diesel::sql_query(
        "INSERT INTO run_standings AS s (run_id, disputed_at)
         SELECT id, $3 FROM runs WHERE id = $1 OR (machine_id = $2 AND created_at <= $4 AND status = 'verified')
         ON CONFLICT (run_id) DO UPDATE SET disputed_at = excluded.disputed_at WHERE s.disputed_at IS NULL
         RETURNING run_id",
    )
    .bind::<sql_types::Uuid, _>(run.id)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(run.machine_id)
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::Timestamptz, _>(run.created_at)
    .load(&mut **tx)
    .await?;
    let level = if run.challenge_id.is_some() { "challenged" } else { "document" };
    diesel::update(runs::table.find(run.id.uuid()).filter(runs::evidence_level.eq("remeasured")))
        .set(runs::evidence_level.eq(level))
        .execute(&mut **tx)
        .await?;
    Ok(doubted.into_iter().map(|row| row.run_id).collect())
}

/// Into the review queue.
pub async fn run_send_to_review(tx: &mut Tx<'_>, id: RunId) -> Result<()> {
    let verified = runs::table.find(id.uuid()).filter(runs::status.eq("verified"));
    diesel::update(verified).set(runs::status.eq("needs_review")).execute(&mut **tx).await?;
    Ok(())
}

/// Puts an outcome before the others that the run shows; ten are kept.
pub async fn run_show_outcome(tx: &mut Tx<'_>, id: RunId, outcome: &serde_json::Value) -> Result<()> {
    diesel::sql_query(
        "INSERT INTO run_standings AS s (run_id, remeasurements) VALUES ($1, jsonb_build_array($2))
         ON CONFLICT (run_id) DO UPDATE SET remeasurements = (
             SELECT jsonb_agg(shown ORDER BY place)
             FROM jsonb_array_elements(excluded.remeasurements || s.remeasurements) WITH ORDINALITY AS outcomes (shown, place)
             WHERE place <= 10)",
    )
    .bind::<sql_types::Uuid, _>(id)
    .bind::<sql_types::Jsonb, _>(outcome)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A stale run keeps its first instant; the caller keeps its deadline.
pub async fn run_note_stale(tx: &mut Tx<'_>, run: &Run, reason: &str, now: DateTime<Utc>, until: DateTime<Utc>) -> Result<()> {
    diesel::update(runs::table.find(run.id.uuid()))
        .set((runs::stale_at.eq(run.stale_at.unwrap_or(now)), runs::stale_reason.eq(reason)))
        .execute(&mut **tx)
        .await?;
    let deadline = run_standings::stale_until.eq(until);
    diesel::insert_into(run_standings::table)
        .values((run_standings::run_id.eq(run.id.uuid()), deadline))
        .on_conflict(run_standings::run_id)
        .do_update()
        .set(deadline)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// What was first heard of the machine after the run.
pub async fn run_note_base_line(tx: &mut Tx<'_>, id: RunId, base_line: &serde_json::Value) -> Result<()> {
    let learned = run_standings::base_line.eq(base_line);
    diesel::insert_into(run_standings::table)
        .values((run_standings::run_id.eq(id.uuid()), learned))
        .on_conflict(run_standings::run_id)
        .do_update()
        .set(learned)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// What the engine, or a document, said when it first named a version after the run.
pub async fn run_note_engine_version(tx: &mut Tx<'_>, id: RunId, version: &str) -> Result<()> {
    let seen = run_standings::engine_version_seen.eq(version);
    diesel::insert_into(run_standings::table)
        .values((run_standings::run_id.eq(id.uuid()), seen))
        .on_conflict(run_standings::run_id)
        .do_update()
        .set(seen)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Draws an instant for every listed machine that has none, and forgets those of machines that are no longer listed. Exponential: an instant
/// that was not drawn yet says nothing about when it will be.
pub async fn schedule_fill(tx: &mut Tx<'_>, now: DateTime<Utc>, mean_days: u32) -> Result<()> {
    diesel::sql_query(
        "DELETE FROM remeasure_schedules s WHERE s.reason = 'random'
             AND NOT EXISTS (SELECT FROM machine_watches w WHERE w.machine_id = s.machine_id AND w.reason LIKE 'listing:%')",
    )
    .execute(&mut **tx)
    .await?;
    diesel::sql_query(
        "INSERT INTO remeasure_schedules (machine_id, due_at, reason)
         SELECT DISTINCT ON (w.machine_id) w.machine_id, $1 + -ln(1 - random()) * make_interval(days => $2), 'random'
         FROM machine_watches w WHERE w.reason LIKE 'listing:%' ON CONFLICT DO NOTHING",
    )
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::Integer, _>(i32::try_from(mean_days).unwrap_or(i32::MAX))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = sql_types::Uuid)]
    machine_id: MachineId,
    #[diesel(sql_type = sql_types::Text)]
    reason: String,
    #[diesel(sql_type = sql_types::Integer)]
    failures: i32,
}

/// Machines whose time has come and that have nothing open, those due for longest first.
pub async fn schedule_due(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<Due>> {
    let rows: Vec<DueRow> = diesel::sql_query(
        "SELECT s.machine_id, s.reason, s.failures FROM remeasure_schedules s
         WHERE s.due_at <= $1
           AND NOT EXISTS (SELECT FROM remeasurements r WHERE r.machine_id = s.machine_id AND r.status IN ('queued', 'running'))
         ORDER BY s.due_at LIMIT $2",
    )
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    let due = |row: DueRow| {
        let reason = if row.reason == Reason::SecondTry.as_str() { Reason::SecondTry } else { Reason::Random };
        Due { machine_id: row.machine_id, reason, failures: row.failures }
    };
    Ok(rows.into_iter().map(due).collect())
}

/// Tries in a row in which the machine's engine gave too little.
pub async fn schedule_failures(conn: &mut Conn, machine: MachineId) -> Result<i32> {
    let failures = remeasure_schedules::table.find(machine.uuid()).select(remeasure_schedules::failures);
    Ok(failures.first(conn).await.optional()?.unwrap_or(0))
}

pub async fn schedule_set(tx: &mut Tx<'_>, due: &Due, due_at: DateTime<Utc>) -> Result<()> {
    let row = (
        remeasure_schedules::due_at.eq(due_at),
        remeasure_schedules::reason.eq(due.reason.as_str()),
        remeasure_schedules::failures.eq(due.failures),
    );
    diesel::insert_into(remeasure_schedules::table)
        .values((remeasure_schedules::machine_id.eq(due.machine_id.uuid()), row))
        .on_conflict(remeasure_schedules::machine_id)
        .do_update()
        .set(row)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The next sweep draws a new instant, if the machine is listed.
pub async fn schedule_forget(tx: &mut Tx<'_>, machine: MachineId) -> Result<()> {
    diesel::delete(remeasure_schedules::table.find(machine.uuid())).execute(&mut **tx).await?;
    Ok(())
}
