//! Pages of runs: the list and one run, with the figures and words of the published page.

mod marks;
mod view;

use actix_web::{Responder, get};
use askama::Template;

pub use marks::{LevelMark, Reading, Rung, StatusMark, ladder, readings};

use super::{model::RunView, service};
use crate::{
    base::{Result, id::RunId},
    ctx::Ctx,
    web::{
        Path, Query, cursor,
        html::{self, Layout},
    },
};
use view::{CheckRow, CommandLine, MatrixRow, MeasurementRow, PrefillLine, RunLine, Spec};

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    layout: Layout,
    rows: Vec<RunLine>,
    /// The address without the cursor.
    first: String,
    is_first: bool,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage<'a> {
    layout: Layout,
    status: StatusMark,
    ladder: Vec<Rung>,
    verdict_word: &'static str,
    checks: Vec<CheckRow>,
    readings: Vec<Reading>,
    specs: Vec<Spec>,
    command: Vec<CommandLine<'a>>,
    prefill: Vec<PrefillLine>,
    levels: Vec<u32>,
    matrix: Vec<MatrixRow>,
    shades: Vec<(u8, String)>,
    kv_limit: Option<String>,
    all: Vec<Vec<MeasurementRow>>,
    run: &'a RunView,
}

/// The list of runs.
#[get("/en/runs")]
pub async fn runs(ctx: Ctx, query: Query<service::RunListQuery>) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (rows, next) = service::list(&ctx, &query, after).await?;
    let next = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    html::page(&RunsPage {
        layout: Layout::new(&ctx, "runs", "Matrix runs"),
        rows: rows.iter().map(RunLine::of).collect(),
        first: query.address(None),
        is_first: query.cursor.is_none(),
        next: next.map(|cursor| query.address(Some(&cursor))),
    })
}

/// One run.
#[get("/en/runs/{id}")]
pub async fn run(ctx: Ctx, id: Path<RunId>) -> Result<impl Responder> {
    let run = service::fetch(&ctx, id.into_inner()).await?;
    html::page(&RunPage {
        layout: Layout::new(&ctx, "runs", run.title.clone()),
        status: StatusMark::of(run.status, run.stale_at.is_some()),
        ladder: ladder(&run.evidence_level),
        verdict_word: view::verdict_word(run.status),
        checks: run.checks.iter().map(CheckRow::of).collect(),
        readings: readings(&run),
        specs: view::specs(&run),
        command: view::command(run.launch_command.as_deref().unwrap_or_default()),
        prefill: view::prefill(&run),
        levels: view::levels(&run),
        matrix: view::matrix(&run),
        shades: view::shades(&run),
        kv_limit: view::kv_limit(&run),
        all: view::measurements(&run),
        run: &run,
    })
}
