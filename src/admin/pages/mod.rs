//! The pages of operators: the review queue, one run with what there is to decide by, and the latest reconciliation.

mod queue;
mod reconciliation;
mod review;

use actix_web::{HttpResponse, Responder, get, http::StatusCode, post};

use crate::{
    base::{Code, Error, Result, id::RunId},
    benchmarks::{
        self,
        service::{ReviewQueueQuery, ReviewRequest},
    },
    billing,
    ctx::Ctx,
    identity::{Caller, OperatorReader, Posted},
    web::{
        Path, Query, cursor,
        html::{self, PageId, Reader, form::Form},
    },
};
use queue::{Found, QueuePage};
use reconciliation::ReconciliationPage;
use review::ReviewPage;

const PART: &str = "review";

/// Runs that wait.
#[get("/{lang}/review")]
pub async fn review_queue(_known: OperatorReader, ctx: Ctx, reader: Reader, given: Query<Vec<(String, String)>>) -> Result<impl Responder> {
    let mut form = Form::of(reader.path_of(PART), &given);
    let found = match form.query::<ReviewQueueQuery>(|_| Ok(())) {
        Ok(query) => waiting(&ctx, query).await,
        Err(error) => Err(error),
    };
    let found = match found {
        Ok(found) => Some(found),
        Err(error) => {
            form.refuse(error)?;
            None
        }
    };
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    html::page_with(status, &QueuePage::new(&ctx, &reader, &form, found))
}

async fn waiting(ctx: &Ctx, query: Query<ReviewQueueQuery>) -> Result<Found> {
    let after = cursor::open_opt(ctx, query.binding(), query.cursor.as_deref())?;
    let (items, next) = benchmarks::service::review_queue(ctx, &query, after).await?;
    let next = next.map(|place| cursor::seal(ctx, query.binding(), &place)).transpose()?;
    Ok(Found { items, next, now: ctx.business_now(&mut *ctx.db.conn().await?).await? })
}

/// One run.
#[get("/{lang}/review/{id}")]
pub async fn review_page(known: OperatorReader, ctx: Ctx, reader: Reader, path: Path<PageId<RunId>>) -> Result<HttpResponse> {
    show(&ctx, &reader, &known.caller, path.id, &Form::of("", &[]), StatusCode::OK).await
}

async fn show(ctx: &Ctx, reader: &Reader, operator: &Caller, id: RunId, form: &Form, status: StatusCode) -> Result<HttpResponse> {
    let review = benchmarks::service::review_show(ctx, operator, id).await?;
    let similar = benchmarks::service::similar(ctx, id).await?;
    html::page_with(status, &ReviewPage::new(ctx, reader, form, &review, &similar.data))
}

/// Decides. What another operator decided meanwhile stands beside the form.
#[post("/{lang}/review/{id}")]
pub async fn review_send(
    known: OperatorReader,
    ctx: Ctx,
    reader: Reader,
    path: Path<PageId<RunId>>,
    posted: Posted,
) -> Result<HttpResponse> {
    let error = match decide(&ctx, &known.caller, path.id, &posted).await {
        Ok(()) => return Ok(html::redirect_after(&reader.path_of(&format!("{PART}/{}", path.id)))),
        Err(error) => error,
    };
    let status = if error.code() == Code::AlreadyDecided { StatusCode::CONFLICT } else { StatusCode::UNPROCESSABLE_ENTITY };
    let mut form = Form::of("", &posted.pairs);
    form.refuse(match error.code() {
        Code::AlreadyDecided | Code::InvalidState => Error::invalid("?decision", error.code().as_str(), error.detail().to_owned()),
        _ => error,
    })?;
    show(&ctx, &reader, &known.caller, path.id, &form, status).await
}

async fn decide(ctx: &Ctx, operator: &Caller, id: RunId, posted: &Posted) -> Result<()> {
    let decision = serde_json::from_value(posted.value("decision").into());
    let decision = decision.map_err(|_| Error::invalid("?decision", "missing_field", "Choose one."))?;
    let request = ReviewRequest { decision, reason: posted.value("reason").to_owned() };
    benchmarks::service::review(ctx, operator, id, &request).await.map(drop)
}

/// The document as it came in, as a file.
#[get("/{lang}/review/{id}/original")]
pub async fn review_original(known: OperatorReader, ctx: Ctx, _reader: Reader, path: Path<PageId<RunId>>) -> Result<HttpResponse> {
    let bytes = benchmarks::service::original(&ctx, &known.caller, path.id).await?;
    Ok(benchmarks::original_download(path.id, bytes))
}

/// What the latest reconciliation found.
#[get("/{lang}/reconciliation")]
pub async fn reconciliation_page(_known: OperatorReader, ctx: Ctx, reader: Reader) -> Result<HttpResponse> {
    let view = billing::reconciliation_latest(&ctx).await?;
    html::page_with(StatusCode::OK, &ReconciliationPage::new(&ctx, &reader, view))
}
