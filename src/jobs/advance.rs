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

/// From event to event until business time is `seconds` further ahead of wall time; what the walk itself takes passes on both clocks.
async fn walk(ctx: &Ctx, seconds: i64) -> Result<DateTime<Utc>> {
    let offset = {
        let mut conn = ctx.db.conn().await?;
        db::business_offset(&mut conn).await?
    };
    let target = offset + TimeDelta::seconds(seconds);
    let mut stop = Stop { now: ctx.clock.wall_now() + offset, is_last: false };
    step(ctx, stop.now).await?;
    while !stop.is_last {
        stop = next_stop(ctx, stop.now, target).await?;
        step(ctx, stop.now).await?;
    }
    Ok(stop.now)
}

/// Where the walk stands.
struct Stop {
    now: DateTime<Utc>,
    is_last: bool,
}

/// Sets the clock to the next event after `now`, or to its target. What begins at the same time either has begun and is an event, or begins
/// after it.
async fn next_stop(ctx: &Ctx, now: DateTime<Utc>, target: TimeDelta) -> Result<Stop> {
    ctx.db
        .tx("clock_step", async |tx| {
            db::business_clock_lock(tx).await?;
            let mut next = now + STEP_MAX;
            for sweep in &ctx.registry.sweeps {
                let due = sweep.next_due(ctx, tx, now).await?;
                next = due.filter(|due| *due > now).map_or(next, |due| next.min(due));
            }
            let wall_now = ctx.clock.wall_now();
            let offset = target.min(next - wall_now);
            db::business_offset_raise(tx, offset).await?;
            Ok(Stop { now: wall_now + offset, is_last: offset >= target })
        })
        .await
}

async fn step(ctx: &Ctx, now: DateTime<Utc>) -> Result<()> {
    for sweep in &ctx.registry.sweeps {
        sweep.run(ctx, now).await?;
    }
    run_due_jobs(ctx).await?;
    Ok(())
}
