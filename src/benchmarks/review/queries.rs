//! SQL of the queue and of the runs beside one.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{
    super::{copies::CLOSE_CELLS_MIN, model::RunRow},
    model::{ReviewPlace, ReviewQueueQuery},
};
use crate::{
    base::{
        Result,
        id::{AccountId, RunId},
    },
    db::{
        Conn,
        schema::{accounts, run_documents, runs},
    },
};

#[derive(QueryableByName)]
pub struct QueueRow {
    #[diesel(sql_type = sql_types::Uuid)]
    pub id: RunId,
    #[diesel(sql_type = sql_types::Text)]
    pub visibility: String,
    #[diesel(sql_type = sql_types::Text)]
    pub cause: String,
    #[diesel(sql_type = sql_types::Timestamptz)]
    pub since: DateTime<Utc>,
    #[diesel(sql_type = sql_types::Array<sql_types::Text>)]
    pub findings: Vec<String>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Timestamptz>)]
    pub answered_at: Option<DateTime<Utc>>,
}

/// Runs that wait, longest first. By the index of runs that wait, which are few; of each the history says since when and why.
pub async fn queue_list(
    conn: &mut Conn,
    query: &ReviewQueueQuery,
    since_at_most: Option<DateTime<Utc>>,
    only: Option<RunId>,
    after: Option<&ReviewPlace>,
    limit: i64,
) -> Result<Vec<QueueRow>> {
    Ok(diesel::sql_query(
        "SELECT * FROM (
             SELECT r.id, r.visibility, coalesce(q.at, r.created_at) AS since,
                    CASE q.kind WHEN 'sent_to_review' THEN 'dispute' WHEN 'reopened' THEN 'reopened' ELSE 'findings' END AS cause,
                    ARRAY(SELECT found ->> 'code' FROM jsonb_array_elements(r.detail -> 'findings') found
                          WHERE found ->> 'severity' <> 'note') AS findings,
                    a.at AS answered_at
             FROM runs r
             LEFT JOIN LATERAL (
                 SELECT at, kind FROM run_events e
                 WHERE e.run_id = r.id AND e.kind IN ('verdict', 'verdict_recomputed', 'sent_to_review', 'reopened')
                   AND (e.kind <> 'verdict_recomputed' OR e.details ->> 'was' IS DISTINCT FROM e.details ->> 'verdict')
                 ORDER BY sequence DESC LIMIT 1) q ON true
             LEFT JOIN run_events a ON a.run_id = r.id AND a.kind = 'answered'
             WHERE r.status = 'needs_review' AND ($8 IS NULL OR r.id = $8)) waiting
         WHERE ($1 IS NULL OR $1 = ANY (findings))
           AND ($2 IS NULL OR cause = $2)
           AND ($3 IS NULL OR (answered_at IS NOT NULL) = $3)
           AND ($4 IS NULL OR since <= $4)
           AND ($5 IS NULL OR (since, id) > ($5, $6))
         ORDER BY since, id LIMIT $7",
    )
    .bind::<sql_types::Nullable<sql_types::Text>, _>(query.finding.as_deref())
    .bind::<sql_types::Nullable<sql_types::Text>, _>(query.cause.map(super::model::ReviewCause::as_str))
    .bind::<sql_types::Nullable<sql_types::Bool>, _>(query.answered)
    .bind::<sql_types::Nullable<sql_types::Timestamptz>, _>(since_at_most)
    .bind::<sql_types::Nullable<sql_types::Timestamptz>, _>(after.map(|place| place.since))
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(after.map(|place| place.id))
    .bind::<sql_types::BigInt, _>(limit)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(only)
    .load(conn)
    .await?)
}

pub async fn run_rows(conn: &mut Conn, ids: &[RunId]) -> Result<Vec<RunRow>> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = runs::table.inner_join(accounts::table.on(accounts::id.eq(runs::account_id))).filter(runs::id.eq_any(ids));
    // As `RunRow` reads them.
    let columns = (
        runs::id,
        accounts::handle,
        runs::status,
        runs::evidence_level,
        runs::model_slug,
        runs::publisher,
        runs::quantization,
        runs::hardware_slug,
        runs::gpu_count,
        runs::engine_name,
        runs::title,
        runs::summary,
        runs::decode_single_tokens_per_second,
        runs::decode_peak_tokens_per_second,
        runs::prefill_peak_tokens_per_second,
        runs::created_at,
        runs::expires_at,
    );
    Ok(rows.select(columns).load(conn).await?)
}

/// What came in, packed, and whose it is.
pub async fn original_fetch(conn: &mut Conn, id: RunId) -> Result<Option<(AccountId, Vec<u8>)>> {
    let query = run_documents::table.inner_join(runs::table).filter(runs::id.eq(id.uuid()));
    Ok(query.select((runs::account_id, run_documents::original_gzip)).first(conn).await.optional()?)
}

#[derive(QueryableByName)]
pub struct SimilarRow {
    #[diesel(sql_type = sql_types::Uuid)]
    pub id: RunId,
    #[diesel(sql_type = sql_types::Text)]
    pub title: String,
    #[diesel(sql_type = sql_types::Text)]
    pub handle: String,
    #[diesel(sql_type = sql_types::Text)]
    pub status: String,
    #[diesel(sql_type = sql_types::Text)]
    pub evidence_level: String,
    #[diesel(sql_type = sql_types::Text)]
    pub visibility: String,
    #[diesel(sql_type = sql_types::Timestamptz)]
    pub created_at: DateTime<Utc>,
    #[diesel(sql_type = sql_types::Bool)]
    pub is_same_setup: bool,
    #[diesel(sql_type = sql_types::BigInt)]
    pub shared_cells: i64,
    #[diesel(sql_type = sql_types::BigInt)]
    pub close_cells: i64,
    #[diesel(sql_type = sql_types::BigInt)]
    pub own_cells: i64,
    #[diesel(sql_type = sql_types::Bool)]
    pub shares_run_identifier: bool,
    #[diesel(sql_type = sql_types::Bool)]
    pub shares_device: bool,
    #[diesel(sql_type = sql_types::Bool)]
    pub is_same_account: bool,
    #[diesel(sql_type = sql_types::Bool)]
    pub is_same_machine: bool,
}

/// Runs that share marks with one, by the marks' index, and the newest verified ones of the same setup, by the model's; `limit` of each.
pub async fn similar_list(conn: &mut Conn, id: RunId, limit: i64) -> Result<Vec<SimilarRow>> {
    Ok(diesel::sql_query(
        "WITH own AS (SELECT id, account_id, machine_id, model_slug, quantization, hardware_slug, gpu_count FROM runs WHERE id = $1),
              marked AS (
                  SELECT m.run_id AS id, count(*) FILTER (WHERE m.kind = 'cell') AS cells,
                         count(DISTINCT split_part(m.value, '/', 1) || '/' || split_part(m.value, '/', 2))
                             FILTER (WHERE m.kind = 'close_cell') AS close_cells,
                         bool_or(m.kind IN ('nonce', 'tool_run')) AS run_identifier, bool_or(m.kind = 'device') AS device
                  FROM run_marks o JOIN run_marks m ON m.kind = o.kind AND m.value = o.value AND m.run_id <> o.run_id
                  WHERE o.run_id = $1
                  GROUP BY m.run_id HAVING bool_or(m.kind <> 'close_cell') OR count(*) >= $3
                  ORDER BY cells DESC, close_cells DESC, run_identifier DESC, m.run_id DESC LIMIT $2),
              alike AS (
                  SELECT r.id FROM own JOIN runs r
                      ON r.model_slug = own.model_slug AND r.quantization IS NOT DISTINCT FROM own.quantization
                     AND r.hardware_slug = own.hardware_slug AND r.gpu_count IS NOT DISTINCT FROM own.gpu_count AND r.id <> own.id
                  WHERE r.status = 'verified'
                  ORDER BY r.created_at DESC, r.id DESC LIMIT $2)
         SELECT r.id, r.title, a.handle, r.status, r.evidence_level, r.visibility, r.created_at,
                (r.model_slug = own.model_slug AND r.quantization IS NOT DISTINCT FROM own.quantization
                     AND r.hardware_slug = own.hardware_slug AND r.gpu_count IS NOT DISTINCT FROM own.gpu_count) IS TRUE AS is_same_setup,
                coalesce(m.cells, 0) AS shared_cells, coalesce(m.close_cells, 0) AS close_cells,
                (SELECT count(*) FROM run_marks c WHERE c.run_id = $1 AND c.kind = 'cell') AS own_cells,
                coalesce(m.run_identifier, false) AS shares_run_identifier, coalesce(m.device, false) AS shares_device,
                r.account_id = own.account_id AS is_same_account,
                (r.machine_id = own.machine_id) IS TRUE AS is_same_machine
         FROM (SELECT id FROM marked UNION SELECT id FROM alike) found
         JOIN runs r ON r.id = found.id
         JOIN accounts a ON a.id = r.account_id
         CROSS JOIN own
         LEFT JOIN marked m ON m.id = r.id
         ORDER BY shared_cells DESC, close_cells DESC, shares_run_identifier DESC, is_same_setup DESC, r.created_at DESC, r.id DESC",
    )
    .bind::<sql_types::Uuid, _>(id)
    .bind::<sql_types::BigInt, _>(limit)
    .bind::<sql_types::BigInt, _>(i64::try_from(CLOSE_CELLS_MIN).unwrap_or(i64::MAX))
    .load(conn)
    .await?)
}

#[derive(QueryableByName)]
pub struct CommonCellRow {
    #[diesel(sql_type = sql_types::Uuid)]
    pub run_id: RunId,
    #[diesel(sql_type = sql_types::Integer)]
    pub context_tokens: i32,
    #[diesel(sql_type = sql_types::Integer)]
    pub concurrency: i32,
    #[diesel(sql_type = sql_types::Double)]
    pub own: f64,
    #[diesel(sql_type = sql_types::Double)]
    pub other: f64,
}

/// Cells that a run and others have both measured.
pub async fn common_cells(conn: &mut Conn, id: RunId, others: &[RunId]) -> Result<Vec<CommonCellRow>> {
    Ok(diesel::sql_query(
        "SELECT c.run_id, c.context_tokens, c.concurrency, o.total_tokens_per_second AS own, c.total_tokens_per_second AS other
         FROM run_cells o JOIN run_cells c USING (context_tokens, concurrency)
         WHERE o.run_id = $1 AND c.run_id = ANY ($2) AND o.total_tokens_per_second > 0 AND c.total_tokens_per_second > 0
         ORDER BY c.run_id, c.context_tokens, c.concurrency",
    )
    .bind::<sql_types::Uuid, _>(id)
    .bind::<sql_types::Array<sql_types::Uuid>, _>(others)
    .load(conn)
    .await?)
}
