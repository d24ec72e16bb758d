//! The whole URL table. Each line names the handler; `tests/it/routes.rs` holds the comment beside it to the handler's own path.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    catalog, identity,
    web::{health, problem},
};

/// Everything that the OpenAPI document describes.
pub fn api(config: &mut ServiceConfig) {
    config
        .service(health::healthz) // GET /healthz
        .service(health::readyz) // GET /readyz
        .service(problem::problem_list) // GET /problems
        .service(problem::problem_show); // GET /problems/{code}
    accounts(config);
    hardware_and_models(config);
}

fn accounts(config: &mut ServiceConfig) {
    use identity::api;
    config
        .service(api::auth_register) // POST /api/v1/auth/register
        .service(api::registration_confirm) // POST /api/v1/auth/register/confirm
        .service(api::auth_login) // POST /api/v1/auth/login
        .service(api::auth_refresh) // POST /api/v1/auth/refresh
        .service(api::auth_logout) // POST /api/v1/auth/logout
        .service(api::password_reset_request) // POST /api/v1/auth/password-reset
        .service(api::password_reset) // POST /api/v1/auth/password-reset/confirm
        .service(api::email_confirmation_request) // POST /api/v1/auth/email-confirmation
        .service(api::email_confirm) // POST /api/v1/auth/email-confirmation/confirm
        .service(api::me_show) // GET /api/v1/me
        .service(api::me_update) // PATCH /api/v1/me
        .service(api::me_password_change) // POST /api/v1/me/password
        .service(api::me_invitation_list) // GET /api/v1/me/invitations
        .service(api::api_key_list) // GET /api/v1/api-keys
        .service(api::api_key_create) // POST /api/v1/api-keys
        .service(api::api_key_revoke) // DELETE /api/v1/api-keys/{id}
        .service(api::organization_list) // GET /api/v1/organizations
        .service(api::organization_create) // POST /api/v1/organizations
        .service(api::organization_show) // GET /api/v1/organizations/{handle}
        .service(api::organization_update) // PATCH /api/v1/organizations/{handle}
        .service(api::member_list) // GET /api/v1/organizations/{handle}/members
        .service(api::member_update) // PATCH /api/v1/organizations/{handle}/members/{member}
        .service(api::member_remove) // DELETE /api/v1/organizations/{handle}/members/{member}
        .service(api::invitation_list) // GET /api/v1/organizations/{handle}/invitations
        .service(api::invitation_create) // POST /api/v1/organizations/{handle}/invitations
        .service(api::invitation_accept) // POST /api/v1/organizations/{handle}/invitations/{id}/accept
        .service(api::invitation_revoke); // DELETE /api/v1/organizations/{handle}/invitations/{id}
}

fn hardware_and_models(config: &mut ServiceConfig) {
    use catalog::api;
    config
        .service(api::hardware_list) // GET /api/v1/hardware
        // Before the slug, which would take it.
        .service(api::hardware_resolve) // GET /api/v1/hardware/resolve
        .service(api::hardware_show) // GET /api/v1/hardware/{slug}
        .service(api::model_list) // GET /api/v1/models
        .service(api::model_show); // GET /api/v1/models/{slug}
}
