//! All SQL of the benchmarks' tables.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{
    copies::{self, Newcomer},
    matrix::comparison_cell_sql,
    model::{Challenge, RelatedCell, RelatedRun, Run, RunCell, RunRow, Standing, ToolUpload},
    verdict::Verdict,
};
use crate::{
    base::{
        Result,
        id::{AccountId, ChallengeId, MachineId, RunId},
    },
    db::{
        Bind, Conn, Draft, KeptDsl, Shapes, Statement, Tx,
        schema::{accounts, challenges, run_cells, run_documents, run_marks, run_standings, runs, tool_uploads},
    },
};

pub async fn challenge_insert(tx: &mut Tx<'_>, challenge: &Challenge) -> Result<()> {
    diesel::insert_into(challenges::table).values(challenge).execute(&mut **tx).await?;
    Ok(())
}

pub async fn challenge_fetch(conn: &mut Conn, id: ChallengeId) -> Result<Option<Challenge>> {
    Ok(challenges::table.find(id.uuid()).select(Challenge::as_select()).first(conn).await.optional()?)
}

/// Marks the challenge as answered; `false` when it was already.
pub async fn challenge_use(tx: &mut Tx<'_>, id: ChallengeId, now: DateTime<Utc>) -> Result<bool> {
    let changed = diesel::update(challenges::table.find(id.uuid()).filter(challenges::used_at.is_null()))
        .set(challenges::used_at.eq(now))
        .execute(&mut **tx)
        .await?;
    Ok(changed == 1)
}

/// Challenges issued for the machine since `since`.
pub async fn challenge_count_since(conn: &mut Conn, machine: MachineId, since: DateTime<Utc>) -> Result<i64> {
    Ok(challenges::table
        .filter(challenges::machine_id.eq(machine.uuid()))
        .filter(challenges::issued_at.gt(since))
        .count()
        .get_result(conn)
        .await?)
}

/// The bytes of a run.
pub struct NewDocument<'a> {
    pub redacted_gzip: &'a [u8],
    pub original_gzip: &'a [u8],
    pub original_sha256: &'a str,
}

/// Stores a run with its bytes, cells and marks; `false` when the same upload is there already.
pub async fn run_insert(
    tx: &mut Tx<'_>,
    run: &Run,
    document: &NewDocument<'_>,
    cells: &[RunCell],
    marks: &[(&'static str, String)],
) -> Result<bool> {
    let inserted = diesel::insert_into(runs::table).values(run).on_conflict(runs::upload_key).do_nothing().execute(&mut **tx).await?;
    if inserted == 0 {
        return Ok(false);
    }
    diesel::insert_into(run_documents::table)
        .values((
            run_documents::run_id.eq(run.id.uuid()),
            run_documents::redacted_gzip.eq(document.redacted_gzip),
            run_documents::original_gzip.eq(document.original_gzip),
            run_documents::original_sha256.eq(document.original_sha256),
        ))
        .execute(&mut **tx)
        .await?;
    // Nine columns a row and 65,535 parameters a statement.
    for chunk in cells.chunks(5_000) {
        diesel::insert_into(run_cells::table).values(chunk).execute(&mut **tx).await?;
    }
    let rows: Vec<_> = marks
        .iter()
        .map(|(kind, value)| (run_marks::run_id.eq(run.id.uuid()), run_marks::kind.eq(*kind), run_marks::value.eq(value)))
        .collect();
    for chunk in rows.chunks(10_000) {
        diesel::insert_into(run_marks::table).values(chunk.to_vec()).on_conflict_do_nothing().execute(&mut **tx).await?;
    }
    Ok(true)
}

pub async fn run_fetch(conn: &mut Conn, id: RunId) -> Result<Option<Run>> {
    Ok(runs::table.find(id.uuid()).select(Run::as_select()).first(conn).await.optional()?)
}

/// A run with its uploader's handle and what became of it: all that is shown of the run itself, in one statement.
pub async fn run_shown(mut conn: &Conn, id: RunId) -> Result<Option<(Run, String, Option<Standing>)>> {
    let row = runs::table
        .inner_join(accounts::table.on(accounts::id.eq(runs::account_id)))
        .left_join(run_standings::table)
        .filter(runs::id.eq(id.uuid()))
        .select((Run::as_select(), accounts::handle, Option::<Standing>::as_select()));
    Ok(row.first(&mut conn).await.optional()?)
}

pub async fn run_id_by_upload_key(conn: &mut Conn, key: &str) -> Result<Option<RunId>> {
    Ok(runs::table.filter(runs::upload_key.eq(key)).select(runs::id).first(conn).await.optional()?)
}

/// Takes an id of the benchmark tool for a run that this transaction writes or that is there already; `false` when it is taken. Waits for a
/// transaction that is about to take it.
pub async fn tool_upload_insert(tx: &mut Tx<'_>, account: AccountId, tool: &ToolUpload, upload_key: &str) -> Result<bool> {
    let inserted = diesel::insert_into(tool_uploads::table)
        .values((
            tool_uploads::tool_id.eq(&tool.id),
            tool_uploads::account_id.eq(account.uuid()),
            tool_uploads::content_sha256.eq(&tool.content_sha256),
            tool_uploads::upload_key.eq(upload_key),
        ))
        .on_conflict(tool_uploads::tool_id)
        .do_nothing()
        .execute(&mut **tx)
        .await?;
    Ok(inserted == 1)
}

/// Who has taken an id of the benchmark tool, with what content, and the run it gave.
pub async fn tool_upload_fetch(conn: &mut Conn, tool_id: &str) -> Result<Option<(AccountId, String, RunId, String)>> {
    let query = tool_uploads::table.inner_join(runs::table.on(runs::upload_key.eq(tool_uploads::upload_key)));
    let columns = (tool_uploads::account_id, tool_uploads::content_sha256, runs::id, runs::status);
    Ok(query.filter(tool_uploads::tool_id.eq(tool_id)).select(columns).first(conn).await.optional()?)
}

/// The first run with this `run_id`, by whatever way it came in: its account, and its status.
pub async fn run_first_of_tool(conn: &mut Conn, run_id: &str) -> Result<Option<(AccountId, RunId, String)>> {
    let marked = run_marks::table.inner_join(runs::table.on(runs::id.eq(run_marks::run_id)));
    let same = marked.filter(run_marks::kind.eq("tool_run")).filter(run_marks::value.eq(run_id));
    Ok(same.order(runs::id).select((runs::account_id, runs::id, runs::status)).first(conn).await.optional()?)
}

pub async fn run_document_fetch(conn: &mut Conn, id: RunId) -> Result<Option<Vec<u8>>> {
    Ok(run_documents::table.find(id.uuid()).select(run_documents::redacted_gzip).first(conn).await.optional()?)
}

/// An operator's decision and what follows from it; `None` takes a decision back.
pub async fn run_review(
    tx: &mut Tx<'_>,
    id: RunId,
    status: &str,
    evidence_level: &str,
    decided: Option<(AccountId, &str, DateTime<Utc>)>,
) -> Result<()> {
    diesel::update(runs::table.find(id.uuid()))
        .set((
            runs::status.eq(status),
            runs::evidence_level.eq(evidence_level),
            runs::reviewed_at.eq(decided.map(|(_, _, at)| at)),
            runs::reviewed_by.eq(decided.map(|(by, ..)| by.uuid())),
            runs::review_reason.eq(decided.map(|(_, reason, _)| reason)),
        ))
        .execute(&mut **tx)
        .await?;
    // A person has decided what a re-measurement had put in doubt.
    diesel::update(run_standings::table.find(id.uuid()))
        .set(run_standings::disputed_at.eq(None::<DateTime<Utc>>))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Whose run it is.
pub async fn run_account(conn: &mut Conn, id: RunId) -> Result<Option<AccountId>> {
    Ok(runs::table.find(id.uuid()).select(runs::account_id).first(conn).await.optional()?)
}

pub async fn run_exists(conn: &mut Conn, id: RunId) -> Result<bool> {
    Ok(diesel::select(diesel::dsl::exists(runs::table.find(id.uuid()))).get_result(conn).await?)
}

/// What became of a run after its verdict.
pub async fn standing_fetch(conn: &mut Conn, id: RunId) -> Result<Standing> {
    Ok(run_standings::table.find(id.uuid()).select(Standing::as_select()).first(conn).await.optional()?.unwrap_or_default())
}

/// Held until the transaction ends by whoever looks for copies and stores what it found.
pub async fn copies_lock(tx: &mut Tx<'_>) -> Result<()> {
    diesel::sql_query("SELECT pg_advisory_xact_lock(7241002)").execute(&mut **tx).await?;
    Ok(())
}

/// Whether these bytes came in before: before `run` where one is named.
pub async fn original_seen(conn: &mut Conn, original_sha256: &str, run: Option<RunId>) -> Result<bool> {
    let earlier = run.unwrap_or(RunId::from_uuid(uuid::Uuid::max()));
    let query = run_documents::table.filter(run_documents::original_sha256.eq(original_sha256)).filter(run_documents::run_id.lt(earlier));
    Ok(diesel::select(diesel::dsl::exists(query)).get_result(conn).await?)
}

/// Whether a mark of this kind and value is on a run before this one.
pub async fn mark_seen(conn: &mut Conn, kind: &str, value: &str, run: RunId) -> Result<bool> {
    let query = run_marks::table.filter(run_marks::kind.eq(kind)).filter(run_marks::value.eq(value)).filter(run_marks::run_id.lt(run));
    Ok(diesel::select(diesel::dsl::exists(query)).get_result(conn).await?)
}

#[derive(QueryableByName)]
struct FoundRow {
    #[diesel(sql_type = sql_types::Bool)]
    found: bool,
}

/// Whether an earlier run of another account or another machine stands on the same document. A published one is redacted, and its redaction
/// is itself; so a copy of it is found as well as one of the original.
pub async fn run_of_document(conn: &mut Conn, document_sha256: &str, newcomer: &Newcomer) -> Result<bool> {
    let earlier = runs::table.filter(runs::document_sha256.eq(document_sha256)).filter(runs::id.lt(newcomer.run));
    let others = earlier.filter(runs::account_id.ne(newcomer.account).or(runs::machine_id.is_distinct_from(newcomer.machine)));
    Ok(diesel::select(diesel::dsl::exists(others)).get_result(conn).await?)
}

/// Whether an earlier run of another account or another machine shares at least half of the cells of the smaller of the two (evidence.md 0).
/// By the marks' index.
pub async fn run_shares_half(conn: &mut Conn, kind: &str, prints: &[String], newcomer: &Newcomer) -> Result<bool> {
    let count = i64::try_from(prints.len()).unwrap_or(i64::MAX);
    let row: FoundRow = diesel::sql_query(
        "SELECT EXISTS (
             SELECT FROM (SELECT run_id, count(*) AS shared FROM run_marks
                          WHERE kind = $6 AND value = ANY($1) AND run_id < $5 GROUP BY run_id) m
             JOIN runs r ON r.id = m.run_id
             WHERE (r.account_id <> $3 OR r.machine_id IS DISTINCT FROM $4)
               AND m.shared * 2 >= least($2, (SELECT count(*) FROM run_marks o WHERE o.run_id = m.run_id AND o.kind = $6))
         ) AS found",
    )
    .bind::<sql_types::Array<sql_types::Text>, _>(prints)
    .bind::<sql_types::BigInt, _>(count)
    .bind::<sql_types::Uuid, _>(newcomer.account)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(newcomer.machine)
    .bind::<sql_types::Uuid, _>(newcomer.run)
    .bind::<sql_types::Text, _>(kind)
    .get_result(conn)
    .await?;
    Ok(row.found)
}

/// A cell that may be nearly another's: [`super::copies`].
pub struct CloseCell {
    pub context_tokens: i32,
    pub concurrency: i32,
    pub ttft_ms: f64,
    pub prints: [String; 2],
}

/// The same for cells that are nearly another's.
pub async fn run_shares_half_closely(conn: &mut Conn, cells: &[CloseCell], newcomer: &Newcomer) -> Result<bool> {
    let both = || cells.iter().flat_map(|cell| cell.prints.iter().map(move |print| (cell, print)));
    let row: FoundRow = diesel::sql_query(
        "SELECT EXISTS (
             SELECT FROM (
                 SELECT m.run_id, count(DISTINCT (c.context_tokens, c.concurrency)) AS shared
                 FROM unnest($1::text[], $2::integer[], $3::integer[], $4::double precision[]) n (print, context, concurrency, ttft)
                 JOIN run_marks m ON m.kind = 'close_cell' AND m.value = n.print AND m.run_id < $7
                 JOIN run_cells c ON c.run_id = m.run_id AND c.context_tokens = n.context AND c.concurrency = n.concurrency
                 WHERE abs(c.ttft_ms - n.ttft) <= $8 * c.ttft_ms
                 GROUP BY m.run_id) s
             JOIN runs r ON r.id = s.run_id
             WHERE (r.account_id <> $5 OR r.machine_id IS DISTINCT FROM $6) AND s.shared >= $9
               AND s.shared * 2 >= least($10, (SELECT count(*) / 2 FROM run_marks o WHERE o.run_id = s.run_id AND o.kind = 'close_cell'))
         ) AS found",
    )
    .bind::<sql_types::Array<sql_types::Text>, _>(both().map(|(_, print)| print.as_str()).collect::<Vec<_>>())
    .bind::<sql_types::Array<sql_types::Integer>, _>(both().map(|(cell, _)| cell.context_tokens).collect::<Vec<_>>())
    .bind::<sql_types::Array<sql_types::Integer>, _>(both().map(|(cell, _)| cell.concurrency).collect::<Vec<_>>())
    .bind::<sql_types::Array<sql_types::Double>, _>(both().map(|(cell, _)| cell.ttft_ms).collect::<Vec<_>>())
    .bind::<sql_types::Uuid, _>(newcomer.account)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(newcomer.machine)
    .bind::<sql_types::Uuid, _>(newcomer.run)
    .bind::<sql_types::Double, _>(copies::CLOSE_TTFT_SHARE)
    .bind::<sql_types::BigInt, _>(i64::try_from(copies::CLOSE_CELLS_MIN).unwrap_or(i64::MAX))
    .bind::<sql_types::BigInt, _>(i64::try_from(cells.len()).unwrap_or(i64::MAX))
    .get_result(conn)
    .await?;
    Ok(row.found)
}

/// Whether one of these marks is on an earlier run of another account or another machine.
pub async fn mark_seen_elsewhere(conn: &mut Conn, kind: &str, values: &[String], newcomer: &Newcomer) -> Result<bool> {
    let row: FoundRow = diesel::sql_query(
        "SELECT EXISTS (
             SELECT FROM run_marks m JOIN runs r ON r.id = m.run_id
             WHERE m.kind = $1 AND m.value = ANY($2) AND m.run_id < $5 AND (r.account_id <> $3 OR r.machine_id IS DISTINCT FROM $4)
         ) AS found",
    )
    .bind::<sql_types::Text, _>(kind)
    .bind::<sql_types::Array<sql_types::Text>, _>(values)
    .bind::<sql_types::Uuid, _>(newcomer.account)
    .bind::<sql_types::Nullable<sql_types::Uuid>, _>(newcomer.machine)
    .bind::<sql_types::Uuid, _>(newcomer.run)
    .get_result(conn)
    .await?;
    Ok(row.found)
}

/// How a list of runs is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunSort {
    #[default]
    Newest,
    DecodeSingle,
    DecodePeak,
    PrefillPeak,
}

/// Which public runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub model: Option<String>,
    pub publisher: Option<String>,
    pub hardware: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine: Option<String>,
    pub quantization: Option<String>,
    pub by: Option<AccountId>,
    pub status: Option<Verdict>,
    pub sort: RunSort,
}

/// The place after which a page begins: the sort's value (seconds for `newest`) and the id.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct RunPlace {
    pub created_at: DateTime<Utc>,
    pub value: Option<f64>,
    pub id: RunId,
}

impl RunSort {
    /// The column of the order, for the orders by a figure.
    const fn figure(self) -> Option<&'static str> {
        match self {
            Self::Newest => None,
            Self::DecodeSingle => Some("r.decode_single_tokens_per_second"),
            Self::DecodePeak => Some("r.decode_peak_tokens_per_second"),
            Self::PrefillPeak => Some("r.prefill_peak_tokens_per_second"),
        }
    }
}

type Words = sql_types::Nullable<sql_types::Text>;
type Figure = sql_types::Nullable<sql_types::Double>;
type RunRowSql = (
    sql_types::Uuid,
    sql_types::Text,
    sql_types::Text,
    sql_types::Text,
    Words,
    Words,
    Words,
    Words,
    sql_types::Nullable<sql_types::Integer>,
    Words,
    sql_types::Text,
    sql_types::Text,
    Figure,
    Figure,
    Figure,
    sql_types::Timestamptz,
    sql_types::Timestamptz,
);

/// Public runs in the order asked for, from after `after`. Each order, and those narrowed to a model or a hardware model, is one of an index.
pub async fn run_list(conn: &mut Conn, shapes: &Shapes, filter: &RunFilter, after: Option<&RunPlace>, limit: i64) -> Result<Vec<RunRow>> {
    let mut s = Draft::default();
    s.and("r.visibility = 'public'");
    let texts = [
        // As the indexes have it.
        ("coalesce(r.model_slug, r.model_name)", &filter.model),
        ("r.publisher", &filter.publisher),
        ("r.hardware_slug", &filter.hardware),
        ("r.engine_name", &filter.engine),
        ("r.quantization", &filter.quantization),
    ];
    for (column, value) in texts {
        if let Some(value) = value {
            let value = s.bind(Bind::Text(value.clone()));
            s.and(format!("{column} = {value}"));
        }
    }
    if let Some(count) = filter.gpu_count {
        let count = s.bind(Bind::Integer(count));
        s.and(format!("r.gpu_count = {count}"));
    }
    if let Some(by) = filter.by {
        let by = s.bind(Bind::Id(by.uuid()));
        s.and(format!("r.account_id = {by}"));
    }
    if let Some(status) = filter.status {
        // In the text: what is not verified is rare, and has an index of its own.
        s.and(format!("r.status = '{}'", status.as_str()));
        s.conditions.extend((status != Verdict::Verified).then(|| "r.status <> 'verified'".to_owned()));
    }
    let column = filter.sort.figure().unwrap_or("r.created_at");
    if filter.sort.figure().is_some() {
        // Runs without the figure have no place in a list sorted by it.
        s.and(format!("{column} IS NOT NULL"));
    }
    if let Some(place) = after {
        let value = match filter.sort {
            RunSort::Newest => s.bind(Bind::Instant(place.created_at)),
            _ => s.bind(Bind::Double(place.value.unwrap_or(f64::INFINITY))),
        };
        let id = s.bind(Bind::Id(place.id.uuid()));
        s.and(format!("({column}, r.id) < ({value}, {id})"));
    }
    let text = format!(
        "SELECT r.id, a.handle, r.status, r.evidence_level, r.model_slug, r.publisher, r.quantization, r.hardware_slug, r.gpu_count,
                r.engine_name, r.title, r.summary, r.decode_single_tokens_per_second, r.decode_peak_tokens_per_second,
                r.prefill_peak_tokens_per_second, r.created_at, r.expires_at
         FROM (SELECT * FROM runs r WHERE {conditions} ORDER BY {column} DESC, r.id DESC LIMIT {limit}) r
         JOIN accounts a ON a.id = r.account_id ORDER BY {column} DESC, r.id DESC",
        conditions = s.conditions()
    );
    Ok(Statement::<RunRowSql>::of_shape(shapes, text, s.binds).load(conn).await?)
}

#[derive(QueryableByName)]
struct RelatedRow {
    #[diesel(sql_type = sql_types::Uuid)]
    id: RunId,
    #[diesel(sql_type = sql_types::Bool)]
    is_of_model: bool,
    #[diesel(sql_type = sql_types::Text)]
    model: String,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Text>)]
    quantization: Option<String>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Text>)]
    hardware_slug: Option<String>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Integer>)]
    gpu_count: Option<i32>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Text>)]
    engine_name: Option<String>,
    #[diesel(sql_type = sql_types::Text)]
    evidence_level: String,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Double>)]
    decode_single_tokens_per_second: Option<f64>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Double>)]
    prefill_peak_tokens_per_second: Option<f64>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Integer>)]
    cell_context_tokens: Option<i32>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Integer>)]
    cell_concurrency: Option<i32>,
    #[diesel(sql_type = sql_types::Nullable<sql_types::Double>)]
    cell_tokens_per_second: Option<f64>,
}

impl From<RelatedRow> for RelatedRun {
    fn from(row: RelatedRow) -> Self {
        Self {
            id: row.id,
            is_of_model: row.is_of_model,
            model: row.model,
            quantization: row.quantization,
            hardware_slug: row.hardware_slug,
            gpu_count: row.gpu_count,
            engine_name: row.engine_name,
            evidence_level: row.evidence_level,
            decode_single_tokens_per_second: row.decode_single_tokens_per_second,
            prefill_peak_tokens_per_second: row.prefill_peak_tokens_per_second,
            cell: match (row.cell_context_tokens, row.cell_concurrency, row.cell_tokens_per_second) {
                (Some(context), Some(concurrency), Some(total_tokens_per_second)) => Some(RelatedCell {
                    context_tokens: u64::try_from(context).unwrap_or(0),
                    concurrency: u32::try_from(concurrency).unwrap_or(0),
                    total_tokens_per_second,
                }),
                _ => None,
            },
        }
    }
}

/// The newest verified public runs of the same model and quantization as this one, then those of the same hardware with another; `limit` of
/// each, by the indexes of model and hardware. Each with its valid cell nearest to this run's `comparison_cell`.
pub async fn run_list_related(mut conn: &Conn, id: RunId, limit: i64) -> Result<Vec<RelatedRun>> {
    let text = format!(
        "WITH subject AS MATERIALIZED (
             SELECT r.id, r.model_slug, r.quantization, r.hardware_slug, coalesce(c.context_tokens, 0) AS context_tokens,
                    coalesce(c.concurrency, 1) AS concurrency
             FROM runs r LEFT JOIN LATERAL ({cell}) c ON true WHERE r.id = $1)
         SELECT r.id, found.is_of_model, coalesce(r.model_slug, r.model_name) AS model, r.quantization, r.hardware_slug, r.gpu_count,
                r.engine_name, r.evidence_level, r.decode_single_tokens_per_second, r.prefill_peak_tokens_per_second,
                c.context_tokens AS cell_context_tokens, c.concurrency AS cell_concurrency,
                c.total_tokens_per_second AS cell_tokens_per_second
         FROM subject s CROSS JOIN LATERAL (
             (SELECT id, true AS is_of_model FROM runs
              WHERE coalesce(model_slug, model_name) = s.model_slug AND quantization IS NOT DISTINCT FROM s.quantization AND id <> s.id
                AND visibility = 'public' AND status = 'verified'
              ORDER BY created_at DESC, id DESC LIMIT {limit})
             UNION ALL
             (SELECT id, false FROM runs
              WHERE hardware_slug = s.hardware_slug AND (model_slug, quantization) IS DISTINCT FROM (s.model_slug, s.quantization) AND id <> s.id
                AND visibility = 'public' AND status = 'verified'
              ORDER BY created_at DESC, id DESC LIMIT {limit})) found
         JOIN runs r ON r.id = found.id
         LEFT JOIN LATERAL (
             SELECT context_tokens, concurrency, total_tokens_per_second FROM run_cells
             WHERE run_id = r.id AND status = 'valid'
             ORDER BY abs(ln((1024 + context_tokens) / (1024.0 + s.context_tokens))) + abs(ln(concurrency / s.concurrency::numeric)),
                      context_tokens, concurrency
             LIMIT 1) c ON true
         ORDER BY found.is_of_model DESC, r.created_at DESC, r.id DESC",
        cell = comparison_cell_sql()
    );
    let rows: Vec<RelatedRow> = diesel::sql_query(text).bind::<sql_types::Uuid, _>(id).kept().load(&mut conn).await?;
    Ok(rows.into_iter().map(RelatedRun::from).collect())
}
