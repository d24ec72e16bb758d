//! Pages of runs: the list and one run, with the figures and words of the published page.

mod view;

use actix_web::{Responder, get};
use askama::Template;

use super::{model::RunView, service};
use crate::{
    base::{Result, id::RunId},
    ctx::Ctx,
    web::{
        Path, Query, cursor,
        html::{self, Layout},
    },
};
use view::{CheckRow, MatrixRow, MeasurementRow, PrefillLine, Reading, RunLine, Spec};

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    layout: Layout,
    rows: Vec<RunLine>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    layout: Layout,
    status_class: &'static str,
    status_word: &'static str,
    verdict_word: &'static str,
    checks: Vec<CheckRow>,
    readings: Vec<Reading>,
    specs: Vec<Spec>,
    prefill: Vec<PrefillLine>,
    levels: Vec<u32>,
    matrix: Vec<MatrixRow>,
    all: Vec<MeasurementRow>,
    run: RunView,
}

/// The list of runs.
#[get("/en/runs")]
pub async fn runs(ctx: Ctx, query: Query<service::RunListQuery>) -> Result<impl Responder> {
    let after = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let (rows, next) = service::list(&ctx, &query, after).await?;
    let next = next.map(|place| cursor::seal(&ctx, query.binding(), &place)).transpose()?;
    html::page(&RunsPage { layout: Layout::new(&ctx, "runs", "Matrix runs"), rows: rows.iter().map(RunLine::of).collect(), next })
}

/// One run.
#[get("/en/runs/{id}")]
pub async fn run(ctx: Ctx, id: Path<RunId>) -> Result<impl Responder> {
    let run = service::fetch(&ctx, id.into_inner()).await?;
    let (status_class, status_word) = view::status_words(run.status);
    html::page(&RunPage {
        layout: Layout::new(&ctx, "runs", run.title.clone()),
        status_class,
        status_word,
        verdict_word: view::verdict_word(run.status),
        checks: run.checks.iter().map(CheckRow::of).collect(),
        readings: view::readings(&run),
        specs: view::specs(&run),
        prefill: run.prefill.iter().map(PrefillLine::of).collect(),
        levels: view::levels(&run),
        matrix: view::matrix(&run),
        all: view::measurements(&run),
        run,
    })
}
