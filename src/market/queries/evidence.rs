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
    db::{Conn, schema::listings},
};

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = sql_types::Uuid)]
    id: ListingId,
}

fn ids(rows: Vec<IdRow>) -> Vec<ListingId> {
    rows.into_iter().map(|row| row.id).collect()
}

/// Published listings to look at again: due, no longer backed by their run, or with a newer run that may back them. The gate decides; this
/// only chooses, and may choose too many but never too few.
pub async fn listing_list_to_reassess(conn: &mut Conn, rules: &Rules, limit: i64) -> Result<Vec<ListingId>> {
    let engine_matters = rules.wanted >= EvidenceLevel::Remeasured;
    let enough = if engine_matters { vec!["remeasured"] } else { vec!["challenged", "remeasured"] };
    let rows = diesel::sql_query(
        "SELECT l.id FROM listings l JOIN machines m ON m.id = l.machine_id JOIN accounts a ON a.id = l.account_id
             LEFT JOIN runs r ON r.id = l.run_id AND r.machine_id = l.machine_id
         WHERE l.state = 'published' AND (
             l.valid_until <= $1 OR r.id IS NULL OR r.status <> 'verified' OR r.visibility <> 'public' OR r.expires_at <= $1
             OR r.stale_at IS NOT NULL OR m.hardware_changed_at > r.created_at OR m.deleted_at IS NOT NULL OR a.closed_at IS NOT NULL
             OR ($2 AND m.endpoint_changed_at > r.created_at) OR r.evidence_level <> ALL($3)
             OR EXISTS (SELECT FROM runs n WHERE n.machine_id = l.machine_id AND n.created_at > r.created_at AND n.status = 'verified'
                        AND n.visibility = 'public' AND n.stale_at IS NULL AND n.expires_at > $1 AND n.evidence_level = ANY($3)
                        AND (m.hardware_changed_at IS NULL OR m.hardware_changed_at <= n.created_at)))
         ORDER BY l.valid_until, l.id LIMIT $4",
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
