//! SQL of recomputations.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use super::model::{Outcome, Pass, Recomputed, Stored};
use crate::{
    base::{Code, Error, Result, id::RunId},
    benchmarks::model::{Challenge, Run, RunCell},
    db::{
        Conn, Tx,
        schema::{challenges, reverify_passes, run_cells, run_documents, run_marks, runs},
    },
};

/// Whether a run was judged by other rules than these. By the index.
pub async fn run_of_other_rules(conn: &mut Conn, rules_version: &str) -> Result<bool> {
    let older = diesel::dsl::exists(runs::table.filter(runs::rules_version.lt(rules_version)));
    let newer = diesel::dsl::exists(runs::table.filter(runs::rules_version.gt(rules_version)));
    Ok(diesel::select(older.or(newer)).get_result(conn).await?)
}

/// The open pass of these rules; begins one where there is none. An open pass of other rules ends here.
pub async fn pass_begin(tx: &mut Tx<'_>, rules_version: &str, now: DateTime<Utc>) -> Result<Pass> {
    let open = reverify_passes::table.filter(reverify_passes::finished_at.is_null());
    diesel::update(open.filter(reverify_passes::rules_version.ne(rules_version)))
        .set(reverify_passes::finished_at.eq(now))
        .execute(&mut **tx)
        .await?;
    let found = open.select(Pass::as_select()).first(&mut **tx).await.optional()?;
    if let Some(pass) = found {
        return Ok(pass);
    }
    let total: i64 = runs::table.count().get_result(&mut **tx).await?;
    let row = (reverify_passes::rules_version.eq(rules_version), reverify_passes::runs_total.eq(total), reverify_passes::begun_at.eq(now));
    diesel::insert_into(reverify_passes::table).values(row).on_conflict_do_nothing().execute(&mut **tx).await?;
    Ok(open.select(Pass::as_select()).first(&mut **tx).await?)
}

/// Counts a run as done, in the transaction that did it.
///
/// # Errors
/// `invalid_state` when another process has come between.
pub async fn pass_advance(tx: &mut Tx<'_>, pass: &Pass, run: RunId, outcome: Outcome) -> Result<Pass> {
    let count = |wanted: Outcome| i64::from(outcome == wanted);
    let open = reverify_passes::table.find(pass.id).filter(reverify_passes::finished_at.is_null());
    let at_its_place = open.filter(reverify_passes::last_run_id.is_not_distinct_from(pass.last_run_id));
    let advanced = diesel::update(at_its_place)
        .set((
            reverify_passes::last_run_id.eq(run),
            reverify_passes::runs_done.eq(reverify_passes::runs_done + 1),
            reverify_passes::runs_changed.eq(reverify_passes::runs_changed + count(Outcome::Changed)),
            reverify_passes::runs_unreadable.eq(reverify_passes::runs_unreadable + count(Outcome::Unreadable)),
        ))
        .returning(Pass::as_select())
        .get_result(&mut **tx)
        .await
        .optional()?;
    advanced.ok_or_else(elsewhere)
}

/// # Errors
/// `invalid_state` when another process has come between.
pub async fn pass_finish(tx: &mut Tx<'_>, pass: &Pass, now: DateTime<Utc>) -> Result<Pass> {
    let open = reverify_passes::table.find(pass.id).filter(reverify_passes::finished_at.is_null());
    let finished = diesel::update(open)
        .set(reverify_passes::finished_at.eq(now))
        .returning(Pass::as_select())
        .get_result(&mut **tx)
        .await
        .optional()?;
    finished.ok_or_else(elsewhere)
}

fn elsewhere() -> Error {
    Error::new(Code::InvalidState, "Another process recomputes the verdicts. What it has done is kept; watch it there.")
}

type StoredRow = (Run, Option<(Vec<u8>, String)>, Option<Challenge>);

/// The next runs in the order of their ids, with their documents.
pub async fn stored_after(conn: &mut Conn, after: Option<RunId>, limit: i64) -> Result<Vec<Stored>> {
    let after = after.unwrap_or(RunId::from_uuid(uuid::Uuid::nil()));
    let rows: Vec<StoredRow> = runs::table
        .left_join(run_documents::table)
        .left_join(challenges::table)
        .filter(runs::id.gt(after))
        .order(runs::id)
        .limit(limit)
        .select((
            Run::as_select(),
            (run_documents::original_gzip, run_documents::original_sha256).nullable(),
            Option::<Challenge>::as_select(),
        ))
        .load(conn)
        .await?;
    Ok(rows.into_iter().map(|(run, document, challenge)| Stored { run, document, challenge }).collect())
}

pub async fn run_update(tx: &mut Tx<'_>, id: RunId, run: &Recomputed<'_>) -> Result<()> {
    diesel::update(runs::table.find(id.uuid()))
        .set((
            runs::status.eq(run.status),
            runs::evidence_level.eq(run.evidence_level),
            runs::title.eq(run.title),
            runs::summary.eq(run.summary),
            runs::detail.eq(&run.detail),
            runs::rules_version.eq(run.rules_version),
            runs::document_sha256.eq(run.document_sha256),
            runs::decode_single_tokens_per_second.eq(run.decode_single_tokens_per_second),
            runs::decode_peak_tokens_per_second.eq(run.decode_peak_tokens_per_second),
            runs::prefill_peak_tokens_per_second.eq(run.prefill_peak_tokens_per_second),
            runs::kv_cache_dtype.eq(&run.kv_cache_dtype),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The document that the public sees, where redaction has changed.
pub async fn document_replace(tx: &mut Tx<'_>, id: RunId, redacted_gzip: &[u8]) -> Result<()> {
    let row = run_documents::table.find(id.uuid());
    diesel::update(row).set(run_documents::redacted_gzip.eq(redacted_gzip)).execute(&mut **tx).await?;
    Ok(())
}

/// The cells of a run, where the matrix has changed.
pub async fn cells_replace(tx: &mut Tx<'_>, id: RunId, cells: &[RunCell]) -> Result<()> {
    diesel::delete(run_cells::table.filter(run_cells::run_id.eq(id.uuid()))).execute(&mut **tx).await?;
    // Nine columns a row and 65,535 parameters a statement.
    for chunk in cells.chunks(5_000) {
        diesel::insert_into(run_cells::table).values(chunk).execute(&mut **tx).await?;
    }
    Ok(())
}

/// The marks of a run, where they have changed.
pub async fn marks_replace(tx: &mut Tx<'_>, id: RunId, marks: &[(&'static str, String)]) -> Result<()> {
    let of_run = run_marks::table.filter(run_marks::run_id.eq(id.uuid()));
    let stored: Vec<(String, String)> = of_run.select((run_marks::kind, run_marks::value)).load(&mut **tx).await?;
    let stored: HashSet<(&str, &str)> = stored.iter().map(|(kind, value)| (kind.as_str(), value.as_str())).collect();
    let wanted: HashSet<(&str, &str)> = marks.iter().map(|(kind, value)| (*kind, value.as_str())).collect();
    if stored == wanted {
        return Ok(());
    }
    diesel::delete(of_run).execute(&mut **tx).await?;
    let rows: Vec<_> = wanted
        .iter()
        .map(|(kind, value)| (run_marks::run_id.eq(id.uuid()), run_marks::kind.eq(*kind), run_marks::value.eq(*value)))
        .collect();
    for chunk in rows.chunks(10_000) {
        diesel::insert_into(run_marks::table).values(chunk.to_vec()).execute(&mut **tx).await?;
    }
    Ok(())
}
