//! The table of jobs.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, sql_types};
use diesel_async::RunQueryDsl;

use crate::{
    base::{Error, Result, id::JobId},
    db::{Conn, Tx, schema::jobs},
};

/// A job to enqueue.
pub struct Job {
    pub kind: &'static str,
    pub payload: serde_json::Value,
    /// While a ready job of this kind with the same key exists, another is not added.
    pub dedupe_key: Option<String>,
    /// Wall time; the past means at once.
    pub run_at: DateTime<Utc>,
}

/// Adds a job; it runs after this transaction has committed.
///
/// # Errors
/// The database's own faults.
pub async fn enqueue(tx: &mut Tx<'_>, job: Job) -> Result<()> {
    let now = job.run_at;
    diesel::insert_into(jobs::table)
        .values((
            jobs::id.eq(JobId::new().uuid()),
            jobs::kind.eq(job.kind),
            jobs::payload.eq(job.payload),
            jobs::dedupe_key.eq(job.dedupe_key),
            jobs::run_at.eq(now),
            jobs::created_at.eq(now),
        ))
        .on_conflict_do_nothing()
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[derive(diesel::QueryableByName)]
pub(super) struct Taken {
    #[diesel(sql_type = sql_types::Uuid)]
    pub id: uuid::Uuid,
    #[diesel(sql_type = sql_types::Text)]
    pub kind: String,
    #[diesel(sql_type = sql_types::Jsonb)]
    pub payload: serde_json::Value,
    #[diesel(sql_type = sql_types::Integer)]
    pub attempts: i32,
    #[diesel(sql_type = sql_types::Integer)]
    pub attempts_max: i32,
}

/// Takes one due job (or one whose lease ran out) until `now + lease`.
pub(super) async fn job_take(conn: &mut Conn, kinds: &[&str], now: DateTime<Utc>, lease: Duration) -> Result<Option<Taken>> {
    let until = now + TimeDelta::from_std(lease).map_err(Error::internal)?;
    let taken = diesel::sql_query(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, lease_until = $1 WHERE id = (
            SELECT id FROM jobs
            WHERE kind = ANY($2) AND ((state = 'ready' AND run_at <= $3) OR (state = 'running' AND lease_until <= $3))
            ORDER BY priority DESC, run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, kind, payload, attempts, attempts_max",
    )
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::Array<sql_types::Text>, _>(kinds)
    .bind::<sql_types::Timestamptz, _>(now)
    .get_result(conn)
    .await
    .optional()?;
    Ok(taken)
}

/// Keeps a running job from being taken by another.
pub(super) async fn job_renew(conn: &mut Conn, job: &Taken, now: DateTime<Utc>, lease: Duration) -> Result<()> {
    let until = now + TimeDelta::from_std(lease).map_err(Error::internal)?;
    diesel::update(jobs::table.filter(jobs::id.eq(job.id)).filter(jobs::attempts.eq(job.attempts)).filter(jobs::state.eq("running")))
        .set(jobs::lease_until.eq(until))
        .execute(conn)
        .await?;
    Ok(())
}

/// Gives a job back that was not finished through no fault of its own.
pub(super) async fn job_release(conn: &mut Conn, job: &Taken) -> Result<()> {
    diesel::update(jobs::table.filter(jobs::id.eq(job.id)).filter(jobs::attempts.eq(job.attempts)).filter(jobs::state.eq("running")))
        .set((
            jobs::state.eq("ready"),
            jobs::dedupe_key.eq(None::<String>),
            jobs::attempts.eq(job.attempts - 1),
            jobs::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn job_finish(conn: &mut Conn, job: &Taken, now: DateTime<Utc>) -> Result<()> {
    // Guarded by the attempt: a worker whose lease ran out must not finish another's run.
    diesel::update(jobs::table.filter(jobs::id.eq(job.id)).filter(jobs::attempts.eq(job.attempts)))
        .set((jobs::state.eq("done"), jobs::finished_at.eq(now), jobs::lease_until.eq(None::<DateTime<Utc>>)))
        .execute(conn)
        .await?;
    Ok(())
}

/// Puts a failed job back for a later try, or keeps it as `dead` after the last. Returns whether it is dead.
pub(super) async fn job_fail(conn: &mut Conn, job: &Taken, now: DateTime<Utc>, error: &str) -> Result<bool> {
    let dead = job.attempts >= job.attempts_max;
    let pause_seconds = 2_i64.saturating_pow(u32::try_from(job.attempts.clamp(1, 12)).unwrap_or(12));
    let state = if dead { "dead" } else { "ready" };
    diesel::update(jobs::table.filter(jobs::id.eq(job.id)).filter(jobs::attempts.eq(job.attempts)))
        .set((
            jobs::state.eq(state),
            // A newer job with the same key may be ready by now; the failed one keeps its own try.
            jobs::dedupe_key.eq(None::<String>),
            jobs::run_at.eq(now + TimeDelta::seconds(pause_seconds)),
            jobs::lease_until.eq(None::<DateTime<Utc>>),
            jobs::last_error.eq(error),
        ))
        .execute(conn)
        .await?;
    Ok(dead)
}

/// Jobs that are ready, running or dead: what a test expects to be zero at its end.
///
/// # Errors
/// The database's own faults.
pub async fn jobs_open_count(conn: &mut Conn) -> Result<i64> {
    Ok(jobs::table.filter(jobs::state.ne("done")).count().get_result(conn).await?)
}
