//! Which published listings may have lost what backs them.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::super::gate::Rules;
use crate::{
    base::{
        Result,
        id::{ListingId, RunId},
    },
    benchmarks::model::EvidenceLevel,
    db::{Conn, Tx, schema::listings},
};

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = sql_types::Uuid)]
    id: ListingId,
}

fn ids(rows: Vec<IdRow>) -> Vec<ListingId> {
    rows.into_iter().map(|row| row.id).collect()
}

/// Listings to look at again: published ones that are due, no longer backed by their run, or have a newer run that may back them; and those
/// that a re-measurement took off the market whose run is in doubt no more. The gate decides; this
/// only chooses, and may choose too many but never too few.
pub async fn listing_list_to_reassess(conn: &mut Conn, rules: &Rules, limit: i64) -> Result<Vec<ListingId>> {
    let engine_matters = rules.wanted >= EvidenceLevel::Remeasured;
    let enough = if engine_matters { vec!["remeasured"] } else { vec!["challenged", "remeasured"] };
    let rows = diesel::sql_query(
        "WITH lost AS MATERIALIZED (
             SELECT l.id, l.valid_until FROM listings l JOIN machines m ON m.id = l.machine_id JOIN accounts a ON a.id = l.account_id
                 LEFT JOIN runs r ON r.id = l.run_id AND r.machine_id = l.machine_id
                 LEFT JOIN run_standings rs ON rs.run_id = r.id
             WHERE l.state = 'published' AND (
                 l.valid_until <= $1 OR r.id IS NULL OR r.status <> 'verified' OR r.visibility <> 'public' OR r.expires_at <= $1
                 OR rs.disputed_at IS NOT NULL OR (r.stale_at IS NOT NULL AND l.valid_until > coalesce(rs.stale_until, r.stale_at))
                 OR m.hardware_changed_at > r.created_at OR m.deleted_at IS NOT NULL OR m.endpoint_url IS NULL
                 OR a.closed_at IS NOT NULL OR ($2 AND m.endpoint_changed_at > greatest(r.created_at, rs.remeasured_at)) OR r.evidence_level <> ALL($3))),
         newer AS MATERIALIZED (
             SELECT l.id, l.valid_until FROM runs n JOIN listings l ON l.machine_id = n.machine_id AND l.state = 'published'
                 JOIN runs r ON r.id = l.run_id
             WHERE n.created_at > r.created_at AND n.status = 'verified' AND n.visibility = 'public' AND n.stale_at IS NULL
               AND n.expires_at > $1 AND n.evidence_level = ANY($3)),
         settled AS MATERIALIZED (
             SELECT l.id, l.valid_until FROM listings l JOIN runs r ON r.id = l.run_id LEFT JOIN run_standings rs ON rs.run_id = r.id
             WHERE l.state = 'off_market' AND l.off_market_reason = 'remeasure_disagreed' AND l.closed_at IS NULL
               AND r.status = 'verified' AND rs.disputed_at IS NULL)
         SELECT id FROM (SELECT * FROM lost UNION SELECT * FROM newer UNION SELECT * FROM settled) found ORDER BY valid_until, id LIMIT $4",
    )
    .bind::<sql_types::Timestamptz, _>(rules.now)
    .bind::<sql_types::Bool, _>(engine_matters)
    .bind::<sql_types::Array<sql_types::Text>, _>(enough)
    .bind::<sql_types::BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(ids(rows))
}

/// Open listings that a run backs or could back.
pub async fn listing_list_of_run(conn: &mut Conn, run: RunId) -> Result<Vec<ListingId>> {
    let rows = diesel::sql_query(
        "SELECT l.id FROM listings l WHERE l.closed_at IS NULL
             AND (l.run_id = $1 OR l.machine_id = (SELECT machine_id FROM runs WHERE id = $1)) ORDER BY l.id",
    )
    .bind::<sql_types::Uuid, _>(run)
    .load(conn)
    .await?;
    Ok(ids(rows))
}

/// When the next published listing leaves the market by itself.
pub async fn listing_next_due(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let published = listings::table.filter(listings::state.eq("published")).filter(listings::valid_until.gt(after));
    Ok(published.select(diesel::dsl::min(listings::valid_until)).first(conn).await?)
}

/// Notes which published listings have a machine that has been silent since `silent_since` or longer, and which no longer have.
pub async fn listing_mark_silent(tx: &mut Tx<'_>, silent_since: DateTime<Utc>) -> Result<()> {
    tx.note_public_change();
    diesel::sql_query(
        "UPDATE listings l SET is_silent = seen.is_silent
         FROM (SELECT p.id, coalesce(m.probe_failed_at <= $1, false) AS is_silent
               FROM listings p JOIN machines m ON m.id = p.machine_id WHERE p.state = 'published') seen
         WHERE l.id = seen.id AND l.is_silent <> seen.is_silent",
    )
    .bind::<sql_types::Timestamptz, _>(silent_since)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
