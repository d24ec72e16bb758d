//! SQL of the rankings.

pub mod measured;
pub mod medians;

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::{LeaderboardRow, LeaderboardRun, Metric, Place, Ranking};
use crate::{
    base::{Result, id::RunId},
    benchmarks::model::EvidenceLevel,
    db::{Bind, Conn, Draft, KeptDsl, Shapes, Statement, Tx},
};

/// Counts the run anew where it belongs, and takes it out where it no longer does.
pub async fn run_changed(tx: &mut Tx<'_>, run: RunId) -> Result<()> {
    tx.note_public_change();
    let refresh = diesel::sql_query("SELECT leaderboard_run_changed($1)").bind::<sql::Uuid, _>(run);
    refresh.kept().execute(&mut **tx).await?;
    Ok(())
}

type EntrySql = (sql::Integer, sql::Integer, sql::Double, sql::Double, sql::Double, sql::Double, sql::Integer, sql::Integer, sql::Integer);
type SeriesSql = (sql::Text, sql::Nullable<sql::Text>, sql::Text, sql::Integer, sql::Text, sql::Text);
type RunSql = (sql::Uuid, sql::Text, sql::Text, sql::Text, sql::Nullable<sql::Text>, sql::Timestamptz, sql::Nullable<sql::Timestamptz>);

/// What [`RunColumns`] reads by position, given `r` and `a`.
pub const RUN_COLUMNS: &str = "r.id, r.title, a.handle, r.evidence_level, r.engine_name, r.created_at, r.stale_at";

#[derive(Queryable)]
struct EntryRow {
    entry: EntryColumns,
    series: SeriesColumns,
    run: RunColumns,
}

#[derive(Queryable)]
struct EntryColumns {
    series_id: i32,
    concurrency: i32,
    figure: f64,
    sort_value: f64,
    lowest: f64,
    highest: f64,
    run_count: i32,
    account_count: i32,
    stale_run_count: i32,
}

#[derive(Queryable)]
struct SeriesColumns {
    model: String,
    publisher: Option<String>,
    hardware_slug: String,
    gpu_count: i32,
    quantization: String,
    kv_cache_dtype: String,
}

#[derive(Queryable)]
struct RunColumns {
    id: RunId,
    title: String,
    by_handle: String,
    evidence_level: String,
    engine_name: Option<String>,
    created_at: DateTime<Utc>,
    stale_at: Option<DateTime<Utc>>,
}

impl RunColumns {
    fn view(self) -> Result<LeaderboardRun> {
        Ok(LeaderboardRun {
            id: self.id,
            title: self.title,
            by: format!("@{}", self.by_handle),
            evidence_level: EvidenceLevel::parse(&self.evidence_level)?,
            engine: self.engine_name,
            created_at: self.created_at,
            stale_at: self.stale_at,
        })
    }
}

/// The rows of a ranking from after `after`, each with its place: an index of its board in that order.
pub async fn entry_list(
    conn: &mut Conn,
    shapes: &Shapes,
    ranking: &Ranking,
    after: Option<&Place>,
    limit: i64,
) -> Result<Vec<(LeaderboardRow, Place)>> {
    const ORDER: &str = "e.sort_value, e.quantization, e.kv_cache_dtype, e.series_id";
    let mut s = Draft::default();
    board(&mut s, ranking);
    ranking.narrow(&mut s);
    if let Some(place) = after {
        let value = s.bind(Bind::Double(place.sort_value));
        let quantization = s.bind(Bind::Text(place.quantization.clone()));
        let kv = s.bind(Bind::Text(place.kv_cache_dtype.clone()));
        let series = s.bind(Bind::Integer(place.series.unwrap_or(i32::MAX)));
        s.and(format!("({ORDER}) > ({value}, {quantization}, {kv}, {series})"));
    }
    // The limit stands in the text: a plan for any limit is one for a tenth of the board.
    let text = format!(
        "WITH e AS MATERIALIZED (SELECT e.* FROM leaderboard_entries e WHERE {conditions} ORDER BY {ORDER} LIMIT {limit})
         SELECT e.series_id, e.concurrency, e.figure, e.sort_value, e.lowest, e.highest, e.run_count, e.account_count, e.stale_run_count,
                e.model, e.publisher, e.hardware_slug, e.gpu_count, e.quantization, e.kv_cache_dtype, {RUN_COLUMNS}
         FROM e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = r.account_id ORDER BY {ORDER}",
        conditions = s.conditions()
    );
    let rows: Vec<EntryRow> = Statement::<(EntrySql, SeriesSql, RunSql)>::of_shape(shapes, text, s.binds).load(conn).await?;
    let mut before = after.cloned();
    let mut found = Vec::with_capacity(rows.len());
    for EntryRow { entry, series, run } in rows {
        let place = Place::after(before.as_ref(), entry.sort_value, &series.quantization, &series.kv_cache_dtype);
        let place = Place { series: Some(entry.series_id), ..place };
        found.push((view(ranking, entry, series, run.view()?, place.rank), place.clone()));
        before = Some(place);
    }
    Ok(found)
}

fn view(ranking: &Ranking, entry: EntryColumns, series: SeriesColumns, run: LeaderboardRun, rank: i64) -> LeaderboardRow {
    LeaderboardRow {
        rank,
        figure: entry.figure,
        unit: ranking.metric.unit(),
        model: series.model,
        publisher: series.publisher,
        quantization: series.quantization,
        kv_cache_dtype: series.kv_cache_dtype,
        context_tokens: ranking.context_tokens,
        concurrency: (ranking.metric != Metric::PrefillAt).then_some(entry.concurrency),
        hardware: series.hardware_slug,
        gpu_count: series.gpu_count,
        lowest: entry.lowest,
        highest: entry.highest,
        run_count: entry.run_count,
        account_count: entry.account_count,
        stale_run_count: entry.stale_run_count,
        run,
        offer: None,
    }
}

fn board(s: &mut Draft, ranking: &Ranking) {
    let metric = s.bind(Bind::Text(ranking.metric.board().to_owned()));
    let evidence = s.bind(Bind::Text(ranking.least_evidence.as_str().to_owned()));
    let engine = s.bind(Bind::Text(ranking.engine.clone().unwrap_or_default()));
    let context = s.bind(Bind::Integer(ranking.context_tokens));
    let concurrency = s.bind(Bind::Integer(ranking.concurrency));
    s.and(format!(
        "e.board_id = (SELECT id FROM boards WHERE metric = {metric} AND least_evidence = {evidence} AND engine = {engine}
                           AND context_tokens = {context} AND concurrency = {concurrency})"
    ));
}

impl Ranking {
    /// What a ranking is narrowed to besides its place, of rows `e` that have these columns.
    pub fn narrow(&self, s: &mut Draft) {
        let texts = [
            ("e.model", &self.model),
            ("e.publisher", &self.publisher),
            ("e.hardware_slug", &self.hardware_slug),
            ("e.quantization", &self.quantization),
            ("e.kv_cache_dtype", &self.kv_cache_dtype),
        ];
        for (column, value) in texts {
            if let Some(value) = value {
                let value = s.bind(Bind::Text(value.clone()));
                s.and(format!("{column} = {value}"));
            }
        }
        if let Some(count) = self.gpu_count {
            let count = s.bind(Bind::Integer(count));
            s.and(format!("e.gpu_count = {count}"));
        }
    }
}
