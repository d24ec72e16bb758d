//! The latest reconciliation over HTTP.

use actix_web::{HttpResponse, Responder, get};

use super::{model::ReconciliationView, service};
use crate::{base::Result, ctx::Ctx, identity::Operator, web::AuthProblems};

/// Read the latest reconciliation
///
/// What was compared (the books with their postings, rentals with what they hold, the books with Stripe), and what differs. It runs by itself,
/// every ten minutes.
#[utoipa::path(tag = "Operators", responses((status = 200, body = ReconciliationView), AuthProblems), security(("bearer" = [])))]
#[get("/api/v1/reconciliation")]
pub async fn reconciliation_show(_operator: Operator, ctx: Ctx) -> Result<impl Responder> {
    Ok(HttpResponse::Ok().json(service::latest(&ctx).await?))
}
