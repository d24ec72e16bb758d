//! The OpenAPI document, collected from the handlers that `routes` registers; `openapi/rigmark.json` is its checked-in copy.

use std::sync::LazyLock;

use actix_web::{HttpResponse, Responder, get};
use utoipa::OpenApi;
use utoipa_actix_web::AppExt;

use crate::{
    base::id::{ApiKeyId, ChallengeId, InvitationId, ListingId, MachineId, RentalId, RunId},
    benchmarks::service::RunSort,
    market::service::Sort,
    routes,
    web::Limit,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rigmark",
        description = "A marketplace for GPU machines where every listing is backed by a measured LLM speed matrix.",
        license(name = "MIT OR Apache-2.0")
    ),
    servers((url = "/")),
    components(schemas(ApiKeyId, ChallengeId, InvitationId, ListingId, MachineId, RentalId, RunId, Limit, RunSort, Sort))
)]
struct Document;

/// The document as the server serves it.
pub fn document() -> utoipa::openapi::OpenApi {
    let (_, mut document) = actix_web::App::new().into_utoipa_app().openapi(Document::openapi()).configure(routes::api).split_for_parts();
    crate::web::openapi::add_common(&mut document);
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document
}

/// The document as text with sorted keys, as it is checked in.
pub fn document_text() -> String {
    // Through `Value`, whose maps are sorted: the text does not depend on the order of registration.
    let value = serde_json::to_value(document()).unwrap_or_default();
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

/// The document at `/openapi.json`.
#[get("/openapi.json")]
pub async fn openapi_show() -> impl Responder {
    static TEXT: LazyLock<String> = LazyLock::new(document_text);
    HttpResponse::Ok().content_type("application/json").body(TEXT.as_str())
}
