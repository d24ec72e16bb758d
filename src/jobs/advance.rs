//! Moving the sandbox's business clock: from due event to due event, so that an hour of rental passes as it would have.

use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;

use super::run_due_jobs;
use crate::{base::Result, ctx::Ctx, db};

/// No step is longer than this, even when no sweep knows of an event.
const STEP_MAX: TimeDelta = TimeDelta::days(1);

/// Moves business time `seconds` ahead and runs everything that falls due on the way, in order, before it returns the new time. Two moves
/// at once follow each other. The caller has checked that this is the sandbox and that `seconds` is positive.
///
/// # Errors
/// A sweep's fault: the clock then stands at the event that failed, and a later move or the workers go on from there.
pub async fn advance_business_clock(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    // The lock is held by this connection's session, so that moves follow each other in all processes; it is not used for the work itself.
    let mut lock = ctx.db.conn().await?;
    diesel::sql_query("SELECT pg_advisory_lock(7241002)").execute(&mut lock).await?;
    let outcome = advance(ctx, seconds).await;
    diesel::sql_query("SELECT pg_advisory_unlock(7241002)").execute(&mut lock).await?;
    outcome
}

async fn advance(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    let outcome = async {
        for sweep in &ctx.registry.sweeps {
            sweep.before_advance(ctx).await?;
        }
        walk(ctx, seconds).await
    }
    .await;
    for sweep in &ctx.registry.sweeps {
        sweep.after_advance(ctx).await?;
    }
    outcome
}

/// From event to event until `seconds` have passed.
async fn walk(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    let mut conn = ctx.db.conn().await?;
    let start = ctx.business_now(&mut conn).await?;
    let target = start + TimeDelta::seconds(seconds);
    drop(conn);
    let mut now = start;
    step(ctx, now).await?;
    while now < target {
        let mut next = target.min(now + STEP_MAX);
        let mut conn = ctx.db.conn().await?;
        for sweep in &ctx.registry.sweeps {
            if let Some(due) = sweep.next_due(ctx, &mut conn, now).await?
                && due > now
            {
                next = next.min(due);
            }
        }
        db::business_clock_set(&mut conn, &ctx.clock, next).await?;
        drop(conn);
        step(ctx, next).await?;
        now = next;
    }
    Ok(now)
}

async fn step(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    for sweep in &ctx.registry.sweeps {
        sweep.run(ctx, now).await?;
    }
    run_due_jobs(ctx).await?;
    Ok(())
}
