//! The whole URL table. Each line names the handler; `tests/it/routes.rs` holds the comment beside it to the handler's own path.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::web::{health, problem};

/// Everything that the OpenAPI document describes.
pub fn api(config: &mut ServiceConfig) {
    config
        .service(health::healthz) // GET /healthz
        .service(health::readyz) // GET /readyz
        .service(problem::problem_list) // GET /problems
        .service(problem::problem_show); // GET /problems/{code}
}
