//! Rows of the webhooks' tables and what the API shows of them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use super::event::{EventName, Subscription};
pub use super::state::{DeliveryStatus, DisabledReason};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, WebhookEndpointId, WebhookEventId},
        secret::Secret,
    },
    db::schema::{webhook_deliveries, webhook_endpoints},
};

/// A webhook endpoint to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWebhookEndpoint {
    /// An https address. In the sandbox http is taken too, for this machine itself (`http://127.0.0.1:3000/hooks`).
    #[schema(min_length = 1, max_length = 2048)]
    pub url: String,
    /// What it is told of. You need the write scopes of all of it.
    #[schema(value_type = Vec<Subscription>, min_items = 1, max_items = 50)]
    pub events: Vec<String>,
    /// For you; at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub description: String,
    /// True unless said otherwise.
    pub is_enabled: Option<bool>,
}

/// What may be changed of a webhook endpoint.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWebhookEndpoint {
    /// As when it is made.
    #[schema(min_length = 1, max_length = 2048)]
    pub url: Option<String>,
    #[schema(value_type = Option<Vec<Subscription>>, min_items = 1, max_items = 50)]
    pub events: Option<Vec<String>>,
    #[schema(max_length = 200)]
    pub description: Option<String>,
    /// Enabled again, it gets what has waited.
    pub is_enabled: Option<bool>,
}

/// One row of `webhook_endpoints`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = webhook_endpoints, treat_none_as_null = true, check_for_backend(diesel::pg::Pg))]
pub(super) struct Endpoint {
    pub id: WebhookEndpointId,
    pub account_id: AccountId,
    pub url: String,
    pub events: Vec<String>,
    pub description: String,
    pub is_enabled: bool,
    pub disabled_reason: Option<String>,
    pub secret_sealed: Vec<u8>,
    pub old_secret_sealed: Option<Vec<u8>>,
    pub old_secret_until: Option<DateTime<Utc>>,
    pub failing_since: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A webhook endpoint as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WebhookEndpointView {
    pub id: WebhookEndpointId,
    pub url: String,
    #[schema(value_type = Vec<Subscription>)]
    pub events: Vec<String>,
    pub description: String,
    pub is_enabled: bool,
    /// Why the service disabled it; null when its owner did, or while it is enabled.
    pub disabled_reason: Option<DisabledReason>,
    /// Since then no try has succeeded.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until then the secret before the last rotation signs too.
    pub old_secret_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl WebhookEndpointView {
    pub(super) fn new(row: Endpoint, now: DateTime<Utc>) -> Self {
        Self {
            id: row.id,
            url: row.url,
            events: row.events,
            description: row.description,
            is_enabled: row.is_enabled,
            disabled_reason: row.disabled_reason.as_deref().and_then(DisabledReason::parse),
            failing_since: row.failing_since,
            old_secret_until: row.old_secret_until.filter(|until| *until > now),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A webhook endpoint with its new secret, which is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookEndpointWithSecret {
    #[serde(flatten)]
    pub view: WebhookEndpointView,
    /// The key of the signatures, in base64 behind the prefix.
    #[schema(value_type = String, pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    pub secret: Secret<String>,
}

/// A delivery with the kind of its event.
#[derive(Debug, Clone, Queryable)]
pub(super) struct DeliveryRow {
    pub event_id: WebhookEventId,
    pub event_type: String,
    pub delivery: Delivery,
}

/// One row of `webhook_deliveries`.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries, check_for_backend(diesel::pg::Pg))]
pub(super) struct Delivery {
    pub status: String,
    pub attempt: i32,
    pub next_try_at: Option<DateTime<Utc>>,
    pub status_code: Option<i32>,
    pub duration_ms: Option<i32>,
    pub error: Option<String>,
    pub tried_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// An event on its way to one webhook endpoint, with the last try.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WebhookDeliveryView {
    /// The `webhook-id` of every try.
    pub event_id: WebhookEventId,
    #[serde(rename = "type")]
    #[schema(value_type = EventName)]
    pub event_type: String,
    pub status: DeliveryStatus,
    /// How many tries there were.
    pub attempt: i32,
    /// When the last one ended.
    pub tried_at: Option<DateTime<Utc>>,
    /// What the receiver answered at the last try, if it did.
    pub status_code: Option<i32>,
    /// How long the last try took.
    pub duration_ms: Option<i32>,
    /// Why the last try failed: `status` (not 2xx), `redirect`, `timeout`, `unreachable`, `bad_answer`, or `forbidden_address` for one that is
    /// not public.
    pub error: Option<String>,
    /// Null when none is to come.
    pub next_try_at: Option<DateTime<Utc>>,
    /// When the event happened.
    pub created_at: DateTime<Utc>,
}

impl WebhookDeliveryView {
    pub(super) fn new(row: DeliveryRow) -> Result<Self> {
        let DeliveryRow { event_id, event_type, delivery } = row;
        let status = DeliveryStatus::parse(&delivery.status);
        Ok(Self {
            event_id,
            event_type,
            status: status.ok_or_else(|| Error::internal(format!("delivery status {}", delivery.status)))?,
            attempt: delivery.attempt,
            tried_at: delivery.tried_at,
            status_code: delivery.status_code,
            duration_ms: delivery.duration_ms,
            error: delivery.error,
            next_try_at: delivery.next_try_at,
            created_at: delivery.created_at,
        })
    }
}

/// A delivery that was taken to be tried.
#[derive(Debug, Clone, QueryableByName)]
pub(super) struct Due {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub endpoint_id: WebhookEndpointId,
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub event_id: WebhookEventId,
    #[diesel(sql_type = diesel::sql_types::Integer)]
    pub attempt: i32,
    #[diesel(sql_type = diesel::sql_types::Integer)]
    pub step: i32,
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub url: String,
    #[diesel(sql_type = diesel::sql_types::Binary)]
    pub secret_sealed: Vec<u8>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Binary>)]
    pub old_secret_sealed: Option<Vec<u8>>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Timestamptz>)]
    pub old_secret_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub body: String,
}

/// What came of a try.
pub(super) struct TryResult {
    pub status: DeliveryStatus,
    pub next_try_at: Option<DateTime<Utc>>,
    pub status_code: Option<i32>,
    pub duration_ms: i32,
    pub error: Option<&'static str>,
    pub tried_at: DateTime<Utc>,
}
