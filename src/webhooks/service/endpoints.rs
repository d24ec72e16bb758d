//! Looking after endpoints, and what their owners may ask for: a test, the log, another try.

use chrono::TimeDelta;
use serde_json::json;

use super::{allow_loopback, emit::body, no_endpoint, open, seal};
use crate::{
    base::{
        Code, Error, FieldError, Result,
        id::{WebhookEndpointId, WebhookEventId},
        text,
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        self, Act, By, Caller,
        scope::{Need, Scope},
    },
    webhooks::{
        event::{ALL_EVENTS, EventType, TEST_EVENT, scopes_of},
        model::{
            CreateWebhookEndpoint, Endpoint, UpdateWebhookEndpoint, WebhookDeliveryView, WebhookEndpointView, WebhookEndpointWithSecret,
        },
        queries::{self, NewEvent},
        signature::SigningSecret,
        state, target,
    },
};

const ENDPOINTS_MAX: i64 = 20;
const EVENTS_MAX: usize = 50;
const DESCRIPTION_CHARS_MAX: usize = 200;
/// How long the secret before a rotation signs too.
const OVERLAP: TimeDelta = TimeDelta::hours(24);

/// What is written of an endpoint, checked.
struct Terms {
    url: String,
    events: Vec<String>,
    description: String,
}

impl Terms {
    fn check(ctx: &Ctx, url: &str, events: &[String], description: &str) -> Result<Self> {
        let mut faults = Vec::new();
        let parsed = target::parse(url, allow_loopback(ctx)).map_err(|fault| faults.push(fault)).ok();
        let events = check_events(events, &mut faults);
        if description.chars().count() > DESCRIPTION_CHARS_MAX {
            faults.push(FieldError::new("/description", "length", "A description has at most 200 characters."));
        }
        faults.extend(text::label_fault("/description", description));
        let Some(parsed) = parsed.filter(|_| faults.is_empty()) else { return Err(Error::invalid_fields(faults)) };
        target::check_literal(&parsed, allow_loopback(ctx))?;
        Ok(Self { url: parsed.into(), events, description: description.to_owned() })
    }
}

/// In the order of the list, each once.
fn check_events(names: &[String], faults: &mut Vec<FieldError>) -> Vec<String> {
    if names.is_empty() || names.len() > EVENTS_MAX {
        faults.push(FieldError::new("/events", "length", format!("An endpoint waits for 1 to {EVENTS_MAX} kinds of events.")));
    }
    for (i, name) in names.iter().enumerate() {
        if name != ALL_EVENTS && EventType::parse(name).is_none() {
            faults.push(FieldError::new(format!("/events/{i}"), "unknown_event", "There is no such event."));
        }
    }
    let known = EventType::ALL.iter().map(|event| event.as_str()).chain([ALL_EVENTS]);
    known.filter(|known| names.iter().any(|name| name == known)).map(str::to_owned).collect()
}

/// A webhook shows what the API would, and goes on when the key that made it is gone: so it takes the write scopes of what it tells.
fn require(caller: &Caller, events: &[String]) -> Result<()> {
    scopes_of(events).into_iter().try_for_each(|scope: Scope| caller.require(Need::Scope(scope)))
}

/// # Errors
/// `invalid_input`, `forbidden_address`, `insufficient_scope` or `forbidden`; `invalid_state` when the account has as many as it may have.
pub async fn create(ctx: &Ctx, caller: &Caller, form: &CreateWebhookEndpoint) -> Result<WebhookEndpointWithSecret> {
    let terms = Terms::check(ctx, &form.url, &form.events, &form.description)?;
    require(caller, &terms.events)?;
    let (id, secret, now) = (WebhookEndpointId::new(), SigningSecret::new(), ctx.clock.wall_now());
    let row = Endpoint {
        id,
        account_id: caller.account_id,
        url: terms.url,
        events: terms.events,
        description: terms.description,
        is_enabled: form.is_enabled.unwrap_or(true),
        disabled_reason: None,
        secret_sealed: seal(ctx, id, &secret)?,
        old_secret_sealed: None,
        old_secret_until: None,
        failing_since: None,
        created_at: now,
        updated_at: now,
    };
    ctx.db
        .tx("webhook_endpoint_create", async |tx| {
            queries::endpoint_insert(tx, &row).await?;
            if queries::endpoint_count(tx, caller.account_id).await? > ENDPOINTS_MAX {
                return Err(Error::new(Code::InvalidState, format!("An account has at most {ENDPOINTS_MAX} webhook endpoints.")));
            }
            note(ctx, tx, caller, "webhook_endpoint.create", &row).await
        })
        .await?;
    Ok(WebhookEndpointWithSecret { view: WebhookEndpointView::new(row, now), secret: secret.text() })
}

/// The host alone: paths and queries of receivers often hold a token.
async fn note(ctx: &Ctx, tx: &mut Tx<'_>, caller: &Caller, action: &'static str, row: &Endpoint) -> Result<()> {
    let host = url::Url::parse(&row.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let details = json!({ "host": host, "events": row.events, "is_enabled": row.is_enabled });
    let target = row.id.to_string();
    identity::audit(
        tx,
        Act { by: By::Caller(caller), account_id: Some(caller.account_id), action, target, details, at: ctx.clock.wall_now() },
    )
    .await
}

/// The account's endpoints, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn list(ctx: &Ctx, caller: &Caller, before: Option<WebhookEndpointId>, limit: i64) -> Result<Vec<WebhookEndpointView>> {
    let mut conn = ctx.db.conn().await?;
    let rows = queries::endpoint_list(&mut conn, caller.account_id, before, limit).await?;
    let now = ctx.clock.wall_now();
    Ok(rows.into_iter().map(|row| WebhookEndpointView::new(row, now)).collect())
}

/// # Errors
/// `not_found`.
pub async fn show(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId) -> Result<WebhookEndpointView> {
    let mut conn = ctx.db.conn().await?;
    Ok(WebhookEndpointView::new(fetch(&mut conn, caller, id).await?, ctx.clock.wall_now()))
}

async fn fetch(conn: &mut Conn, caller: &Caller, id: WebhookEndpointId) -> Result<Endpoint> {
    queries::endpoint_fetch(conn, caller.account_id, id).await?.ok_or_else(no_endpoint)
}

/// The endpoint, locked, for a caller who may change it.
async fn lock(tx: &mut Tx<'_>, caller: &Caller, id: WebhookEndpointId) -> Result<Endpoint> {
    let found = queries::endpoint_lock(tx, id).await?.filter(|row| row.account_id == caller.account_id);
    let row = found.ok_or_else(no_endpoint)?;
    require(caller, &row.events)?;
    Ok(row)
}

/// Changes an endpoint. Enabling it forgets that it failed.
///
/// # Errors
/// As [`create`], and `not_found`.
pub async fn update(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId, form: &UpdateWebhookEndpoint) -> Result<WebhookEndpointView> {
    let now = ctx.clock.wall_now();
    let row = ctx
        .db
        .tx("webhook_endpoint_update", async |tx| {
            let mut row = lock(tx, caller, id).await?;
            let url = form.url.as_ref().unwrap_or(&row.url);
            let events = form.events.as_ref().unwrap_or(&row.events);
            let terms = Terms::check(ctx, url, events, form.description.as_ref().unwrap_or(&row.description))?;
            require(caller, &terms.events)?;
            Terms { url: row.url, events: row.events, description: row.description } = terms;
            if let Some(is_enabled) = form.is_enabled {
                if is_enabled && !row.is_enabled {
                    row.failing_since = None;
                }
                row.is_enabled = is_enabled;
                row.disabled_reason = row.disabled_reason.filter(|_| !is_enabled);
            }
            row.updated_at = now;
            queries::endpoint_update(tx, &row).await?;
            note(ctx, tx, caller, "webhook_endpoint.update", &row).await?;
            Ok(row)
        })
        .await?;
    Ok(WebhookEndpointView::new(row, now))
}

/// Deletes an endpoint with its log; what waited for it is not sent.
///
/// # Errors
/// `not_found`, `insufficient_scope` or `forbidden`.
pub async fn delete(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId) -> Result<()> {
    ctx.db
        .tx("webhook_endpoint_delete", async |tx| {
            let row = lock(tx, caller, id).await?;
            queries::endpoint_delete(tx, id).await?;
            note(ctx, tx, caller, "webhook_endpoint.delete", &row).await
        })
        .await
}

/// Gives the endpoint a new secret; the one it had signs too for a day.
///
/// # Errors
/// As [`delete`].
pub async fn rotate_secret(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId) -> Result<WebhookEndpointWithSecret> {
    let (secret, now) = (SigningSecret::new(), ctx.clock.wall_now());
    let sealed = seal(ctx, id, &secret)?;
    let row = ctx
        .db
        .tx("webhook_secret_rotate", async |tx| {
            let mut row = lock(tx, caller, id).await?;
            row.old_secret_sealed = Some(std::mem::replace(&mut row.secret_sealed, sealed.clone()));
            row.old_secret_until = Some(now + OVERLAP);
            row.updated_at = now;
            queries::endpoint_update(tx, &row).await?;
            note(ctx, tx, caller, "webhook_endpoint.rotate_secret", &row).await?;
            Ok(row)
        })
        .await?;
    Ok(WebhookEndpointWithSecret { view: WebhookEndpointView::new(row, now), secret: secret.text() })
}

fn require_enabled(row: &Endpoint) -> Result<()> {
    if row.is_enabled { Ok(()) } else { Err(Error::new(Code::InvalidState, "The endpoint is disabled: enable it first.")) }
}

/// Sends a `webhook.test` event to the endpoint, whatever it waits for.
///
/// # Errors
/// As [`delete`]; `invalid_state` for a disabled endpoint.
pub async fn send_test(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId) -> Result<WebhookDeliveryView> {
    let (event, now) = (WebhookEventId::new(), ctx.clock.wall_now());
    let body = body(TEST_EVENT, now, &json!({ "webhook_endpoint_id": id }))?;
    let new = NewEvent { id: event, account: caller.account_id, event_type: TEST_EVENT, body: &body, now };
    ctx.db
        .tx("webhook_test", async |tx| {
            let row = lock(tx, caller, id).await?;
            require_enabled(&row)?;
            // A secret that does not open would fail every try: better to hear of it now.
            open(ctx, id, &row.secret_sealed)?;
            queries::event_insert_for(tx, id, &new).await?;
            delivery(tx, id, event).await
        })
        .await
}

async fn delivery(conn: &mut Conn, id: WebhookEndpointId, event: WebhookEventId) -> Result<WebhookDeliveryView> {
    let row = queries::delivery_fetch(conn, id, event).await?.ok_or_else(|| Error::not_found("delivery"))?;
    WebhookDeliveryView::new(row)
}

/// What was sent to the endpoint and what waits, newest event first.
///
/// # Errors
/// `not_found`.
pub async fn deliveries(
    ctx: &Ctx,
    caller: &Caller,
    id: WebhookEndpointId,
    before: Option<WebhookEventId>,
    limit: i64,
) -> Result<Vec<WebhookDeliveryView>> {
    let mut conn = ctx.db.conn().await?;
    fetch(&mut conn, caller, id).await?;
    let rows = queries::delivery_list(&mut conn, id, before, limit).await?;
    rows.into_iter().map(WebhookDeliveryView::new).collect()
}

/// Tries a delivery again now, with the same id and bytes. One that was over gets this one try; one that waits goes on with its schedule.
///
/// # Errors
/// As [`delete`]; `invalid_state` for a disabled endpoint.
pub async fn retry(ctx: &Ctx, caller: &Caller, id: WebhookEndpointId, event: WebhookEventId) -> Result<WebhookDeliveryView> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("webhook_retry", async |tx| {
            let row = lock(tx, caller, id).await?;
            require_enabled(&row)?;
            queries::delivery_retry(tx, id, event, state::last_step(), now).await?;
            delivery(tx, id, event).await
        })
        .await
}
