//! Moving the sandbox's business clock: from due event to due event, so that an hour of rental passes as it would have.

use std::panic::AssertUnwindSafe;

use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use futures::FutureExt;

use super::run_due_jobs;
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    db,
};

/// No step is longer than this, even when no sweep knows of an event.
const STEP_MAX: TimeDelta = TimeDelta::days(1);

/// Moves business time `seconds` ahead and runs everything that falls due on the way, in order, before it returns the new time. Two moves
/// at once follow each other. The caller has checked that this is the sandbox and that `seconds` is positive.
///
/// # Errors
/// A sweep's fault: the clock then stands at the event that failed, and a later move or the workers go on from there.
pub async fn advance_business_clock(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    // One at a time in this process, so that those who wait take no connection from the one who works; then one at a time in all processes.
    let _turn = ctx.clock_moves.lock().await;
    let mut lock = ctx.db.conn_apart().await?;
    diesel::sql_query("SELECT pg_advisory_lock(7241002)").execute(&mut lock).await?;
    advance(ctx, seconds).await
}

/// What `before_advance` began ends also when a sweep panics: a sweep that thinks that the clock moves would never look at the world again.
async fn advance(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    let work = async {
        for sweep in &ctx.registry.sweeps {
            sweep.before_advance(ctx).await?;
        }
        walk(ctx, seconds).await
    };
    let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(Error::internal("a sweep panicked")));
    for sweep in &ctx.registry.sweeps {
        if let Err(error) = sweep.after_advance(ctx).await {
            tracing::error!(sweep = sweep.name(), error = ?error, "the end of a clock move failed");
        }
    }
    outcome
}

/// From event to event until `seconds` have passed.
async fn walk(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    let mut now = {
        let mut conn = ctx.db.conn().await?;
        ctx.business_now(&mut conn).await?
    };
    let target = now + TimeDelta::seconds(seconds);
    step(ctx, now).await?;
    while now < target {
        now = next_stop(ctx, now, target).await?;
        step(ctx, now).await?;
    }
    Ok(now)
}

/// Sets the clock to the next event, at most to `target`.
async fn next_stop(ctx: &Ctx, now: DateTime<Utc>, target: DateTime<Utc>) -> Result<DateTime<Utc>> {
    let mut conn = ctx.db.conn().await?;
    let mut next = target.min(now + STEP_MAX);
    for sweep in &ctx.registry.sweeps {
        let due = sweep.next_due(ctx, &mut conn, now).await?;
        next = due.filter(|due| *due > now).map_or(next, |due| next.min(due));
    }
    db::business_clock_set(&mut conn, &ctx.clock, next).await?;
    Ok(next)
}

async fn step(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    for sweep in &ctx.registry.sweeps {
        sweep.run(ctx, now).await?;
    }
    run_due_jobs(ctx).await?;
    Ok(())
}
