//! The whole URL table. Each line names the handler; `tests/it/routes.rs` holds the comment beside it to the handler's own path.

use utoipa_actix_web::service_config::ServiceConfig;

/// Everything that the OpenAPI document describes.
pub fn api(config: &mut ServiceConfig) {
    let _ = config;
}
