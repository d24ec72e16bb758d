//! Delivering: taking what is due, sending it once outside any transaction, and writing down what came of it.

use chrono::TimeDelta;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use super::{allow_loopback, open};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    db::Tx,
    engines::{PostFault, PostRequest, Posted},
    identity,
    webhooks::{
        model::{DeliveryStatus, DisabledReason, Due, Endpoint, TryResult},
        queries::{self, TakeLimits},
        signature::signatures,
        state, target,
    },
};

/// Longer than a try can take; a process that ends in the middle of one leaves it to others after this.
const LEASE: TimeDelta = TimeDelta::seconds(60);
const PER_ENDPOINT: i64 = 2;
const KEPT: TimeDelta = TimeDelta::days(30);
const FORGET_ROWS: i64 = 5_000;

/// Takes up to `rows` deliveries that are due.
///
/// # Errors
/// The database's own faults.
pub async fn take_due(ctx: &Ctx, rows: i64) -> Result<Vec<Due>> {
    let now = ctx.clock.wall_now();
    let mut conn = ctx.db.conn().await?;
    queries::deliveries_take_due(&mut conn, now, now + LEASE, &TakeLimits { per_endpoint: PER_ENDPOINT, rows }).await
}

/// A try that has ended.
pub struct Sent {
    due: Due,
    posted: Posted,
}

/// Tries a delivery once. Never fails: what went wrong is written down like an answer.
pub async fn send(ctx: Ctx, due: Due) -> Sent {
    let posted = match request(&ctx, &due) {
        Ok(Some(request)) => ctx.posts.post(request).await,
        Ok(None) => not_sent(PostFault::ForbiddenAddress),
        Err(error) => {
            tracing::error!(webhook.endpoint = %due.endpoint_id, error = ?error, "a webhook could not be made");
            not_sent(PostFault::Unreachable)
        }
    };
    Sent { due, posted }
}

const fn not_sent(fault: PostFault) -> Posted {
    Posted { status: Err(fault), took: std::time::Duration::ZERO }
}

/// The request, signed now; `None` for an address that must not be reached any more.
fn request(ctx: &Ctx, due: &Due) -> Result<Option<PostRequest>> {
    let url = Url::parse(&due.url).map_err(Error::internal)?;
    let Some(reach) = target::reach(&url, allow_loopback(ctx)) else { return Ok(None) };
    let now = ctx.clock.wall_now();
    let mut secrets = vec![open(ctx, due.endpoint_id, &due.secret_sealed)?];
    if let Some(old) = due.old_secret_sealed.as_ref().filter(|_| due.old_secret_until.is_some_and(|until| until > now)) {
        secrets.push(open(ctx, due.endpoint_id, old)?);
    }
    let (id, timestamp) = (due.event_id.to_string(), now.timestamp());
    let signature = signatures(&secrets, &id, timestamp, &due.body)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [("webhook-id", id), ("webhook-timestamp", timestamp.to_string()), ("webhook-signature", signature)] {
        headers.insert(name, HeaderValue::try_from(value).map_err(Error::internal)?);
    }
    Ok(Some(PostRequest { url, reach, headers, body: due.body.clone().into() }))
}

/// Writes down what came of a try.
///
/// # Errors
/// The database's own faults; the delivery is then tried again when its lease has run out.
pub async fn record(ctx: &Ctx, sent: &Sent) -> Result<()> {
    let fault = state::fault(sent.posted.status);
    metrics::counter!("rigmark_webhook_tries_total", "outcome" => fault.unwrap_or("delivered")).increment(1);
    let permille = rand::random_range(0..=1_000);
    ctx.db
        .tx("webhook_record", async |tx| {
            let Some(endpoint) = queries::endpoint_lock(tx, sent.due.endpoint_id).await? else { return Ok(()) };
            if !queries::delivery_record(tx, &sent.due, &result(ctx, sent, permille)).await? {
                return Ok(());
            }
            match fault {
                None => note_success(tx, endpoint).await,
                Some(_) => note_failure(ctx, tx, endpoint, sent.posted).await,
            }
        })
        .await
}

fn result(ctx: &Ctx, sent: &Sent, permille: i64) -> TryResult {
    let now = ctx.clock.wall_now();
    let error = state::fault(sent.posted.status);
    let next_try_at = error.and_then(|_| state::pause(sent.due.step, permille)).map(|pause| now + pause);
    let status = match (error, next_try_at) {
        (None, _) => DeliveryStatus::Delivered,
        (Some(_), Some(_)) => DeliveryStatus::Pending,
        (Some(_), None) => DeliveryStatus::Failed,
    };
    TryResult {
        status,
        next_try_at,
        status_code: sent.posted.status.ok().map(i32::from),
        duration_ms: i32::try_from(sent.posted.took.as_millis()).unwrap_or(i32::MAX),
        error,
        tried_at: now,
    }
}

async fn note_success(tx: &mut Tx<'_>, mut endpoint: Endpoint) -> Result<()> {
    if endpoint.failing_since.take().is_none() {
        return Ok(());
    }
    queries::endpoint_update(tx, &endpoint).await
}

async fn note_failure(ctx: &Ctx, tx: &mut Tx<'_>, mut endpoint: Endpoint, posted: Posted) -> Result<()> {
    let now = ctx.clock.wall_now();
    let was_failing = endpoint.failing_since.is_some();
    let since = *endpoint.failing_since.get_or_insert(now);
    if let Some(reason) = state::disables(posted.status, since, now).filter(|_| endpoint.is_enabled) {
        endpoint.is_enabled = false;
        endpoint.disabled_reason = Some(reason.as_str().to_owned());
        endpoint.updated_at = now;
        tell(ctx, tx, &endpoint, reason).await?;
    } else if was_failing {
        return Ok(());
    }
    queries::endpoint_update(tx, &endpoint).await
}

async fn tell(ctx: &Ctx, tx: &mut Tx<'_>, endpoint: &Endpoint, reason: DisabledReason) -> Result<()> {
    let why = match reason {
        DisabledReason::Gone => "It answered that it is gone (status 410).",
        DisabledReason::Failing => "Nothing that was sent to it for five days was answered with a 2xx status.",
    };
    let text = format!(
        "Your webhook endpoint {} is disabled:\n\n{}\n\n{why} The log of its deliveries says more. What could not be delivered waits: enable the \
         endpoint again within 30 days, and it is sent.",
        endpoint.id, endpoint.url
    );
    tracing::info!(webhook.endpoint = %endpoint.id, reason = reason.as_str(), "webhook endpoint disabled");
    identity::service::notify(ctx, tx, endpoint.account_id, "Your webhook endpoint is disabled", &text).await
}

/// Forgets events after 30 days, with their deliveries, and secrets that no longer sign.
///
/// # Errors
/// The database's own faults.
pub async fn forget(ctx: &Ctx) -> Result<()> {
    let now = ctx.clock.wall_now();
    let mut conn = ctx.db.conn().await?;
    queries::old_secrets_forget(&mut conn, now).await?;
    while queries::events_forget(&mut conn, now - KEPT, FORGET_ROWS).await? > 0 {}
    Ok(())
}
