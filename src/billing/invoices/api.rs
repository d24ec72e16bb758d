//! Invoices over HTTP.

use actix_web::{
    HttpResponse, Responder, get,
    http::header::{ContentDisposition, DispositionParam, DispositionType},
};

use super::{document, model::InvoiceView, service};
use crate::{
    base::{Result, shape::MonthText},
    ctx::Ctx,
    identity::{Auth, scope},
    web::{AuthProblems, InputProblems, NotFoundProblem, Path, html},
};

/// Read a month's invoice
///
/// The statement of one UTC month with every rental by itself: as renter what it cost, as host what it earned, with the platform's fee. A month
/// that is not over yet shows what is booked so far. `/invoice.csv` and `/invoice.html` below it are the same as documents.
#[utoipa::path(tag = "Money", params(("month" = MonthText, Path, description = "A UTC month")),
    responses((status = 200, body = InvoiceView), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/invoices/{month}")]
pub async fn invoice_show(auth: Auth<scope::BillingRead>, month: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::invoice(&ctx, &auth.caller, &month).await?))
}

/// Read a month's invoice as CSV
///
/// Texts that a spreadsheet would run are escaped.
#[utoipa::path(tag = "Money", params(("month" = MonthText, Path, description = "A UTC month")),
    responses((status = 200, content_type = "text/csv", body = String), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/invoices/{month}/invoice.csv")]
pub async fn invoice_csv(auth: Auth<scope::BillingRead>, month: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    let invoice = service::invoice(&ctx, &auth.caller, &month).await?;
    let disposition = ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename(format!("rigmark-invoice-{}.csv", invoice.month))],
    };
    Ok(HttpResponse::Ok().content_type("text/csv; charset=utf-8").insert_header(disposition).body(document::csv(&invoice)?))
}

/// Read a month's invoice as HTML
///
/// Laid out for printing and for saving as PDF.
#[utoipa::path(tag = "Money", params(("month" = MonthText, Path, description = "A UTC month")),
    responses((status = 200, content_type = "text/html", body = String), AuthProblems, InputProblems, NotFoundProblem), security(("bearer" = [])))]
#[get("/api/v1/invoices/{month}/invoice.html")]
pub async fn invoice_html(auth: Auth<scope::BillingRead>, month: Path<String>, ctx: Ctx) -> Result<impl Responder> {
    let invoice = service::invoice(&ctx, &auth.caller, &month).await?;
    html::page(&document::InvoicePage::new(invoice, ctx.config.mode.is_sandbox()))
}
