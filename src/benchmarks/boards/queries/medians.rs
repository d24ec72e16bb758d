//! SQL of what was measured of a model in a quantization, cell by cell, for the calculator: the rankings' own figures in one statement.

use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::super::Metric;
use crate::{
    base::{Result, id::RunId},
    db::{Conn, KeptDsl},
};

/// A figure of a series. Of cells without a valid measurement (`queued`, `over_capacity`): what one account's newest run has there.
#[derive(QueryableByName)]
pub struct MedianRow {
    #[diesel(sql_type = sql::Integer)]
    pub series_id: i32,
    #[diesel(sql_type = sql::Text)]
    pub kv_cache_dtype: String,
    #[diesel(sql_type = sql::Text)]
    pub hardware_slug: String,
    #[diesel(sql_type = sql::Integer)]
    pub gpu_count: i32,
    #[diesel(sql_type = sql::Bool)]
    pub is_prefill: bool,
    #[diesel(sql_type = sql::Integer)]
    pub context_tokens: i32,
    #[diesel(sql_type = sql::Integer)]
    pub concurrency: i32,
    /// `valid`, `queued` or `over_capacity`.
    #[diesel(sql_type = sql::Text)]
    pub status: String,
    /// 0 over capacity.
    #[diesel(sql_type = sql::Double)]
    pub figure: f64,
    #[diesel(sql_type = sql::Double)]
    pub lowest: f64,
    #[diesel(sql_type = sql::Double)]
    pub highest: f64,
    #[diesel(sql_type = sql::Integer)]
    pub run_count: i32,
    #[diesel(sql_type = sql::Integer)]
    pub account_count: i32,
    #[diesel(sql_type = sql::Uuid)]
    pub run_id: RunId,
}

/// Medians of decode totals and prefill rates, as the leaderboard has them for any engine from evidence `document`: of the series on this
/// hardware first, then those with the most runs, at most `series_max` of them. Cells where requests queued or that were over capacity are
/// not ranked: on this hardware they are taken from the runs that stand for other cells, which are accepted.
pub async fn medians(
    conn: &mut Conn,
    model: &str,
    quantization: &str,
    hardware: &str,
    gpu_count: i32,
    series_max: i64,
) -> Result<Vec<MedianRow>> {
    let text = format!(
        "WITH s AS MATERIALIZED (
             SELECT s.id, s.kv_cache_dtype, s.hardware_slug, s.gpu_count, s.run_count,
                    (s.hardware_slug = $3 AND s.gpu_count = $4) AS is_own, (s.gpu_count = $4) AS is_near
             FROM board_series s WHERE s.model = $1 AND s.quantization = $2 AND s.run_count > 0
             ORDER BY is_own DESC, is_near DESC, s.run_count DESC, s.id LIMIT $5),
         e AS MATERIALIZED (
             SELECT s.id, s.kv_cache_dtype, s.hardware_slug, s.gpu_count, s.is_own, s.is_near, s.run_count AS all_runs,
                    b.metric = '{prefill}' AS is_prefill, b.context_tokens, b.concurrency, e.figure, e.lowest, e.highest, e.run_count,
                    e.account_count, e.run_id
             FROM s JOIN leaderboard_entries e ON e.series_id = s.id JOIN boards b ON b.id = e.board_id
             WHERE b.metric IN ('{decode}', '{prefill}') AND b.least_evidence = 'document' AND b.engine = ''),
         others AS (
             SELECT DISTINCT ON (o.id, c.context_tokens, c.concurrency, c.status, r.account_id)
                    o.*, c.context_tokens, c.concurrency, c.status, coalesce(c.total_tokens_per_second, 0) AS figure, r.id AS run_id
             FROM (SELECT DISTINCT e.id, e.kv_cache_dtype, e.hardware_slug, e.gpu_count, e.is_near, e.all_runs, e.run_id AS of_run
                   FROM e WHERE e.is_own) o
             JOIN runs r ON r.id = o.of_run JOIN run_cells c ON c.run_id = r.id AND c.status IN ('queued', 'over_capacity')
             ORDER BY o.id, c.context_tokens, c.concurrency, c.status, r.account_id, r.created_at DESC, r.id DESC),
         told AS (
             SELECT e.id, e.kv_cache_dtype, e.hardware_slug, e.gpu_count, e.is_own, e.is_near, e.all_runs, e.is_prefill, e.context_tokens,
                    e.concurrency, 'valid' AS status, e.figure, e.lowest, e.highest, e.run_count, e.account_count, e.run_id
             FROM e
             UNION ALL
             SELECT o.id, o.kv_cache_dtype, o.hardware_slug, o.gpu_count, true, o.is_near, o.all_runs, false, o.context_tokens,
                    o.concurrency, o.status, o.figure, o.figure, o.figure, 1, 1, o.run_id
             FROM others o)
         SELECT t.id AS series_id, t.kv_cache_dtype, t.hardware_slug, t.gpu_count, t.is_prefill, t.context_tokens, t.concurrency, t.status,
                t.figure, t.lowest, t.highest, t.run_count, t.account_count, t.run_id
         FROM told t
         ORDER BY t.is_own DESC, t.is_near DESC, t.all_runs DESC, t.id, t.is_prefill, t.context_tokens, t.concurrency, t.status,
                  t.figure DESC, t.run_id",
        decode = Metric::DecodeAt.board(),
        prefill = Metric::PrefillAt.board(),
    );
    let query = diesel::sql_query(text).bind::<sql::Text, _>(model).bind::<sql::Text, _>(quantization).bind::<sql::Text, _>(hardware);
    Ok(query.bind::<sql::Integer, _>(gpu_count).bind::<sql::BigInt, _>(series_max).kept().load(conn).await?)
}
