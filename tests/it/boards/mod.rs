//! Leaderboards, reports, publishers and methods: runs made by SQL and counted as an upload counts them.

mod derived;
mod dollars;
mod ranking;
mod reports;
mod round_trip;
mod scale;
mod standing;

use diesel::{sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::id::{MachineId, RunId};
use rigmark::benchmarks::boards::run_changed;
use serde_json::Value;

use crate::support::TestApp;
use crate::support::hosts::{self, Cell, Person, RunRow, cell, machine, person};

/// A run of a machine, counted.
pub async fn run(app: &TestApp, machine: MachineId, row: &RunRow) -> RunId {
    let run = hosts::run(app, machine, row).await;
    count(app, run).await;
    run
}

/// What every change of a run's row is followed by.
pub async fn count(app: &TestApp, run: RunId) {
    app.ctx().db.tx("test", async |tx| run_changed(tx, run).await).await.unwrap();
}

/// A run with a single cell, without context and alone.
pub fn single(total_tokens_per_second: f64) -> RunRow {
    with(vec![cell(0, 1, total_tokens_per_second)])
}

pub fn with(cells: Vec<Cell>) -> RunRow {
    RunRow { cells, ..RunRow::default() }
}

/// Somebody with a machine.
pub async fn host(app: &TestApp, handle: &str) -> (Person, MachineId) {
    let host = person(app, handle).await;
    let machine = machine(&host, None).await;
    (host, machine)
}

pub async fn board(app: &TestApp, query: &str) -> Vec<Value> {
    app.http.get(&format!("/api/v1/leaderboard?{query}")).expect(200).await["data"].as_array().unwrap().clone()
}

/// A statement about one run, and the run counted anew.
pub async fn change(app: &TestApp, run: RunId, set: &str) {
    sql_query(format!("UPDATE runs SET {set} WHERE id = $1")).bind::<sql::Uuid, _>(run).execute(&mut app.connect().await).await.unwrap();
    count(app, run).await;
}
