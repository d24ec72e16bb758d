//! Pages of runs: the list, and the parts of one run's page, with the figures and words of the published page. The page of one run stands in
//! `market`, which knows the machines that are for rent with it.

mod answer;
mod curves;
mod history;
mod list;
mod marks;
mod matrix;
mod methods;
mod others;
mod remeasured;
mod run;
mod tokens;
mod view;

use actix_web::{HttpResponse, Responder, get, http::StatusCode, post};

pub use history::HistorySection;
pub use marks::{Ladder, LevelMark, Readings, StatusMark};
pub use matrix::MatrixTable;
pub use others::{OtherRuns, cell_name};
pub use run::RunBody;

use super::service::{self, AnswerRequest, RunListQuery};
use crate::{
    base::{Code, Error, Result, id::RunId},
    ctx::Ctx,
    identity::{Posted, SignedIn},
    web::{
        Path, Query, cursor,
        html::{self, LANGUAGES, Layout, PageId, Reader, form::Form},
    },
};
use answer::AnswerPage;
use list::{Found, RunsPage};
use methods::BenchmarksPage;
use tokens::UploadTokensPage;

/// What is measured, and every check that judges it.
#[get("/{lang}/benchmarks")]
pub async fn benchmarks(ctx: Ctx, reader: Reader) -> Result<impl Responder> {
    let t = reader.t;
    html::page(&BenchmarksPage::new(Layout::new(&ctx, &reader, "benchmarks", t.text("menu-benchmarks"), t.text("benchmarks-lede")), t))
}

/// Where the benchmark tool sends people who have no upload token.
#[get("/bench/token")]
pub async fn upload_token_way() -> HttpResponse {
    html::redirect(&format!("{}/upload-tokens", LANGUAGES[0].prefix))
}

/// How to make an upload token for the benchmark tool.
#[get("/{lang}/upload-tokens")]
pub async fn upload_tokens(ctx: Ctx, reader: Reader) -> Result<impl Responder> {
    html::page(&UploadTokensPage::new(&ctx, &reader))
}

/// The list of runs.
#[get("/{lang}/runs")]
pub async fn runs(ctx: Ctx, reader: Reader, given: Query<Vec<(String, String)>>) -> Result<impl Responder> {
    let mut form = Form::of(reader.path_of("runs"), &given);
    let found = match form.query::<RunListQuery>(|_| Ok(())) {
        Ok(query) => list(&ctx, query).await,
        Err(error) => Err(error),
    };
    let found = match found {
        Ok(found) => Some(found),
        Err(error) => {
            form.refuse(as_fault(error))?;
            None
        }
    };
    let layout = Layout::new(&ctx, &reader, "runs", reader.t.text("menu-runs"), reader.t.text("runs-lede"));
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    html::page_with(status, &RunsPage::new(layout, &reader, &form, found))
}

async fn list(ctx: &Ctx, query: Query<RunListQuery>) -> Result<Found> {
    let after = cursor::open_opt(ctx, query.binding(), query.cursor.as_deref())?;
    let (rows, next) = service::list(ctx, &query, after).await?;
    let next = next.map(|place| cursor::seal(ctx, query.binding(), &place)).transpose()?;
    Ok(Found { rows, next, sort: query.sort.unwrap_or_default() })
}

/// An uploader that does not exist is a fault of the field, not of the address.
fn as_fault(error: Error) -> Error {
    if error.code() == Code::NotFound {
        return Error::invalid("?by", "unknown_account", error.detail().to_owned());
    }
    error
}

/// The form with which an uploader answers an operator; for a run of their own account, or of an organization whose runs they may upload.
#[get("/{lang}/runs/{id}/answer")]
pub async fn answer_page(known: SignedIn, ctx: Ctx, reader: Reader, path: Path<PageId<RunId>>) -> Result<impl Responder> {
    let owner = service::owner_of(&ctx, &known.caller, path.id).await?;
    let (run, may_answer) = service::answerable(&ctx, &owner, path.id).await?;
    html::page(&AnswerPage::new(&ctx, &reader, &Form::of("", &[]), &run, may_answer))
}

/// The uploader's one answer.
#[post("/{lang}/runs/{id}/answer")]
pub async fn answer_send(known: SignedIn, ctx: Ctx, reader: Reader, path: Path<PageId<RunId>>, posted: Posted) -> Result<HttpResponse> {
    let owner = service::owner_of(&ctx, &known.caller, path.id).await?;
    let request = AnswerRequest { text: posted.value("text").to_owned() };
    match service::answer(&ctx, &owner, path.id, &request).await {
        Ok(_) => Ok(html::redirect_after(&format!("{}#history-h", reader.path_of(&format!("runs/{}", path.id))))),
        Err(error) => {
            let mut form = Form::of("", &posted.pairs);
            form.refuse(error)?;
            let (run, may_answer) = service::answerable(&ctx, &owner, path.id).await?;
            html::page_with(StatusCode::UNPROCESSABLE_ENTITY, &AnswerPage::new(&ctx, &reader, &form, &run, may_answer))
        }
    }
}
