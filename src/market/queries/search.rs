//! The search: one statement, written from the conditions that are asked for, so that the planner sees each search as it is.

use diesel::{pg::Pg, prelude::*, query_builder::BoxedSqlQuery, query_builder::SqlQuery, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::{
    super::{
        model::ListingDetails,
        price::per_million_sql,
        search::{Position, Search, Sort},
        workload::{MeasuredCell, Workload},
    },
    details::{COLUMNS, DetailsRow, JOINS, RUN_COLUMNS},
};
use crate::{base::Result, db::Conn};

/// A listing of a page, the cell that answers the workload, and its place in the order.
pub struct Found {
    pub details: ListingDetails,
    pub cell: Option<MeasuredCell>,
    pub position: Position,
}

#[derive(QueryableByName)]
struct FoundRow {
    #[diesel(embed)]
    details: DetailsRow,
    #[diesel(embed)]
    cell: CellColumns,
    #[diesel(sql_type = sql::Nullable<sql::BigInt>)]
    sort_micros: Option<i64>,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    sort_number: Option<f64>,
}

#[derive(QueryableByName)]
struct CellColumns {
    #[diesel(sql_type = sql::Nullable<sql::Integer>)]
    cell_context_tokens: Option<i32>,
    #[diesel(sql_type = sql::Nullable<sql::Integer>)]
    cell_concurrency: Option<i32>,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    cell_total: Option<f64>,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    cell_ttft_ms: Option<f64>,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    cell_cold_ttft_ms: Option<f64>,
}

impl CellColumns {
    fn cell(self) -> Option<MeasuredCell> {
        Some(MeasuredCell {
            context_tokens: self.cell_context_tokens?,
            concurrency: self.cell_concurrency?,
            total_tokens_per_second: self.cell_total?,
            ttft_ms: self.cell_ttft_ms,
            cold_ttft_ms: self.cell_cold_ttft_ms,
        })
    }
}

enum Bind {
    Text(String),
    Integer(i32),
    BigInt(i64),
    Double(f64),
    Instant(chrono::DateTime<chrono::Utc>),
    Id(uuid::Uuid),
}

/// SQL text under construction, with its parameters.
#[derive(Default)]
struct Statement {
    conditions: Vec<String>,
    binds: Vec<Bind>,
}

impl Statement {
    fn bind(&mut self, value: Bind) -> String {
        self.binds.push(value);
        format!("${}", self.binds.len())
    }
    fn and(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }
    fn query(self, text: String) -> BoxedSqlQuery<'static, Pg, SqlQuery> {
        let start = diesel::sql_query(text).into_boxed::<Pg>();
        self.binds.into_iter().fold(start, |query, bind| match bind {
            Bind::Text(value) => query.bind::<sql::Text, _>(value),
            Bind::Integer(value) => query.bind::<sql::Integer, _>(value),
            Bind::BigInt(value) => query.bind::<sql::BigInt, _>(value),
            Bind::Double(value) => query.bind::<sql::Double, _>(value),
            Bind::Instant(value) => query.bind::<sql::Timestamptz, _>(value),
            Bind::Id(value) => query.bind::<sql::Uuid, _>(value),
        })
    }
}

/// How far a size asked for may lie from the nominal one: a 24 GB card reports 23.99 GiB, and 10 and 12 GB cards stay apart.
const VRAM_TOLERANCE: f64 = 0.01;

/// Published listings that fit, in the order asked for, from after `after`.
pub async fn listing_search(
    conn: &mut Conn,
    search: &Search,
    now: chrono::DateTime<chrono::Utc>,
    after: Option<&Position>,
    limit: i64,
) -> Result<Vec<Found>> {
    let (statement, text) = statement(search, now, after, limit);
    let rows: Vec<FoundRow> = statement.query(text).load(conn).await?;
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
pub async fn listing_counts(conn: &mut Conn, searches: &[Search], now: chrono::DateTime<chrono::Utc>, most: i64) -> Result<Vec<i64>> {
    let mut s = Statement::default();
    let most = s.bind(Bind::BigInt(most));
    let mut counts = Vec::new();
    for search in searches {
        s.conditions.clear();
        let from = from_where(&mut s, search, now);
        let conditions = s.conditions.join(" AND ");
        counts.push(format!("(SELECT count(*) FROM (SELECT FROM {from} WHERE {conditions} LIMIT {most}) fitting)"));
    }
    if counts.is_empty() {
        return Ok(Vec::new());
    }
    let text = format!("SELECT ARRAY[{}] AS counts", counts.join(",\n"));
    let row: CountsRow = s.query(text).get_result(conn).await?;
    Ok(row.counts)
}

#[derive(QueryableByName)]
struct CountsRow {
    #[diesel(sql_type = sql::Array<sql::BigInt>)]
    counts: Vec<i64>,
}

/// What is searched; the conditions are left in the statement.
fn from_where(s: &mut Statement, search: &Search, now: chrono::DateTime<chrono::Utc>) -> String {
    let from = match &search.workload {
        None => "listings l".to_owned(),
        Some(workload) => format!("listings l {}", workload_join(s, search, workload)),
    };
    filter(s, search, now);
    from
}

fn statement(search: &Search, now: chrono::DateTime<chrono::Utc>, after: Option<&Position>, limit: i64) -> (Statement, String) {
    let mut s = Statement::default();
    let from = from_where(&mut s, search, now);
    let (sort_micros, sort_number) = match search.sort {
        Sort::Price => ("l.price_per_hour_micros", "NULL::double precision"),
        Sort::PricePerMillionTokens => ("per_million.micros", "NULL::double precision"),
        // Negative, so that every order goes up and a page begins after (value, id).
        Sort::TokensPerSecond => ("NULL::bigint", "-cell.per_user"),
        Sort::Ttft => ("NULL::bigint", "coalesce(cell.cold_ttft_ms, 'Infinity')"),
    };
    let sort = if search.sort.is_exact() { sort_micros } else { sort_number };
    if let Some(position) = after {
        let value = if search.sort.is_exact() {
            s.bind(Bind::BigInt(position.micros.unwrap_or(i64::MAX)))
        } else {
            s.bind(Bind::Double(position.number.unwrap_or(f64::INFINITY)))
        };
        let id = s.bind(Bind::Id(position.id.uuid()));
        s.and(format!("({sort}, l.id) > ({value}, {id})"));
    }
    let cell = match search.workload {
        None => {
            "NULL::integer AS cell_context_tokens, NULL::integer AS cell_concurrency, NULL::double precision AS cell_total,
                 NULL::double precision AS cell_ttft_ms, NULL::double precision AS cell_cold_ttft_ms"
        }
        Some(_) => {
            "cell.context_tokens AS cell_context_tokens, cell.concurrency AS cell_concurrency,
                    cell.total_tokens_per_second AS cell_total, cell.ttft_ms AS cell_ttft_ms, cell.cold_ttft_ms AS cell_cold_ttft_ms"
        }
    };
    let conditions = s.conditions.join("\n  AND ");
    let limit = s.bind(Bind::BigInt(limit));
    let text = format!(
        "WITH page AS (
            SELECT l.id AS page_id, {sort_micros} AS sort_micros, {sort_number} AS sort_number, {cell}
            FROM {from}
            WHERE {conditions}
            ORDER BY {sort}, l.id LIMIT {limit})
         SELECT {COLUMNS}, {RUN_COLUMNS}, page.* FROM page JOIN listings l ON l.id = page.page_id {JOINS}
         ORDER BY page.sort_micros, page.sort_number, l.id"
    );
    (s, text)
}

fn filter(s: &mut Statement, search: &Search, now: chrono::DateTime<chrono::Utc>) {
    s.and("l.state = 'published'");
    let now = s.bind(Bind::Instant(now));
    s.and(format!("l.valid_until > {now}"));
    if !search.include_unavailable {
        s.and("NOT l.is_taken AND NOT l.is_silent");
    }
    let texts = [
        ("l.hardware_slug", search.hardware_slug.as_ref()),
        ("l.model", search.workload.as_ref().map(|workload| &workload.model)),
        ("l.quantization", search.quantization.as_ref()),
    ];
    for (column, value) in texts {
        if let Some(value) = value {
            let value = s.bind(Bind::Text(value.clone()));
            s.and(format!("{column} = {value}"));
        }
    }
    if let Some(machine) = search.machine {
        let machine = s.bind(Bind::Id(machine.uuid()));
        s.and(format!("l.machine_id = {machine}"));
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
        s.and(format!("cell.per_user >= {min}"));
    }
    if let Some(max) = search.max_ttft_ms {
        let max = s.bind(Bind::Double(max));
        s.and(format!("cell.cold_ttft_ms <= {max}"));
    }
}

/// The lightest valid cell at least as heavy as asked (`workload::lightest_at_least`), by the primary key of `run_cells`.
fn workload_join(s: &mut Statement, search: &Search, workload: &Workload) -> String {
    let context = s.bind(Bind::Integer(workload.context_tokens));
    let users = s.bind(Bind::Integer(workload.concurrency));
    let cell = format!(
        "CROSS JOIN LATERAL (
            SELECT c.context_tokens, c.concurrency, c.total_tokens_per_second, c.ttft_ms, c.cold_ttft_ms,
                   c.total_tokens_per_second / c.concurrency AS per_user
            FROM run_cells c
            WHERE c.run_id = l.run_id AND c.context_tokens >= {context} AND c.concurrency >= {users} AND c.status = 'valid'
              AND c.total_tokens_per_second BETWEEN 0.000001::double precision AND 9000000000::double precision
            ORDER BY c.context_tokens, c.concurrency LIMIT 1) cell"
    );
    if search.sort != Sort::PricePerMillionTokens {
        return cell;
    }
    format!("{cell}\n         {}", per_million_sql(&users))
}
