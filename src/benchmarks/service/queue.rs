//! What operators read: the queue, one run with all that is known of it, the runs beside it, the document that came in.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::{
    super::{
        checks::{self, Finding},
        history::queries as events,
        queries,
        review::{
            model::{
                ComparedCell, ExplainedFinding, ReviewCause, ReviewPlace, ReviewQueueItem, ReviewQueueQuery, ReviewView, SimilarRun,
                SimilarRuns, Waiting,
            },
            queries as reviews,
        },
    },
    gunzip, history, read, review,
};
use crate::{
    base::{Error, Result, id::RunId},
    ctx::Ctx,
    identity::{self, Act, By, Caller},
};

/// Runs that share cells, and runs of the same setup: so many of each.
const SIMILAR_MAX: i64 = 10;
const WAITING_HOURS_MAX: u32 = 87_600;

/// Runs that wait for review, longest first, also unlisted ones, and the place where the next page begins.
///
/// # Errors
/// `invalid_input` for more hours than there are.
pub async fn review_queue(
    ctx: &Ctx,
    query: &ReviewQueueQuery,
    after: Option<ReviewPlace>,
) -> Result<(Vec<ReviewQueueItem>, Option<ReviewPlace>)> {
    if query.waiting_hours.is_some_and(|hours| hours > WAITING_HOURS_MAX) {
        return Err(Error::invalid("?waiting_hours", "out_of_range", format!("At most {WAITING_HOURS_MAX} hours.")));
    }
    let mut conn = ctx.db.conn().await?;
    let now = ctx.business_now(&mut conn).await?;
    let since = query.waiting_hours.map(|hours| now - TimeDelta::hours(hours.into()));
    let mut rows = reviews::queue_list(&mut conn, query, since, None, after.as_ref(), query.limit.rows_to_fetch()).await?;
    let has_more = rows.len() > query.limit.get();
    rows.truncate(query.limit.get());
    let next = rows.last().filter(|_| has_more).map(|row| ReviewPlace { since: row.since, id: row.id });
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).collect();
    let runs = reviews::run_rows(&mut conn, &ids).await?;
    let mut runs: HashMap<RunId, _> = runs.into_iter().map(|row| Ok((row.id, read::summary(row)?))).collect::<Result<_>>()?;
    let item = |row: reviews::QueueRow| {
        Some(ReviewQueueItem {
            run: runs.remove(&row.id)?,
            visibility: row.visibility,
            cause: cause(&row.cause),
            waiting_since: row.since,
            findings: row.findings,
            answered_at: row.answered_at,
        })
    };
    Ok((rows.into_iter().filter_map(item).collect(), next))
}

fn cause(text: &str) -> ReviewCause {
    ReviewCause::ALL.into_iter().find(|cause| cause.as_str() == text).unwrap_or(ReviewCause::Findings)
}

/// One run with its findings explained, the uploader's answer and its history.
///
/// # Errors
/// `not_found`.
pub async fn review_show(ctx: &Ctx, operator: &Caller, id: RunId) -> Result<ReviewView> {
    let mut conn = ctx.db.conn().await?;
    let run = queries::run_fetch(&mut conn, id).await?.ok_or_else(|| Error::not_found("run"))?;
    let waiting = reviews::queue_list(&mut conn, &ReviewQueueQuery::default(), None, Some(id), None, 1).await?;
    let waiting = waiting.first().map(|row| Waiting { since: row.since, cause: cause(&row.cause) });
    let is_own = identity::service::belongs_to(&mut conn, operator.user_id, run.account_id).await?;
    let is_decided = review::is_decided(events::run_event_last_ruling(&mut conn, id).await?.as_ref());
    let answer = events::run_event_answer(&mut conn, id).await?.into_iter().collect();
    let answer = history::views(&mut conn, answer).await?.pop();
    let history = history::newest_events(&conn, id).await?;
    let (run, _) = read::shown(&conn, run.id).await?;
    let findings = run.checks.iter().map(explained).collect();
    Ok(ReviewView { run, waiting, findings, answer, history, is_own, is_decided })
}

fn explained(finding: &Finding) -> ExplainedFinding {
    let check = checks::info(&finding.code);
    ExplainedFinding {
        code: finding.code.to_string(),
        severity: finding.severity,
        message: finding.message.clone(),
        cells: finding.cells.clone(),
        expected: finding.expected.clone(),
        observed: finding.observed.clone(),
        title: check.map(|check| check.title),
        explanation: check.map(|check| check.explanation),
    }
}

/// The runs beside one: those that share marks with it, and verified ones of the same setup.
///
/// # Errors
/// `not_found`.
pub async fn similar(ctx: &Ctx, id: RunId) -> Result<SimilarRuns> {
    let mut conn = ctx.db.conn().await?;
    let rows = reviews::similar_list(&mut conn, id, SIMILAR_MAX).await?;
    if rows.is_empty() && !queries::run_exists(&mut conn, id).await? {
        return Err(Error::not_found("run"));
    }
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).collect();
    let mut cells: HashMap<RunId, Vec<ComparedCell>> = HashMap::new();
    for row in reviews::common_cells(&mut conn, id, &ids).await? {
        cells.entry(row.run_id).or_default().push(ComparedCell {
            context_tokens: u64::try_from(row.context_tokens).unwrap_or(0),
            concurrency: u32::try_from(row.concurrency).unwrap_or(0),
            own_tokens_per_second: row.own,
            other_tokens_per_second: row.other,
            ratio: row.own / row.other,
        });
    }
    let data = rows.into_iter().map(|row| {
        let cells = cells.remove(&row.id).unwrap_or_default();
        similar_run(row, cells)
    });
    Ok(SimilarRuns { data: data.collect::<Result<_>>()? })
}

fn similar_run(row: reviews::SimilarRow, cells: Vec<ComparedCell>) -> Result<SimilarRun> {
    Ok(SimilarRun {
        id: row.id,
        title: row.title,
        by: format!("@{}", row.handle),
        is_same_account: row.is_same_account,
        is_same_machine: row.is_same_machine,
        status: read::verdict(&row.status)?,
        evidence_level: row.evidence_level,
        visibility: row.visibility,
        created_at: row.created_at,
        is_same_setup: row.is_same_setup,
        shared_cells: row.shared_cells,
        close_cells: row.close_cells,
        own_cells: row.own_cells,
        shares_run_identifier: row.shares_run_identifier,
        shares_device: row.shares_device,
        median_ratio: median(cells.iter().map(|cell| cell.ratio).collect()),
        cells,
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The document as it came in: for its owner, and for operators, whose reading of it is audited.
///
/// # Errors
/// `not_found` for everybody else.
pub async fn original(ctx: &Ctx, caller: &Caller, id: RunId) -> Result<Vec<u8>> {
    let packed = ctx
        .db
        .tx("run_original", async |tx| {
            let found = reviews::original_fetch(tx, id).await?;
            let may = |owner| owner == caller.account_id || caller.is_operator;
            let (owner, packed) = found.filter(|(owner, _)| may(*owner)).ok_or_else(|| Error::not_found("run of yours"))?;
            if owner != caller.account_id {
                let at = ctx.business_now(tx).await?;
                let details = serde_json::json!({});
                let act = Act {
                    by: By::Caller(caller),
                    account_id: Some(owner),
                    action: "run_original.read",
                    target: id.to_string(),
                    details,
                    at,
                };
                identity::audit(tx, act).await?;
            }
            Ok(packed)
        })
        .await?;
    tokio::task::spawn_blocking(move || gunzip(&packed)).await.map_err(Error::internal)?
}
