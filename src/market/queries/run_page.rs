//! The machines that are for rent with a run, looked up by the run's id alone, so that it needs no answer of another statement.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::{
    details::{COLUMNS, DetailsRow, DetailsSql, JOINS, RUN_COLUMNS},
    search::{CellColumns, CellSql, Found},
};
use crate::{
    base::{Result, clock::Clock, id::RunId},
    benchmarks::comparison_cell_sql,
    db::{Bind, Conn, Statement},
    market::{model::ListingDetails, search::Position},
};

/// A listing, the cell that answers what the run did, and the business time at which it was looked up.
pub struct RunOffer {
    pub found: Found,
    pub now: DateTime<Utc>,
}

#[derive(Queryable)]
struct OfferRow {
    details: DetailsRow,
    cell: CellColumns,
    now: DateTime<Utc>,
}

/// The listing of the run's own machine first, then others with the same hardware, model and quantization that can be rented now, cheapest output
/// first, `limit` of them: by the spans that hold the cell by which runs are compared, as a search does.
pub async fn run_offers(mut conn: &Conn, clock: &Clock, id: RunId, limit: i64) -> Result<Vec<RunOffer>> {
    // As `db::business_now`: outside the sandbox it is wall time.
    let now =
        if clock.business_moves() { "$2 + (SELECT offset_microseconds FROM business_clock) * interval '1 microsecond'" } else { "$2" };
    let text = format!(
        "WITH subject AS MATERIALIZED (
            SELECT r.machine_id, r.hardware_slug, r.quantization, coalesce(r.model_slug, r.model_name) AS model, c.context_tokens, c.concurrency,
                   {now} AS now
            FROM runs r CROSS JOIN LATERAL ({cell}) c WHERE r.id = $1),
         spans AS MATERIALIZED (
            SELECT w.id, w.context_tokens FROM subject s JOIN workload_spans w
                ON w.model = s.model AND w.above_context < s.context_tokens AND w.context_tokens >= s.context_tokens
               AND w.above_concurrency < s.concurrency AND w.up_to_concurrency >= s.concurrency),
         page AS (
            (SELECT l.id AS page_id, spans.context_tokens, cell.concurrency, true AS is_own, cell.rate
             FROM subject s JOIN listings l ON l.machine_id = s.machine_id CROSS JOIN spans
                 JOIN listing_answers cell ON cell.listing_id = l.id AND cell.span_id = spans.id
             WHERE l.state = 'published' AND l.valid_until > s.now AND (s.quantization IS NULL OR l.quantization = s.quantization) LIMIT 1)
            UNION ALL
            (SELECT one.* FROM subject s CROSS JOIN spans CROSS JOIN LATERAL (
                SELECT l.id, spans.context_tokens, cell.concurrency, false, cell.rate
                FROM listing_answers cell JOIN listings l ON l.id = cell.listing_id
                WHERE cell.span_id = spans.id AND l.state = 'published' AND l.valid_until > s.now AND NOT l.is_taken AND NOT l.is_silent
                  AND l.hardware_slug = s.hardware_slug AND (s.quantization IS NULL OR l.quantization = s.quantization)
                  AND l.machine_id IS DISTINCT FROM s.machine_id
                ORDER BY cell.rate LIMIT {limit}) one (page_id, context_tokens, concurrency, is_own, rate)
             ORDER BY one.rate, one.page_id LIMIT {limit}))
         SELECT {COLUMNS}, {RUN_COLUMNS}, c.context_tokens, c.concurrency, c.total_tokens_per_second, c.ttft_ms, c.cold_ttft_ms, s.now
         FROM subject s CROSS JOIN page JOIN listings l ON l.id = page.page_id {JOINS}
             JOIN run_cells c ON c.run_id = l.run_id AND c.context_tokens = page.context_tokens AND c.concurrency = page.concurrency
         ORDER BY page.is_own DESC, page.rate, l.id",
        cell = comparison_cell_sql()
    );
    let binds = vec![Bind::Id(id.uuid()), Bind::Instant(clock.wall_now())];
    let rows: Vec<OfferRow> = Statement::<(DetailsSql, CellSql, sql::Timestamptz)>::kept(text, binds).load(&mut conn).await?;
    let offer = |row: OfferRow| {
        let details = ListingDetails::from(row.details);
        let position = Position { micros: None, number: None, id: details.listing.id };
        RunOffer { found: Found { details, cell: row.cell.cell(), position }, now: row.now }
    };
    Ok(rows.into_iter().map(offer).collect())
}
