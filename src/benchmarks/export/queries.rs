//! All SQL of the export: a walk along the primary key of `run_cells`.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use super::model::{ExportRow, Position};
use crate::{
    base::Result,
    db::{
        Conn,
        schema::{accounts, run_cells, runs},
    },
};

/// The next rows after `after`.
pub async fn export_rows(conn: &mut Conn, after: Option<Position>, limit: i64) -> Result<Vec<ExportRow>> {
    let mut query = run_cells::table
        .inner_join(runs::table.on(runs::id.eq(run_cells::run_id)))
        .inner_join(accounts::table.on(accounts::id.eq(runs::account_id)))
        .filter(runs::status.eq("verified"))
        .filter(runs::visibility.eq("public"))
        .filter(run_cells::status.eq("valid"))
        .into_boxed();
    if let Some((run, context, users)) = after {
        let run = run.uuid();
        // The first condition is for the index; PostgreSQL's comparison of rows is not among Diesel's.
        query =
            query.filter(run_cells::run_id.ge(run)).filter(run_cells::run_id.gt(run).or(run_cells::run_id.eq(run).and(
                run_cells::context_tokens.gt(context).or(run_cells::context_tokens.eq(context).and(run_cells::concurrency.gt(users))),
            )));
    }
    let columns = (
        run_cells::run_id,
        accounts::handle,
        runs::evidence_level,
        runs::model_slug,
        runs::model_name,
        runs::publisher,
        runs::quantization,
        runs::kv_cache_dtype,
        runs::hardware_slug,
        runs::gpu_count,
        runs::engine_name,
        runs::created_at,
        run_cells::context_tokens,
        run_cells::concurrency,
        run_cells::total_tokens_per_second,
        run_cells::per_request_tokens_per_second,
        run_cells::ttft_ms,
        run_cells::itl_ms,
        run_cells::cold_ttft_ms,
    );
    let order = (run_cells::run_id, run_cells::context_tokens, run_cells::concurrency);
    Ok(query.order(order).limit(limit).select(columns).load(conn).await?)
}
