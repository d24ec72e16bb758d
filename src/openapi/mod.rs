//! The OpenAPI document, collected from the handlers that `routes` registers; `openapi/rigmark.json` is its checked-in copy.
//!
//! What an operation does alone stands at its handler. What follows from its kind (a body, a caller, a path that names something, a list) is
//! added here to all operations of the kind: [`operations`] adds answers, headers and parameters out of [`parts`], [`schemas`] what derived
//! schemas cannot say, and the examples of `examples.json`, each of them once.

mod operations;
mod parts;
mod schemas;
mod webhooks;

use std::sync::LazyLock;

use actix_web::{HttpResponse, Responder, get};
use serde_json::Value;
use utoipa::OpenApi;
use utoipa_actix_web::AppExt;

use crate::{
    base::shape::{ContextText, HandleText, IdempotencyKeyText, InstantOrDateText, LimitText, MonthText, PaymentMethodText, RegionText},
    benchmarks::{
        model::{EvidenceLevel, StaleRun},
        service::RunSort,
    },
    catalog::service::Candidate,
    endpoint::ChatRequest,
    market::{Unmet, service::Sort},
    rentals::model::RentalLowFunds,
    routes,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rigmark",
        description = include_str!("description.md"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The server that serves this document")),
    tags(
        (name = "Accounts", description = "Registering, signing in, the own account and its API keys"),
        (name = "Organizations", description = "Teams: members, roles and invitations"),
        (name = "Webhooks", description = "Being told of events at an address of one's own, signed as the Standard Webhooks specification says"),
        (name = "Catalog", description = "Hardware models and language models that are known by name"),
        (name = "Machines", description = "A host's machines, and the challenges that are drawn for them"),
        (name = "Runs", description = "Run documents with their verdicts: public evidence of what a machine does"),
        (name = "Market", description = "Listings, the search by workload, and quotes"),
        (name = "Rentals", description = "Renting machines by the second"),
        (name = "Money", description = "Balance, ledger entries and statements"),
        (name = "Endpoint", description = "The OpenAI-compatible endpoint to every machine within reach; its errors have OpenAI's shape"),
        (name = "Sandbox", description = "Play money and a clock that can be moved; absent outside the sandbox"),
        (name = "Operators", description = "What the service's operators do"),
        (name = "Service", description = "Whether the service works, and what its problem codes mean")
    ),
    components(schemas(
        Candidate, ChatRequest, ContextText, EvidenceLevel, HandleText, IdempotencyKeyText, InstantOrDateText, LimitText, MonthText, PaymentMethodText, RegionText, RentalLowFunds, RunSort, Sort, StaleRun, Unmet
    ))
)]
struct Document;

/// The operations as their handlers state them.
pub fn collected() -> utoipa::openapi::OpenApi {
    let (_, mut document) =
        actix_web::App::new().into_utoipa_app().openapi(Document::openapi()).configure(|config| routes::api(config)).split_for_parts();
    crate::web::openapi::add_common(&mut document);
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document
}

/// The whole document, as the server serves it.
pub fn document() -> Value {
    let mut document = serde_json::to_value(collected()).unwrap_or_default();
    parts::add(&mut document);
    webhooks::add(&mut document);
    schemas::complete(&mut document);
    operations::complete(&mut document);
    document
}

/// The document as text with sorted keys, as it is checked in.
pub fn document_text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

/// The document at `/openapi.json`.
#[get("/openapi.json")]
pub async fn openapi_show() -> impl Responder {
    static TEXT: LazyLock<String> = LazyLock::new(document_text);
    HttpResponse::Ok().content_type("application/json").body(TEXT.as_str())
}
