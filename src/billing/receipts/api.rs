//! Receipts over HTTP.

use actix_web::{
    HttpRequest, HttpResponse, Responder, get,
    http::header::{self, HeaderValue},
};

use super::{document::ReceiptPage, model::ReceiptView, service};
use crate::{
    base::{Result, id::TopUpId},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, ConflictProblem, NotFoundProblem, Path, accept, html},
};

/// Read the receipt of a top-up
///
/// JSON, or HTML when `Accept` asks for `text/html`. `/api/v1/top-ups/{id}/receipt.html` is the same page. 409 until the money has come in.
#[utoipa::path(tag = "Money", params(("id" = TopUpId, Path, description = "A top-up of the account")),
    responses((status = 200, content((ReceiptView = "application/json"), (String = "text/html"))), AuthProblems, NotFoundProblem, ConflictProblem),
    security(("bearer" = [])))]
#[get("/api/v1/top-ups/{id}/receipt")]
pub async fn receipt_show(auth: Auth<scope::BillingRead>, id: Path<TopUpId>, request: HttpRequest, ctx: Ctx) -> Result<impl Responder> {
    let receipt = service::receipt(&ctx, auth.caller.account_id, *id).await?;
    let is_page = accept::liked_best(&request, &["text/html"]).is_some();
    let mut response = if is_page { html::page(&ReceiptPage::new(receipt))? } else { HttpResponse::Ok().json(receipt) };
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Read the receipt of a top-up as HTML
///
/// Laid out for printing and for saving as PDF. 409 until the money has come in.
#[utoipa::path(tag = "Money", params(("id" = TopUpId, Path, description = "A top-up of the account")),
    responses((status = 200, content_type = "text/html", body = String), AuthProblems, NotFoundProblem, ConflictProblem), security(("bearer" = [])))]
#[get("/api/v1/top-ups/{id}/receipt.html")]
pub async fn receipt_html(auth: Auth<scope::BillingRead>, id: Path<TopUpId>, ctx: Ctx) -> Result<impl Responder> {
    html::page(&ReceiptPage::new(service::receipt(&ctx, auth.caller.account_id, *id).await?))
}
