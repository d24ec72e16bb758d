//! What operators and, in the sandbox, testers may do.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{Error, Result},
    ctx::Ctx,
    db, jobs,
};

/// Two years: the longest a single move may be.
const ADVANCE_SECONDS_MAX: i64 = 63_072_000;

/// How far to move the sandbox's business clock.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockRequest {
    #[schema(minimum = 1, maximum = 63_072_000)]
    pub advance_seconds: i64,
}

/// The business clock.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ClockView {
    /// Business time now.
    pub now: DateTime<Utc>,
    /// How far it is ahead of wall time.
    pub ahead_seconds: i64,
}

fn sandbox_only(ctx: &Ctx) -> Result<()> {
    if ctx.config.mode.is_sandbox() { Ok(()) } else { Err(Error::not_found("path")) }
}

/// Reads the sandbox's business clock.
///
/// # Errors
/// `not_found` outside the sandbox.
pub async fn clock(ctx: &Ctx) -> Result<ClockView> {
    sandbox_only(ctx)?;
    let mut conn = ctx.db.conn().await?;
    let ahead = db::business_offset(&mut conn).await?;
    Ok(ClockView { now: ctx.clock.wall_now() + ahead, ahead_seconds: ahead.num_seconds() })
}

/// Moves the sandbox's business clock forward and runs everything that falls due on the way before it returns.
///
/// # Errors
/// `not_found` outside the sandbox, `invalid_input` for a move that is not forward or too long.
pub async fn advance_clock(ctx: &Ctx, request: &ClockRequest) -> Result<ClockView> {
    sandbox_only(ctx)?;
    if !(1..=ADVANCE_SECONDS_MAX).contains(&request.advance_seconds) {
        let detail = format!("advance_seconds is from 1 to {ADVANCE_SECONDS_MAX}.");
        return Err(Error::invalid("/advance_seconds", "out_of_range", detail));
    }
    jobs::advance_business_clock(ctx, request.advance_seconds).await?;
    clock(ctx).await
}
