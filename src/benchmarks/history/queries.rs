//! All SQL of `run_events`.

use diesel::{dsl::sql, prelude::*, sql_types::Bool};
use diesel_async::RunQueryDsl;

use super::model::{NewRunEvent, RunEvent};
use crate::{
    base::{Code, Error, Result, id::RunId},
    db::{
        Conn, OnConstraint, Tx,
        schema::{accounts, run_events},
    },
};

pub async fn run_event_insert(tx: &mut Tx<'_>, event: &NewRunEvent<'_>) -> Result<()> {
    let inserted = diesel::insert_into(run_events::table).values(event).execute(&mut **tx).await;
    inserted.on_constraint("run_events_one_answer", || Error::new(Code::AlreadyAnswered, "The uploader has answered once."))?;
    Ok(())
}

/// Oldest first, after the event with this sequence.
pub async fn run_event_list(conn: &mut Conn, run: RunId, after: i64, limit: i64) -> Result<Vec<RunEvent>> {
    Ok(run_events::table
        .filter(run_events::run_id.eq(run.uuid()))
        .filter(run_events::sequence.gt(after))
        .order(run_events::sequence)
        .limit(limit)
        .select(RunEvent::as_select())
        .load(conn)
        .await?)
}

/// The newest ones with the handle of whose account it was, oldest of them first: one statement, for what is read beside a run.
pub async fn run_event_list_newest(mut conn: &Conn, run: RunId, limit: i64) -> Result<Vec<(RunEvent, Option<String>)>> {
    let newest = run_events::table
        .left_join(accounts::table.on(run_events::account_id.eq(accounts::id.nullable())))
        .filter(run_events::run_id.eq(run.uuid()))
        .order(run_events::sequence.desc())
        .limit(limit);
    let mut rows: Vec<(RunEvent, Option<String>)> =
        newest.select((RunEvent::as_select(), accounts::handle.nullable())).load(&mut conn).await?;
    rows.reverse();
    Ok(rows)
}

/// The last event that said what the run's verdict is. Judging it again with the same outcome says nothing.
pub async fn run_event_last_ruling(conn: &mut Conn, run: RunId) -> Result<Option<RunEvent>> {
    let kinds = ["verdict", "verdict_recomputed", "reviewed", "reopened", "sent_to_review"];
    Ok(run_events::table
        .filter(run_events::run_id.eq(run.uuid()))
        .filter(run_events::kind.eq_any(kinds))
        .filter(sql::<Bool>("(kind <> 'verdict_recomputed' OR details ->> 'was' IS DISTINCT FROM details ->> 'verdict')"))
        .order(run_events::sequence.desc())
        .select(RunEvent::as_select())
        .first(conn)
        .await
        .optional()?)
}

/// The uploader's answer.
pub async fn run_event_answer(conn: &mut Conn, run: RunId) -> Result<Option<RunEvent>> {
    Ok(run_events::table
        .filter(run_events::run_id.eq(run.uuid()))
        .filter(run_events::kind.eq("answered"))
        .select(RunEvent::as_select())
        .first(conn)
        .await
        .optional()?)
}
