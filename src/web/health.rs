//! Whether the process lives, and whether it can do its work.

use std::time::Duration;

use actix_web::{Responder, get, web::Json};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::queries;
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
};

const DATABASE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    #[schema(example = "ok")]
    pub status: &'static str,
}

/// Ask whether the process lives
#[utoipa::path(tag = "Service", responses((status = 200, body = Health)))]
#[get("/healthz")]
pub async fn healthz() -> impl Responder {
    Json(Health { status: "ok" })
}

/// Ask whether the process can serve
///
/// It can when the database answers. Redis is not asked, since nothing fails without it.
#[utoipa::path(tag = "Service", responses((status = 200, body = Health), (status = 503, body = super::ProblemBody, content_type = "application/problem+json")))]
#[get("/readyz")]
pub async fn readyz(ctx: Ctx) -> Result<impl Responder> {
    let ping = async {
        let mut conn = ctx.db.conn().await?;
        queries::ping(&mut conn).await
    };
    let away = || Error::new(Code::Unavailable, "The database does not answer.").with_retry_after(1);
    match timeout(DATABASE_WITHIN, ping).await {
        Ok(Ok(())) => Ok(Json(Health { status: "ok" })),
        Ok(Err(error)) => Err(away().with_source(error)),
        Err(_elapsed) => Err(away()),
    }
}
