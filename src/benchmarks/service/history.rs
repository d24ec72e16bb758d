//! Reading what happened to a run.

use std::collections::HashMap;

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::super::{
    history::{
        model::{RunEvent, RunEventView},
        queries as events,
    },
    queries,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, RunId},
    },
    ctx::Ctx,
    db::Conn,
    identity,
    web::Limit,
};

/// How many events a page shows.
const SHOWN_MAX: i64 = 100;

/// A page of a run's history.
#[derive(Debug, Clone, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunHistoryQuery {
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// Events of a run after the one with the sequence `after`, oldest first, and the place where the next page begins. An unlisted run's are shown
/// to whoever has its address, as the run is.
///
/// # Errors
/// `not_found`.
pub async fn history(ctx: &Ctx, id: RunId, limit: Limit, after: Option<i64>) -> Result<(Vec<RunEventView>, Option<i64>)> {
    let mut conn = ctx.db.conn().await?;
    if !queries::run_exists(&mut conn, id).await? {
        return Err(Error::not_found("run"));
    }
    let mut rows = events::run_event_list(&mut conn, id, after.unwrap_or(0), limit.rows_to_fetch()).await?;
    let has_more = rows.len() > limit.get();
    rows.truncate(limit.get());
    let next = rows.last().filter(|_| has_more).map(|row| row.sequence);
    Ok((views(&mut conn, rows).await?, next))
}

/// The newest events, as pages show them: oldest first.
///
/// # Errors
/// The database's own faults.
pub async fn newest_events(conn: &Conn, id: RunId) -> Result<Vec<RunEventView>> {
    let rows = events::run_event_list_newest(conn, id, SHOWN_MAX).await?;
    rows.into_iter().map(|(row, handle)| RunEventView::of(row, handle.map(|handle| format!("@{handle}")))).collect()
}

pub(super) async fn views(conn: &mut Conn, rows: Vec<RunEvent>) -> Result<Vec<RunEventView>> {
    let accounts: Vec<AccountId> = rows.iter().filter_map(|row| row.account_id).collect();
    let handles = match accounts.as_slice() {
        [] => HashMap::new(),
        accounts => identity::service::account_summaries(conn, accounts).await?,
    };
    let handle = |row: &RunEvent| row.account_id.and_then(|id| Some(format!("@{}", handles.get(&id)?.handle)));
    rows.into_iter()
        .map(|row| {
            let by = handle(&row);
            RunEventView::of(row, by)
        })
        .collect()
}
