//! SQL of what was measured of rows of the catalog: one statement for the counts of a page, one for its best figures.

use std::collections::HashMap;

use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::super::{BestFigure, Measured, Metric, ReportCount};
use crate::{
    base::{Result, id::RunId},
    benchmarks::model::EvidenceLevel,
    db::{Conn, KeptDsl},
};

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Model,
    Hardware,
    Publisher,
}

impl Subject {
    const fn entry_column(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Hardware => "hardware_slug",
            Self::Publisher => "publisher",
        }
    }

    /// As an index of `reports` has it.
    const fn report_column(self) -> &'static str {
        match self {
            Self::Model => "coalesce(model_slug, model_name)",
            Self::Hardware => "coalesce(hardware_slug, hardware_name)",
            Self::Publisher => "publisher",
        }
    }
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = sql::Text)]
    slug: String,
    #[diesel(sql_type = sql::BigInt)]
    runs: i64,
    #[diesel(sql_type = sql::BigInt)]
    reports: i64,
}

#[derive(QueryableByName)]
struct BestRow {
    #[diesel(sql_type = sql::Text)]
    slug: String,
    #[diesel(sql_type = sql::Text)]
    metric: String,
    #[diesel(sql_type = sql::Double)]
    figure: f64,
    #[diesel(sql_type = sql::Text)]
    model: String,
    #[diesel(sql_type = sql::Text)]
    quantization: String,
    #[diesel(sql_type = sql::Text)]
    kv_cache_dtype: String,
    #[diesel(sql_type = sql::Integer)]
    concurrency: i32,
    #[diesel(sql_type = sql::Text)]
    hardware_slug: String,
    #[diesel(sql_type = sql::Integer)]
    gpu_count: i32,
    #[diesel(sql_type = sql::Integer)]
    run_count: i32,
    #[diesel(sql_type = sql::Uuid)]
    run_id: RunId,
    #[diesel(sql_type = sql::Text)]
    evidence_level: String,
}

/// Accepted runs, and reports apart, of each slug.
pub async fn counts(conn: &mut Conn, subject: Subject, slugs: &[&str]) -> Result<HashMap<String, (i64, ReportCount)>> {
    let text = format!(
        "SELECT s.slug, (SELECT coalesce(sum(run_count), 0)::bigint FROM board_series WHERE {} = s.slug) AS runs,
                (SELECT count(*) FROM reports WHERE {} = s.slug) AS reports
         FROM unnest($1) AS s (slug)",
        subject.entry_column(),
        subject.report_column()
    );
    let rows: Vec<CountRow> = diesel::sql_query(text).bind::<sql::Array<sql::Text>, _>(slugs).kept().load(conn).await?;
    Ok(rows.into_iter().map(|row| (row.slug, (row.runs, ReportCount { count: row.reports }))).collect())
}

/// What was measured of each slug, and the reports apart.
pub async fn measured(conn: &mut Conn, subject: Subject, slugs: &[&str]) -> Result<HashMap<String, (Measured, ReportCount)>> {
    let counts = counts(conn, subject, slugs).await?;
    let mut found: HashMap<String, (Measured, ReportCount)> = counts
        .into_iter()
        .map(|(slug, (accepted_run_count, reports))| (slug, (Measured { accepted_run_count, best: Vec::new() }, reports)))
        .collect();
    for row in best_rows(conn, subject, slugs).await? {
        let metric = if row.metric == Metric::DecodePeak.board() { Metric::DecodePeak } else { Metric::DecodeSingle };
        let best = BestFigure {
            metric,
            figure: row.figure,
            unit: metric.unit(),
            model: row.model,
            quantization: row.quantization,
            kv_cache_dtype: row.kv_cache_dtype,
            context_tokens: 0,
            concurrency: row.concurrency,
            hardware: row.hardware_slug,
            gpu_count: row.gpu_count,
            run_count: row.run_count,
            run_id: row.run_id,
            evidence_level: EvidenceLevel::parse(&row.evidence_level)?,
        };
        if let Some((measured, _)) = found.get_mut(&row.slug) {
            measured.best.push(best);
        }
    }
    Ok(found)
}

/// The first row of each ranking without context.
async fn best_rows(conn: &mut Conn, subject: Subject, slugs: &[&str]) -> Result<Vec<BestRow>> {
    let text = format!(
        "SELECT s.slug, b.metric, e.figure, e.model, e.quantization, e.kv_cache_dtype, e.concurrency, e.hardware_slug, e.gpu_count, e.run_count,
                e.run_id, r.evidence_level
         FROM unnest($1) AS s (slug)
         CROSS JOIN (SELECT id, metric FROM boards WHERE least_evidence = 'document' AND engine = '' AND context_tokens = 0
                         AND (metric, concurrency) IN (('decode_at', 1), ('decode_peak', 0))) b
         CROSS JOIN LATERAL (
             SELECT * FROM leaderboard_entries WHERE board_id = b.id AND {} = s.slug
             ORDER BY sort_value, quantization, kv_cache_dtype, series_id LIMIT 1) e
         JOIN runs r ON r.id = e.run_id
         ORDER BY s.slug, b.metric",
        subject.entry_column()
    );
    Ok(diesel::sql_query(text).bind::<sql::Array<sql::Text>, _>(slugs).kept().load(conn).await?)
}
