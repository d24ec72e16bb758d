//! Public reads whose answers are kept for a moment (`base::answers`).

use std::future::Future;

use actix_web::{HttpResponse, http::header::ContentType};
use bytes::Bytes;
use serde::Serialize;

use crate::{
    base::{Error, Result},
    ctx::Ctx,
};

/// The answer to a public read as JSON. `key` says everything that it depends on, the path included; not who asks, for whom it is the same.
///
/// # Errors
/// Those of `fresh`.
pub async fn kept_json<T: Serialize>(ctx: &Ctx, key: String, fresh: impl Future<Output = Result<T>>) -> Result<HttpResponse> {
    let written = async { Ok(Bytes::from(serde_json::to_vec(&fresh.await?).map_err(Error::internal)?)) };
    let body = ctx.answers.get_or(ctx.db.public_generation(), key, written).await?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}
