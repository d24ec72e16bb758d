//! An operator's decision on a run.

use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    super::{
        model::{RunSummaryView, RunView},
        queries::{self, RunPlace},
        verdict::Verdict,
    },
    RunListQuery,
    remeasure::run_changed,
};
use crate::{
    base::{Code, Error, Result, id::RunId},
    ctx::Ctx,
    identity::{self, Act, By, Caller},
    web::Limit,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    Accept,
    Reject,
}

/// A page of the review queue.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReviewQueueQuery {
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// Runs that wait for review, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn review_queue(ctx: &Ctx, query: &ReviewQueueQuery, after: Option<RunPlace>) -> Result<(Vec<RunSummaryView>, Option<RunPlace>)> {
    let query = RunListQuery { status: Some(Verdict::NeedsReview), limit: query.limit, ..RunListQuery::default() };
    super::list(ctx, &query, after).await
}

/// A decision and why; the reason is public.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    pub decision: ReviewDecision,
    /// Public. 3 to 1000 characters.
    #[schema(min_length = 3, max_length = 1000)]
    pub reason: String,
}

/// Accepts or rejects a run that waits for review, or rejects one that was verified. What the checks rejected stays rejected.
///
/// # Errors
/// `not_found`, `invalid_state` for a rejected run, `invalid_input` without a reason.
pub async fn review(ctx: &Ctx, operator: &Caller, id: RunId, request: &ReviewRequest) -> Result<RunView> {
    let reason = request.reason.trim();
    if !(3..=1_000).contains(&reason.chars().count()) {
        return Err(Error::invalid("/reason", "wrong_length", "A reason has 3 to 1000 characters."));
    }
    let status = match request.decision {
        ReviewDecision::Accept => Verdict::Verified,
        ReviewDecision::Reject => Verdict::Rejected,
    };
    let wall_now = ctx.clock.wall_now();
    ctx.db
        .tx("run_review", async |tx| {
            let now = ctx.business_now(tx).await?;
            let run = queries::run_fetch(tx, id).await?.ok_or_else(|| Error::not_found("run"))?;
            // An answer to a challenge that a person accepted is as good as one that passed by itself.
            let level = if run.challenge_id.is_some() && status == Verdict::Verified { "challenged" } else { "document" };
            if !queries::run_review(tx, id, status.as_str(), level, operator.user_id, reason, now).await? {
                return Err(Error::new(Code::InvalidState, "A run that its checks rejected cannot be decided otherwise."));
            }
            let detail = serde_json::json!({"was": run.status, "now": status.as_str(), "reason": reason});
            let act = Act {
                by: By::Caller(operator),
                account_id: Some(run.account_id),
                action: "run.review",
                target: id.to_string(),
                details: detail,
                at: now,
            };
            identity::audit(tx, act).await?;
            run_changed(tx, id, wall_now).await
        })
        .await?;
    super::fetch(ctx, id).await
}
