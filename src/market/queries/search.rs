//! The search: one statement, written from the conditions that are asked for, so that the planner sees each search as it is.

use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::{
    super::{
        model::ListingDetails,
        price::per_million_sql,
        search::{Position, Search, Sort},
        workload::{MeasuredCell, Workload},
    },
    details::{COLUMNS, DetailsRow, DetailsSql, JOINS, RUN_COLUMNS},
};
use crate::{
    base::Result,
    db::{Bind, Conn, Draft, Shapes, Statement},
};

/// A listing of a page, the cell that answers the workload, and its place in the order.
pub struct Found {
    pub details: ListingDetails,
    pub cell: Option<MeasuredCell>,
    pub position: Position,
}

pub(super) type CellSql = (
    sql::Nullable<sql::Integer>,
    sql::Nullable<sql::Integer>,
    sql::Nullable<sql::Double>,
    sql::Nullable<sql::Double>,
    sql::Nullable<sql::Double>,
);
type FoundSql = (DetailsSql, CellSql, sql::Nullable<sql::BigInt>, sql::Nullable<sql::Double>);

#[derive(Queryable)]
struct FoundRow {
    details: DetailsRow,
    cell: CellColumns,
    sort_micros: Option<i64>,
    sort_number: Option<f64>,
}

#[derive(Queryable)]
pub(super) struct CellColumns {
    context_tokens: Option<i32>,
    concurrency: Option<i32>,
    total: Option<f64>,
    ttft_ms: Option<f64>,
    cold_ttft_ms: Option<f64>,
}

impl CellColumns {
    pub(super) fn cell(self) -> Option<MeasuredCell> {
        Some(MeasuredCell {
            context_tokens: self.context_tokens?,
            concurrency: self.concurrency?,
            total_tokens_per_second: self.total?,
            ttft_ms: self.ttft_ms,
            cold_ttft_ms: self.cold_ttft_ms,
        })
    }
}

/// How far a size asked for may lie from the nominal one: a 24 GB card reports 23.99 GiB, and 10 and 12 GB cards stay apart.
const VRAM_TOLERANCE: f64 = 0.01;

/// Published listings that fit, in the order asked for, from after `after`.
pub async fn listing_search(
    conn: &mut Conn,
    shapes: &Shapes,
    search: &Search,
    now: chrono::DateTime<chrono::Utc>,
    after: Option<&Position>,
    limit: i64,
) -> Result<Vec<Found>> {
    let (text, binds) = statement(search, now, after, limit);
    let rows: Vec<FoundRow> = Statement::<FoundSql>::of_shape(shapes, text, binds).load(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let details = ListingDetails::from(row.details);
            let number = row.sort_number.filter(|number| number.is_finite());
            let position = Position { micros: row.sort_micros, number, id: details.listing.id };
            Found { details, cell: row.cell.cell(), position }
        })
        .collect())
}

/// For each search, how many published listings fit, counted up to `most`: one statement.
pub async fn listing_counts(
    conn: &mut Conn,
    shapes: &Shapes,
    searches: &[Search],
    now: chrono::DateTime<chrono::Utc>,
    most: i64,
) -> Result<Vec<i64>> {
    if searches.is_empty() {
        return Ok(Vec::new());
    }
    let mut s = Draft::default();
    let mut counts = Vec::new();
    for search in searches {
        s.conditions.clear();
        // An order does not change how many fit; this one goes through listings.
        let search = Search { sort: Sort::Price, ..search.clone() };
        let from = order(&mut s, &search).from;
        filter(&mut s, &search, now);
        let conditions = s.conditions();
        counts.push(format!("(SELECT count(*) FROM (SELECT FROM {from} WHERE {conditions} LIMIT {most}) fitting)"));
    }
    let text = format!("SELECT ARRAY[{}]", counts.join(",\n"));
    Ok(Statement::<sql::Array<sql::BigInt>>::of_shape(shapes, text, s.binds).get_result(conn).await?)
}

/// Where the rows of a search come from, and in which order.
struct Order {
    from: String,
    /// By the values of one of these two, then by id.
    micros: &'static str,
    number: &'static str,
    is_exact: bool,
    /// Whether it goes through the spans that hold the workload, and the answers of each.
    by_answers: bool,
}

impl Order {
    const fn sort(&self) -> &'static str {
        if self.is_exact { self.micros } else { self.number }
    }
}

fn order(s: &mut Draft, search: &Search) -> Order {
    let (micros, number) = match search.sort {
        Sort::Price => ("l.price_per_hour_micros", "NULL::double precision"),
        Sort::PricePerMillionTokens => ("per_million.micros", "NULL::double precision"),
        // Negative, so that every order goes up and a page begins after (value, id). As the indexes of `listing_answers` have them.
        Sort::TokensPerSecond => ("NULL::bigint", "(-(cell.total_tokens_per_second / cell.concurrency))"),
        Sort::Ttft => ("NULL::bigint", "coalesce(cell.cold_ttft_ms, 'Infinity'::double precision)"),
    };
    let by_answers = search.workload.is_some() && search.sort != Sort::Price;
    let from = match &search.workload {
        None => "listings l".to_owned(),
        Some(workload) if search.sort == Sort::Price => format!("listings l {}", lightest_cell(s, workload)),
        Some(workload) => {
            let users = s.bind(Bind::Integer(workload.concurrency));
            let price = if search.sort == Sort::PricePerMillionTokens { per_million_sql(&users) } else { String::new() };
            s.and("cell.span_id = spans.id");
            format!("listing_answers cell JOIN listings l ON l.id = cell.listing_id {price}")
        }
    };
    Order { from, micros, number, is_exact: search.sort.is_exact(), by_answers }
}

/// The statement in two steps: the page's ids, which are few, and then what is shown of them.
fn statement(search: &Search, now: chrono::DateTime<chrono::Utc>, after: Option<&Position>, limit: i64) -> (String, Vec<Bind>) {
    let mut s = Draft::default();
    let order = order(&mut s, search);
    filter(&mut s, search, now);
    let sort = order.sort();
    if let Some(position) = after {
        let value = if order.is_exact {
            s.bind(Bind::BigInt(position.micros.unwrap_or(i64::MAX)))
        } else {
            s.bind(Bind::Double(position.number.unwrap_or(f64::INFINITY)))
        };
        let id = s.bind(Bind::Id(position.id.uuid()));
        s.and(format!("({sort}, l.id) > ({value}, {id})"));
    }
    let page = page(&mut s, search, &order, after, limit);
    let (cell, cell_join) = match search.workload {
        None => ("NULL::integer, NULL::integer, NULL::double precision, NULL::double precision, NULL::double precision", ""),
        Some(_) => (
            "c.context_tokens, c.concurrency, c.total_tokens_per_second, c.ttft_ms, c.cold_ttft_ms",
            "JOIN run_cells c ON c.run_id = l.run_id AND c.context_tokens = page.context_tokens AND c.concurrency = page.concurrency",
        ),
    };
    let text = format!(
        "WITH {page}
         SELECT {COLUMNS}, {RUN_COLUMNS}, {cell}, page.sort_micros, page.sort_number
         FROM page JOIN listings l ON l.id = page.page_id {JOINS} {cell_join}
         ORDER BY page.sort_micros, page.sort_number, l.id"
    );
    (text, s.binds)
}

/// The page as `page (page_id, sort_micros, sort_number)`, with a workload also `context_tokens` and `concurrency` of the cell. The limit stands
/// in the text: a plan for any limit is one for a tenth of the market.
fn page(s: &mut Draft, search: &Search, order: &Order, after: Option<&Position>, limit: i64) -> String {
    let context = if order.by_answers { "spans.context_tokens" } else { "cell.context_tokens" };
    let place = if search.workload.is_some() { format!(", {context}, cell.concurrency") } else { String::new() };
    let Order { from, micros, number, .. } = order;
    let sort = order.sort();
    let (Some(workload), true) = (&search.workload, order.by_answers) else {
        return format!(
            "page AS (
            SELECT l.id AS page_id, {micros} AS sort_micros, {number} AS sort_number{place}
            FROM {from}
            WHERE {conditions} ORDER BY {sort}, l.id LIMIT {limit})",
            conditions = s.conditions()
        );
    };
    let spans = spans(s, workload);
    let reach = match search.sort {
        Sort::PricePerMillionTokens => within_reach(s, order, workload, after, limit),
        Sort::Price | Sort::TokensPerSecond | Sort::Ttft => String::new(),
    };
    // A page of each span, and a page of those.
    format!(
        "{spans},
         {reach}page AS (
            SELECT one.* FROM spans CROSS JOIN LATERAL (
                SELECT l.id AS page_id, {micros} AS sort_micros, {number} AS sort_number{place}
                FROM {from}
                WHERE {conditions} ORDER BY {sort}, l.id LIMIT {limit}) one
            ORDER BY one.sort_micros, one.sort_number, one.page_id LIMIT {limit})",
        conditions = s.conditions()
    )
}

/// The spans that hold the workload: few, since people measure alike.
fn spans(s: &mut Draft, workload: &Workload) -> String {
    let model = s.bind(Bind::Text(workload.model.clone()));
    let context = s.bind(Bind::Integer(workload.context_tokens));
    let users = s.bind(Bind::Integer(workload.concurrency));
    format!(
        "spans AS MATERIALIZED (
            SELECT id, context_tokens FROM workload_spans
            WHERE model = {model} AND above_context < {context} AND context_tokens >= {context}
              AND above_concurrency < {users} AND up_to_concurrency >= {users})"
    )
}

/// Micro-dollars for 10^6 tokens and one user, for a `rate` of 1 (`listing_answers`): 10^12 ÷ 3600.
const MICROS_PER_RATE: &str = "(1e12 / 3600)::double precision";

/// The order by a price that is rounded to micro-dollars, ties by id, out of an index that has it unrounded and without the users asked: `near`
/// reads as many rows as the page holds in the order of `rate`; a row of the page costs at most what the last of them costs, so it lies at most
/// one micro-dollar further. Among those the exact order decides. What is compared as a float is widened by far more than a float's error.
fn within_reach(s: &mut Draft, order: &Order, workload: &Workload, after: Option<&Position>, limit: i64) -> String {
    let users = s.bind(Bind::Integer(workload.concurrency));
    if let Some(position) = after {
        let micros = s.bind(Bind::BigInt(position.micros.unwrap_or(i64::MAX)));
        s.and(format!("cell.rate >= ({micros} - 1) * (1 - 1e-9::double precision) * {users} / {MICROS_PER_RATE}"));
    }
    let from = &order.from;
    let reach = format!(
        "near AS MATERIALIZED (
            SELECT one.rate FROM spans CROSS JOIN LATERAL (
                SELECT cell.rate FROM {from}
                WHERE {conditions} ORDER BY cell.rate LIMIT {limit}) one
            ORDER BY one.rate LIMIT {limit}),
         reach AS MATERIALIZED (
            SELECT min(rate) AS low,
                   CASE WHEN max(rate) * {MICROS_PER_RATE} / {users} > 9e18 THEN 'Infinity'::double precision
                        ELSE max(rate) * (1 + 1e-9::double precision) + {users} / {MICROS_PER_RATE} END AS high FROM near),
         ",
        conditions = s.conditions()
    );
    s.and("cell.rate BETWEEN (SELECT low FROM reach) AND (SELECT high FROM reach)");
    reach
}

fn filter(s: &mut Draft, search: &Search, now: chrono::DateTime<chrono::Utc>) {
    s.and("l.state = 'published'");
    let now = s.bind(Bind::Instant(now));
    s.and(format!("l.valid_until > {now}"));
    if let Some(only) = search.only {
        let only = s.bind(Bind::Id(only.uuid()));
        s.and(format!("l.id = {only}"));
    }
    if !search.include_unavailable {
        s.and("NOT l.is_taken AND NOT l.is_silent");
    }
    let texts = [
        ("l.hardware_slug", search.hardware_slug.as_ref()),
        // The spans are of one model; said twice it would count twice, and the planner would think that next to nothing fits.
        ("l.model", search.workload.as_ref().filter(|_| search.sort == Sort::Price).map(|workload| &workload.model)),
        ("l.quantization", search.quantization.as_ref()),
    ];
    for (column, value) in texts {
        if let Some(value) = value {
            let value = s.bind(Bind::Text(value.clone()));
            s.and(format!("{column} = {value}"));
        }
    }
    if let Some(count) = search.gpu_count {
        let count = s.bind(Bind::Integer(count));
        s.and(format!("l.gpu_count = {count}"));
    }
    if let Some(vram_gib) = search.vram_gib {
        let low = s.bind(Bind::Double(vram_gib * (1.0 - VRAM_TOLERANCE)));
        let high = s.bind(Bind::Double(vram_gib * (1.0 + VRAM_TOLERANCE)));
        s.and(format!("l.vram_gib BETWEEN {low} AND {high}"));
    }
    if let Some(region) = &search.region {
        // The country always, for the index.
        let country = s.bind(Bind::Text(region.country().to_owned()));
        s.and(format!("left(l.region, 2) = {country}"));
        if region.has_subdivision() {
            let region = s.bind(Bind::Text(region.as_str().to_owned()));
            s.and(format!("l.region = {region}"));
        }
    }
    if let Some(max_price) = search.max_price {
        let max_price = s.bind(Bind::BigInt(max_price.micros()));
        s.and(format!("l.price_per_hour_micros <= {max_price}"));
    }
    if let Some(handle) = &search.by {
        let handle = s.bind(Bind::Text(handle.clone()));
        s.and(format!("l.account_id = (SELECT id FROM accounts WHERE handle = {handle})"));
    }
    if let Some(min) = search.min_tokens_per_second {
        let min = s.bind(Bind::Double(min));
        s.and(format!("cell.total_tokens_per_second / cell.concurrency >= {min}"));
    }
    if let Some(max) = search.max_ttft_ms {
        let max = s.bind(Bind::Double(max));
        s.and(format!("cell.cold_ttft_ms <= {max}"));
    }
}

/// The lightest valid cell at least as heavy as asked (`workload::lightest_at_least`), by the primary key of `run_cells`: for the order of price,
/// which goes through listings.
fn lightest_cell(s: &mut Draft, workload: &Workload) -> String {
    let context = s.bind(Bind::Integer(workload.context_tokens));
    let users = s.bind(Bind::Integer(workload.concurrency));
    format!(
        "CROSS JOIN LATERAL (
            SELECT c.context_tokens, c.concurrency, c.total_tokens_per_second, c.cold_ttft_ms
            FROM run_cells c
            WHERE c.run_id = l.run_id AND c.context_tokens >= {context} AND c.concurrency >= {users} AND c.status = 'valid'
              AND c.total_tokens_per_second BETWEEN 0.000001::double precision AND 9000000000::double precision
            ORDER BY c.context_tokens, c.concurrency LIMIT 1) cell"
    )
}
