//! The whole URL table. Each line names the handler; `tests/it/routes.rs` holds the comment beside it to the handler's own path.

use actix_web::{dev::HttpServiceFactory, web::ServiceConfig};
use utoipa_actix_web::{OpenApiFactory, service_config::ServiceConfig as DocumentedConfig};

use crate::{admin, benchmarks, billing, catalog, endpoint, identity, ledger, machines, market, openapi, rentals, web, webhooks};

/// Where routes are mounted: in a server, or in the OpenAPI document. A server's threads do not collect the document, which costs each of
/// them megabytes.
pub trait Mount {
    fn service(&mut self, handler: impl HttpServiceFactory + OpenApiFactory + 'static) -> &mut Self;
}

impl Mount for ServiceConfig {
    fn service(&mut self, handler: impl HttpServiceFactory + OpenApiFactory + 'static) -> &mut Self {
        self.service(handler)
    }
}

impl Mount for DocumentedConfig<'_> {
    fn service(&mut self, handler: impl HttpServiceFactory + OpenApiFactory + 'static) -> &mut Self {
        self.service(handler)
    }
}

/// Everything that the OpenAPI document describes. actix tries one path after another, so what is asked most stands first.
pub fn api(config: &mut impl Mount) {
    endpoint_api(config);
    market_api(config);
    benchmarks_api(config);
    catalog_api(config);
    rentals_api(config);
    machines_api(config);
    identity_api(config);
    ledger_api(config);
    billing_api(config);
    webhooks_api(config);
    admin_api(config);
    web_api(config);
}

/// Service.
fn web_api(config: &mut impl Mount) {
    config
        .service(web::health::healthz) // GET /healthz
        .service(web::problem::problem_list) // GET /problems
        .service(web::tunables::tunables_show) // GET /api/v1/tunables
        .service(web::problem::problem_show) // GET /problems/{code}
        .service(web::health::readyz); // GET /readyz
}

/// Accounts.
fn identity_api(config: &mut impl Mount) {
    config
        .service(identity::api::api_key_list) // GET /api/v1/api-keys
        .service(identity::api::api_key_create) // POST /api/v1/api-keys
        .service(identity::api::api_key_revoke) // DELETE /api/v1/api-keys/{id}
        .service(identity::api::email_confirmation_request) // POST /api/v1/auth/email-confirmation
        .service(identity::api::email_confirm) // POST /api/v1/auth/email-confirmation/confirm
        .service(identity::api::auth_login) // POST /api/v1/auth/login
        .service(identity::api::auth_logout) // POST /api/v1/auth/logout
        .service(identity::api::password_reset_request) // POST /api/v1/auth/password-reset
        .service(identity::api::password_reset) // POST /api/v1/auth/password-reset/confirm
        .service(identity::api::auth_refresh) // POST /api/v1/auth/refresh
        .service(identity::api::auth_register) // POST /api/v1/auth/register
        .service(identity::api::registration_confirm) // POST /api/v1/auth/register/confirm
        .service(identity::api::me_show) // GET /api/v1/me
        .service(identity::api::me_update) // PATCH /api/v1/me
        .service(identity::api::me_invitation_list) // GET /api/v1/me/invitations
        .service(identity::api::me_password_change) // POST /api/v1/me/password
        .service(identity::api::organization_list) // GET /api/v1/organizations
        .service(identity::api::organization_create) // POST /api/v1/organizations
        .service(identity::api::organization_show) // GET /api/v1/organizations/{handle}
        .service(identity::api::organization_update) // PATCH /api/v1/organizations/{handle}
        .service(identity::api::invitation_list) // GET /api/v1/organizations/{handle}/invitations
        .service(identity::api::invitation_create) // POST /api/v1/organizations/{handle}/invitations
        .service(identity::api::invitation_revoke) // DELETE /api/v1/organizations/{handle}/invitations/{id}
        .service(identity::api::invitation_accept) // POST /api/v1/organizations/{handle}/invitations/{id}/accept
        .service(identity::api::member_list) // GET /api/v1/organizations/{handle}/members
        .service(identity::api::member_update) // PATCH /api/v1/organizations/{handle}/members/{member}
        .service(identity::api::member_remove); // DELETE /api/v1/organizations/{handle}/members/{member}
}

/// Webhooks.
fn webhooks_api(config: &mut impl Mount) {
    config
        .service(webhooks::api::webhook_endpoint_list) // GET /api/v1/webhook-endpoints
        .service(webhooks::api::webhook_endpoint_create) // POST /api/v1/webhook-endpoints
        .service(webhooks::api::webhook_endpoint_show) // GET /api/v1/webhook-endpoints/{id}
        .service(webhooks::api::webhook_endpoint_update) // PATCH /api/v1/webhook-endpoints/{id}
        .service(webhooks::api::webhook_endpoint_delete) // DELETE /api/v1/webhook-endpoints/{id}
        .service(webhooks::api::webhook_delivery_list) // GET /api/v1/webhook-endpoints/{id}/deliveries
        .service(webhooks::api::webhook_delivery_retry) // POST /api/v1/webhook-endpoints/{id}/deliveries/{event_id}/retry
        .service(webhooks::api::webhook_secret_rotate) // POST /api/v1/webhook-endpoints/{id}/rotate-secret
        .service(webhooks::api::webhook_test_send); // POST /api/v1/webhook-endpoints/{id}/test
}

/// Catalog.
fn catalog_api(config: &mut impl Mount) {
    config
        .service(benchmarks::boards::api::hardware_list) // GET /api/v1/hardware
        .service(catalog::api::hardware_resolve) // GET /api/v1/hardware/resolve
        .service(benchmarks::boards::api::hardware_show) // GET /api/v1/hardware/{slug}
        .service(benchmarks::boards::api::model_list) // GET /api/v1/models
        .service(benchmarks::boards::api::model_show) // GET /api/v1/models/{slug}
        .service(benchmarks::boards::api::publisher_list) // GET /api/v1/publishers
        .service(benchmarks::boards::api::publisher_show); // GET /api/v1/publishers/{slug}
}

/// Machines.
fn machines_api(config: &mut impl Mount) {
    config
        .service(machines::api::machine_create) // POST /api/v1/machines
        .service(machines::api::machine_list) // GET /api/v1/machines
        .service(machines::api::machine_show) // GET /api/v1/machines/{id}
        .service(machines::api::machine_update) // PATCH /api/v1/machines/{id}
        .service(machines::api::machine_delete); // DELETE /api/v1/machines/{id}
}

/// Challenges, runs, and the benchmark tool's uploads.
fn benchmarks_api(config: &mut impl Mount) {
    config
        .service(benchmarks::boards::api::benchmark_methods) // GET /api/v1/benchmarks
        .service(benchmarks::tool::api::bench_whoami) // GET /api/bench/whoami
        .service(benchmarks::tool::api::bench_run_upload) // POST /api/bench/runs
        .service(benchmarks::tool::api::upload_token_list) // GET /api/v1/upload-tokens
        .service(benchmarks::tool::api::upload_token_create) // POST /api/v1/upload-tokens
        .service(benchmarks::tool::api::upload_token_revoke) // DELETE /api/v1/upload-tokens/{id}
        .service(benchmarks::export::api::cells_csv) // GET /api/v1/cells.csv
        .service(benchmarks::export::api::cells_parquet) // GET /api/v1/cells.parquet
        .service(benchmarks::api::calculator_decode) // POST /api/v1/calculator/decode
        .service(benchmarks::api::challenge_fetch) // GET /api/v1/challenges/{id}
        .service(benchmarks::api::challenge_create) // POST /api/v1/machines/{id}/challenges
        .service(benchmarks::api::machine_remeasure) // POST /api/v1/machines/{id}/remeasure
        .service(benchmarks::api::remeasurement_list) // GET /api/v1/machines/{id}/remeasurements
        .service(benchmarks::api::run_upload) // POST /api/v1/matrix-runs
        .service(benchmarks::api::run_list) // GET /api/v1/matrix-runs
        .service(benchmarks::api::run_fetch) // GET /api/v1/matrix-runs/{id}
        .service(benchmarks::api::run_answer) // POST /api/v1/matrix-runs/{id}/answer
        .service(benchmarks::api::run_cells) // GET /api/v1/matrix-runs/{id}/cells.csv
        .service(benchmarks::api::run_document) // GET /api/v1/matrix-runs/{id}/document
        .service(benchmarks::api::run_history) // GET /api/v1/matrix-runs/{id}/history
        .service(benchmarks::api::run_original) // GET /api/v1/matrix-runs/{id}/original
        .service(benchmarks::reports::api::report_list) // GET /api/v1/reports
        .service(benchmarks::reports::api::report_create) // POST /api/v1/reports
        .service(benchmarks::reports::api::report_show) // GET /api/v1/reports/{id}
        .service(benchmarks::reports::api::report_delete); // DELETE /api/v1/reports/{id}
}

/// Market.
fn market_api(config: &mut impl Mount) {
    config
        .service(market::api::leaderboard_list) // GET /api/v1/leaderboard
        .service(market::api::listing_create) // POST /api/v1/listings
        .service(market::api::listing_list) // GET /api/v1/listings
        .service(market::api::listing_update) // PATCH /api/v1/listings/{id}
        .service(market::api::listing_show) // GET /api/v1/listings/{id}
        .service(market::api::listing_pause) // POST /api/v1/listings/{id}/pause
        .service(market::api::listing_publish) // POST /api/v1/listings/{id}/publish
        .service(market::api::listing_list_own) // GET /api/v1/me/listings
        .service(market::api::quote_create) // POST /api/v1/quotes
        .service(market::saved_searches::api::saved_search_list) // GET /api/v1/saved-searches
        .service(market::saved_searches::api::saved_search_create) // POST /api/v1/saved-searches
        .service(market::saved_searches::api::saved_search_delete); // DELETE /api/v1/saved-searches/{id}
}

/// Rentals.
fn rentals_api(config: &mut impl Mount) {
    config
        .service(rentals::api::rental_create) // POST /api/v1/rentals
        .service(rentals::api::rental_list) // GET /api/v1/rentals
        .service(rentals::api::rental_fetch) // GET /api/v1/rentals/{id}
        .service(rentals::api::rental_events) // GET /api/v1/rentals/{id}/events
        .service(rentals::api::rental_extend) // POST /api/v1/rentals/{id}/extend
        .service(rentals::api::rental_stop) // POST /api/v1/rentals/{id}/stop
        .service(rentals::api::rental_usage); // GET /api/v1/rentals/{id}/usage
}

/// Money.
fn ledger_api(config: &mut impl Mount) {
    config
        .service(ledger::api::balance_show) // GET /api/v1/balance
        .service(ledger::api::entry_list) // GET /api/v1/ledger-entries
        .service(ledger::api::statement_show) // GET /api/v1/statements
        .service(ledger::api::statement_csv) // GET /api/v1/statements.csv
        .service(ledger::api::statement_html); // GET /api/v1/statements.html
}

/// Top-ups.
fn billing_api(config: &mut impl Mount) {
    config
        .service(billing::invoices::api::invoice_show) // GET /api/v1/invoices/{month}
        .service(billing::invoices::api::invoice_csv) // GET /api/v1/invoices/{month}/invoice.csv
        .service(billing::invoices::api::invoice_html) // GET /api/v1/invoices/{month}/invoice.html
        .service(billing::reconcile::api::reconciliation_show) // GET /api/v1/reconciliation
        .service(billing::disputes::api::dispute_list) // GET /api/v1/disputes
        .service(billing::disputes::api::dispute_fetch) // GET /api/v1/disputes/{id}
        .service(billing::disputes::api::dispute_evidence) // GET /api/v1/disputes/{id}/evidence
        .service(billing::refunds::api::refund_create) // POST /api/v1/refunds
        .service(billing::refunds::api::refund_list) // GET /api/v1/refunds
        .service(billing::refunds::api::refund_fetch) // GET /api/v1/refunds/{id}
        .service(billing::pro::api::pro_show) // GET /api/v1/pro
        .service(billing::pro::api::pro_subscribe) // POST /api/v1/pro
        .service(billing::pro::api::pro_cancel) // POST /api/v1/pro/cancel
        .service(billing::pro::api::pro_plan_set) // POST /api/v1/pro/plan
        .service(billing::pro::api::pro_portal) // POST /api/v1/pro/portal
        .service(billing::pro::api::pro_resume) // POST /api/v1/pro/resume
        .service(billing::pro::api::pro_seats_set) // POST /api/v1/pro/seats
        .service(billing::api::sandbox_credit_create) // POST /api/v1/sandbox/credits
        .service(billing::api::stripe_event_take) // POST /api/v1/stripe/events
        .service(billing::api::top_up_create) // POST /api/v1/top-ups
        .service(billing::api::top_up_list) // GET /api/v1/top-ups
        .service(billing::api::top_up_fetch) // GET /api/v1/top-ups/{id}
        .service(billing::receipts::api::receipt_show) // GET /api/v1/top-ups/{id}/receipt
        .service(billing::receipts::api::receipt_html) // GET /api/v1/top-ups/{id}/receipt.html
        .service(billing::cards::api::payment_method_create) // POST /api/v1/payment-methods
        .service(billing::cards::api::payment_method_list) // GET /api/v1/payment-methods
        .service(billing::cards::api::payment_method_update) // PATCH /api/v1/payment-methods/{id}
        .service(billing::cards::api::payment_method_delete) // DELETE /api/v1/payment-methods/{id}
        .service(billing::cards::api::card_setup_fetch) // GET /api/v1/card-setups/{id}
        .service(billing::automatic::api::automatic_top_up_show) // GET /api/v1/automatic-top-up
        .service(billing::automatic::api::automatic_top_up_set) // PUT /api/v1/automatic-top-up
        .service(billing::automatic::api::automatic_top_up_end); // DELETE /api/v1/automatic-top-up
    payout_api(config);
}

/// What hosts are paid.
fn payout_api(config: &mut impl Mount) {
    config
        .service(billing::payouts::api::payout_account_onboard) // POST /api/v1/payout-account
        .service(billing::payouts::api::payout_account_show) // GET /api/v1/payout-account
        .service(billing::payouts::api::payout_account_update) // PATCH /api/v1/payout-account
        .service(billing::payouts::api::payout_create) // POST /api/v1/payouts
        .service(billing::payouts::api::payout_list) // GET /api/v1/payouts
        .service(billing::payouts::api::payout_fetch); // GET /api/v1/payouts/{id}
}

/// Endpoint, in the shape of OpenAI's API.
fn endpoint_api(config: &mut impl Mount) {
    config
        .service(endpoint::api::chat_completions) // POST /v1/chat/completions
        .service(endpoint::api::models); // GET /v1/models
}

/// Sandbox and operators.
fn admin_api(config: &mut impl Mount) {
    config
        .service(admin::api::dispute_evidence_export) // GET /api/v1/admin/disputes/{id}/evidence
        .service(admin::api::review_show) // GET /api/v1/admin/matrix-runs/{id}
        .service(admin::api::run_review) // POST /api/v1/admin/matrix-runs/{id}/review
        .service(admin::api::review_similar) // GET /api/v1/admin/matrix-runs/{id}/similar
        .service(admin::api::review_queue) // GET /api/v1/admin/review-queue
        .service(admin::api::clock_fetch) // GET /api/v1/sandbox/clock
        .service(admin::api::clock_advance); // POST /api/v1/sandbox/clock
}

/// Pages and their files.
pub fn pages(config: &mut ServiceConfig) {
    config
        .service(market::pages::root) // GET /
        .service(web::html::asset) // GET /assets/{name}
        .service(openapi::openapi_show) // GET /openapi.json
        .service(benchmarks::pages::upload_token_way) // GET /bench/token
        .service(market::pages::home) // GET /{lang}
        .service(market::pages::listing_page) // GET /{lang}/listings/{id}
        .service(market::pages::marketplace) // GET /{lang}/marketplace
        .service(benchmarks::pages::benchmarks) // GET /{lang}/benchmarks
        .service(benchmarks::pages::upload_tokens) // GET /{lang}/upload-tokens
        .service(benchmarks::pages::runs) // GET /{lang}/runs
        .service(market::pages::run_page) // GET /{lang}/runs/{id}
        .service(benchmarks::pages::answer_page) // GET /{lang}/runs/{id}/answer
        .service(benchmarks::pages::answer_send) // POST /{lang}/runs/{id}/answer
        .service(admin::pages::reconciliation_page) // GET /{lang}/reconciliation
        .service(admin::pages::review_queue) // GET /{lang}/review
        .service(admin::pages::review_page) // GET /{lang}/review/{id}
        .service(admin::pages::review_send) // POST /{lang}/review/{id}
        .service(admin::pages::review_original) // GET /{lang}/review/{id}/original
        .service(identity::pages::sign_in_page) // GET /{lang}/sign-in
        .service(identity::pages::sign_in_send) // POST /{lang}/sign-in
        .service(identity::pages::sign_out_page) // GET /{lang}/sign-out
        .service(identity::pages::sign_out_send); // POST /{lang}/sign-out
}
