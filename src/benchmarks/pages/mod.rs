//! Pages of runs: the list, and the parts of one run's page, with the figures and words of the published page. The page of one run stands in
//! `market`, which knows the machines that are for rent with it.

mod curves;
mod list;
mod marks;
mod matrix;
mod methods;
mod others;
mod remeasured;
mod run;
mod view;

use actix_web::{Responder, get, http::StatusCode};

pub use marks::{Ladder, LevelMark, Readings, StatusMark};
pub use matrix::MatrixTable;
pub use others::{OtherRuns, cell_name};
pub use run::RunBody;

use super::service::{self, RunListQuery};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    web::{
        Query, cursor,
        html::{self, Layout, Reader, form::Form},
    },
};
use list::{Found, RunsPage};
use methods::BenchmarksPage;

/// What is measured, and every check that judges it.
#[get("/{lang}/benchmarks")]
pub async fn benchmarks(ctx: Ctx, reader: Reader) -> Result<impl Responder> {
    let t = reader.t;
    html::page(&BenchmarksPage::new(Layout::new(&ctx, &reader, "benchmarks", t.text("menu-benchmarks"), t.text("benchmarks-lede")), t))
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
