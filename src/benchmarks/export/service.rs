//! The export as a stream of pieces.

use bytes::Bytes;
use chrono::SecondsFormat;
use futures::{Stream, stream};

use super::{
    model::{COLUMNS, ExportRow, Position},
    parquet_file::ParquetFile,
    queries,
};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    identity::{self, Caller},
    web::inert_text,
};

/// Rows of one statement, and of one piece of the answer.
const BATCH: i64 = 2_000;

/// # Errors
/// `pro_required`.
pub async fn require(ctx: &Ctx, caller: &Caller) -> Result<()> {
    let mut conn = ctx.db.conn().await?;
    identity::service::entitlements(ctx, &mut conn, caller.account_id).await?.require_pro("The export of all cells needs Pro.")
}

/// What is still to be written.
enum Rest {
    Head,
    Rows(Option<Position>),
    Nothing,
}

/// The whole export as CSV. Texts that a spreadsheet would run are escaped.
pub fn cells_csv(ctx: Ctx) -> impl Stream<Item = Result<Bytes>> {
    stream::try_unfold((ctx, Rest::Head), async |(ctx, rest)| match rest {
        Rest::Head => Ok(Some((csv_lines([COLUMNS.map(str::to_owned)])?, (ctx, Rest::Rows(None))))),
        Rest::Rows(after) => {
            let rows = batch(&ctx, after).await?;
            let Some(last) = rows.last() else { return Ok(None) };
            let next = if is_last(&rows) { Rest::Nothing } else { Rest::Rows(Some(last.position())) };
            Ok(Some((csv_lines(rows.iter().map(csv_record))?, (ctx, next))))
        }
        Rest::Nothing => Ok(None),
    })
}

/// The connection goes back before the piece is sent: a slow reader holds none.
async fn batch(ctx: &Ctx, after: Option<Position>) -> Result<Vec<ExportRow>> {
    let mut conn = ctx.db.read().await?;
    queries::export_rows(&mut conn, after, BATCH).await
}

/// Rows of one row group.
const GROUP_ROWS: usize = 20_000;

/// The whole export as a Parquet file.
pub fn cells_parquet(ctx: Ctx) -> impl Stream<Item = Result<Bytes>> {
    let begin = (ctx, None::<ParquetFile>, Rest::Head);
    stream::try_unfold(begin, async |(ctx, file, rest)| {
        let after = match rest {
            Rest::Head => None,
            Rest::Rows(after) => after,
            Rest::Nothing => return Ok(None),
        };
        let mut file = file.map_or_else(ParquetFile::begin, Ok)?;
        let rows = group(&ctx, after).await?;
        let next = rows.last().map(ExportRow::position).filter(|_| rows.len() >= GROUP_ROWS);
        // Encoding keeps a core busy for tens of milliseconds.
        let encode = move || {
            let mut pieces = vec![if rows.is_empty() { Bytes::new() } else { file.add(&rows)? }];
            let file = match next {
                Some(_) => Some(file),
                None => {
                    pieces.push(file.finish()?);
                    None
                }
            };
            Ok::<_, Error>((Bytes::from(pieces.concat()), file))
        };
        let (piece, file) = tokio::task::spawn_blocking(encode).await.map_err(Error::internal)??;
        let rest = next.map_or(Rest::Nothing, |position| Rest::Rows(Some(position)));
        Ok(Some((piece, (ctx, file, rest))))
    })
}

/// As many rows as a group holds, or what is left.
async fn group(ctx: &Ctx, mut after: Option<Position>) -> Result<Vec<ExportRow>> {
    let mut rows = Vec::new();
    while rows.len() < GROUP_ROWS {
        let more = batch(ctx, after).await?;
        let is_last = is_last(&more);
        after = more.last().map(ExportRow::position).or(after);
        rows.extend(more);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

fn is_last(rows: &[ExportRow]) -> bool {
    i64::try_from(rows.len()).unwrap_or(BATCH) < BATCH
}

fn csv_lines(records: impl IntoIterator<Item = [String; 19]>) -> Result<Bytes> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).map_err(Error::internal)?;
    }
    writer.into_inner().map(Bytes::from).map_err(|error| Error::internal(error.to_string()))
}

fn csv_record(row: &ExportRow) -> [String; 19] {
    let words = |value: &Option<String>| value.as_deref().map(inert_text).unwrap_or_default();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    [
        row.run_id.to_string(),
        row.by.clone(),
        row.evidence_level.clone(),
        words(&row.model),
        inert_text(&row.model_name),
        words(&row.publisher),
        words(&row.quantization),
        words(&row.kv_cache_dtype),
        words(&row.hardware),
        row.gpu_count.map(|count| count.to_string()).unwrap_or_default(),
        words(&row.engine),
        row.created_at.to_rfc3339_opts(SecondsFormat::Micros, true),
        row.context_tokens.to_string(),
        row.concurrency.to_string(),
        number(row.total_tokens_per_second),
        number(row.per_request_tokens_per_second),
        number(row.ttft_ms),
        number(row.itl_ms),
        number(row.cold_ttft_ms),
    ]
}
