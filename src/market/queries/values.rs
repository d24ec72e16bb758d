//! What a dollar buys at a cell, for the leaderboard: `listing_values` walked in that order.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Result,
        id::{ListingId, RunId},
    },
    benchmarks::{Place, Ranking, model::EvidenceLevel},
    db::{Bind, Conn, Draft, Shapes, Statement},
};

/// A published listing at a cell of its run.
#[derive(Queryable)]
pub struct ValueRow {
    pub value: ValueColumns,
    pub listing: ListingColumns,
    pub run: RunColumns,
}

#[derive(Queryable)]
pub struct ValueColumns {
    pub rate: f64,
    pub total_tokens_per_second: f64,
    pub model: String,
    pub publisher: Option<String>,
    pub hardware_slug: String,
    pub gpu_count: i32,
    pub quantization: String,
    pub kv_cache_dtype: String,
}

#[derive(Queryable)]
pub struct ListingColumns {
    pub id: ListingId,
    pub price_per_hour_micros: i64,
}

#[derive(Queryable)]
pub struct RunColumns {
    pub id: RunId,
    pub title: String,
    pub by_handle: String,
    pub evidence_level: String,
    pub engine_name: Option<String>,
    pub created_at: DateTime<Utc>,
}

type ValueSql = (sql::Double, sql::Double, sql::Text, sql::Nullable<sql::Text>, sql::Text, sql::Integer, sql::Text, sql::Text);
type ListingSql = (sql::Uuid, sql::BigInt);
type RunSql = (sql::Uuid, sql::Text, sql::Text, sql::Text, sql::Nullable<sql::Text>, sql::Timestamptz);

/// Published listings with a measured badge from after `after`, the most tokens for a dollar first.
pub async fn value_list(
    conn: &mut Conn,
    shapes: &Shapes,
    ranking: &Ranking,
    now: DateTime<Utc>,
    after: Option<&Place>,
    limit: i64,
) -> Result<Vec<ValueRow>> {
    const ORDER: &str = "e.rate, e.quantization, e.kv_cache_dtype, e.listing_id";
    let mut s = Draft::default();
    let context = s.bind(Bind::Integer(ranking.context_tokens));
    let concurrency = s.bind(Bind::Integer(ranking.concurrency));
    s.and(format!("e.context_tokens = {context} AND e.concurrency = {concurrency}"));
    ranking.narrow(&mut s);
    if let Some(engine) = &ranking.engine {
        let engine = s.bind(Bind::Text(engine.clone()));
        s.and(format!("e.engine = {engine}"));
    }
    if ranking.least_evidence > EvidenceLevel::Document {
        let levels = if ranking.least_evidence == EvidenceLevel::Remeasured { "'remeasured'" } else { "'challenged', 'remeasured'" };
        s.and(format!("r.evidence_level IN ({levels})"));
    }
    let now = s.bind(Bind::Instant(now));
    // What a decision or a dispute has taken from a run shows at once; the listing follows by a job.
    s.and(format!(
        "l.valid_until > {now} AND r.stale_at IS NULL AND r.status = 'verified'
         AND NOT EXISTS (SELECT FROM run_standings rs WHERE rs.run_id = r.id AND rs.disputed_at IS NOT NULL)"
    ));
    if let Some(place) = after {
        let value = s.bind(Bind::Double(place.sort_value));
        let quantization = s.bind(Bind::Text(place.quantization.clone()));
        let kv = s.bind(Bind::Text(place.kv_cache_dtype.clone()));
        let listing = s.bind(Bind::Id(place.listing.map_or(uuid::Uuid::max(), ListingId::uuid)));
        s.and(format!("({ORDER}) > ({value}, {quantization}, {kv}, {listing})"));
    }
    let text = format!(
        "SELECT e.rate, e.total_tokens_per_second, e.model, e.publisher, e.hardware_slug, e.gpu_count, e.quantization, e.kv_cache_dtype,
                l.id, l.price_per_hour_micros, r.id, r.title, a.handle, r.evidence_level, r.engine_name, r.created_at
         FROM listing_values e JOIN listings l ON l.id = e.listing_id JOIN runs r ON r.id = l.run_id JOIN accounts a ON a.id = r.account_id
         WHERE {conditions} ORDER BY {ORDER} LIMIT {limit}",
        conditions = s.conditions()
    );
    Ok(Statement::<(ValueSql, ListingSql, RunSql)>::of_shape(shapes, text, s.binds).load(conn).await?)
}
