//! All SQL of the webhooks' tables.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::{
    event::{ALL_EVENTS, EventType},
    model::{Delivery, DeliveryRow, DeliveryStatus, Due, Endpoint, TryResult},
};
use crate::{
    base::{
        Result,
        id::{AccountId, WebhookEndpointId, WebhookEventId},
    },
    db::{
        Conn, KeptDsl, Tx,
        schema::{webhook_deliveries, webhook_endpoints, webhook_events},
    },
};

pub async fn endpoint_insert(tx: &mut Tx<'_>, row: &Endpoint) -> Result<()> {
    diesel::insert_into(webhook_endpoints::table).values(row).execute(&mut **tx).await?;
    Ok(())
}

pub async fn endpoint_count(tx: &mut Tx<'_>, account: AccountId) -> Result<i64> {
    Ok(webhook_endpoints::table.filter(webhook_endpoints::account_id.eq(account)).count().get_result(&mut **tx).await?)
}

pub async fn endpoint_fetch(conn: &mut Conn, account: AccountId, id: WebhookEndpointId) -> Result<Option<Endpoint>> {
    let query = webhook_endpoints::table.find(id.uuid()).filter(webhook_endpoints::account_id.eq(account));
    Ok(query.select(Endpoint::as_select()).first(conn).await.optional()?)
}

/// Locks the row until the transaction ends; events may still be written for it.
pub async fn endpoint_lock(tx: &mut Tx<'_>, id: WebhookEndpointId) -> Result<Option<Endpoint>> {
    let query = webhook_endpoints::table.find(id.uuid()).select(Endpoint::as_select());
    Ok(query.for_no_key_update().first(&mut **tx).await.optional()?)
}

/// Writes the row back; the caller holds its lock.
pub async fn endpoint_update(tx: &mut Tx<'_>, row: &Endpoint) -> Result<()> {
    diesel::update(webhook_endpoints::table.find(row.id.uuid())).set(row).execute(&mut **tx).await?;
    Ok(())
}

/// With its deliveries.
pub async fn endpoint_delete(tx: &mut Tx<'_>, id: WebhookEndpointId) -> Result<()> {
    diesel::delete(webhook_endpoints::table.find(id.uuid())).execute(&mut **tx).await?;
    Ok(())
}

/// Newest first.
pub async fn endpoint_list(conn: &mut Conn, account: AccountId, before: Option<WebhookEndpointId>, limit: i64) -> Result<Vec<Endpoint>> {
    let mut query = webhook_endpoints::table
        .filter(webhook_endpoints::account_id.eq(account))
        .order(webhook_endpoints::id.desc())
        .limit(limit)
        .select(Endpoint::as_select())
        .into_boxed();
    if let Some(before) = before {
        query = query.filter(webhook_endpoints::id.lt(before));
    }
    Ok(query.load(conn).await?)
}

#[derive(QueryableByName)]
struct Waiting {
    #[diesel(sql_type = sql_types::Uuid)]
    account_id: AccountId,
}

/// Those of the accounts that have an endpoint which waits for such an event.
pub async fn accounts_waiting_for(conn: &mut Conn, accounts: &[AccountId], event: EventType) -> Result<Vec<AccountId>> {
    let ids: Vec<uuid::Uuid> = accounts.iter().map(|account| account.uuid()).collect();
    let query = diesel::sql_query(
        "SELECT DISTINCT account_id FROM webhook_endpoints WHERE account_id = ANY($1) AND is_enabled AND events && ARRAY[$2, $3]",
    )
    .bind::<sql_types::Array<sql_types::Uuid>, _>(ids)
    .bind::<sql_types::Text, _>(event.as_str())
    .bind::<sql_types::Text, _>(ALL_EVENTS);
    let found: Vec<Waiting> = query.kept().load(conn).await?;
    Ok(found.into_iter().map(|row| row.account_id).collect())
}

/// An event to be written.
pub struct NewEvent<'a> {
    pub id: WebhookEventId,
    pub account: AccountId,
    pub event_type: &'a str,
    pub body: &'a str,
    pub now: DateTime<Utc>,
}

/// Writes the event and a delivery for each endpoint that waits for it; nothing where none does. The lock keeps an endpoint from being deleted
/// between being found and being referred to, which would fail the caller's transaction.
pub async fn event_insert(tx: &mut Tx<'_>, new: &NewEvent<'_>) -> Result<()> {
    let query = diesel::sql_query(
        "WITH waiting AS (
            SELECT id FROM webhook_endpoints WHERE account_id = $1 AND is_enabled AND events && ARRAY[$2, $6] FOR KEY SHARE),
         event AS (
            INSERT INTO webhook_events (id, account_id, event_type, body, created_at)
            SELECT $3, $1, $2, $4, $5 WHERE EXISTS (SELECT FROM waiting) RETURNING id)
         INSERT INTO webhook_deliveries (endpoint_id, event_id, status, next_try_at, created_at)
         SELECT waiting.id, event.id, 'pending', $5, $5 FROM waiting, event",
    )
    .bind::<sql_types::Uuid, _>(new.account)
    .bind::<sql_types::Text, _>(new.event_type)
    .bind::<sql_types::Uuid, _>(new.id)
    .bind::<sql_types::Text, _>(new.body)
    .bind::<sql_types::Timestamptz, _>(new.now)
    .bind::<sql_types::Text, _>(ALL_EVENTS);
    query.kept().execute(&mut **tx).await?;
    Ok(())
}

/// The same for one endpoint, whatever it waits for.
pub async fn event_insert_for(tx: &mut Tx<'_>, endpoint: WebhookEndpointId, new: &NewEvent<'_>) -> Result<()> {
    diesel::insert_into(webhook_events::table)
        .values((
            webhook_events::id.eq(new.id),
            webhook_events::account_id.eq(new.account),
            webhook_events::event_type.eq(new.event_type),
            webhook_events::body.eq(new.body),
            webhook_events::created_at.eq(new.now),
        ))
        .execute(&mut **tx)
        .await?;
    diesel::insert_into(webhook_deliveries::table)
        .values((
            webhook_deliveries::endpoint_id.eq(endpoint),
            webhook_deliveries::event_id.eq(new.id),
            webhook_deliveries::status.eq(DeliveryStatus::Pending.as_str()),
            webhook_deliveries::next_try_at.eq(new.now),
            webhook_deliveries::created_at.eq(new.now),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many deliveries are taken at once.
pub struct TakeLimits {
    pub per_endpoint: i64,
    pub rows: i64,
}

/// Takes what is due by `now`, until `until`: nobody else tries it meanwhile, and somebody does afterwards. Of one endpoint no more than the
/// limit is under way. The walk from endpoint to endpoint reads one index entry each, so a long queue of one costs the others nothing.
pub async fn deliveries_take_due(conn: &mut Conn, now: DateTime<Utc>, until: DateTime<Utc>, limits: &TakeLimits) -> Result<Vec<Due>> {
    let query = diesel::sql_query(
        "WITH RECURSIVE waiting AS (
            (SELECT endpoint_id FROM webhook_deliveries WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
            UNION ALL
            SELECT (SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.status = 'pending' AND d.endpoint_id > w.endpoint_id
                    ORDER BY d.endpoint_id LIMIT 1)
            FROM waiting w WHERE w.endpoint_id IS NOT NULL),
         due AS (
            SELECT d.endpoint_id, d.event_id FROM waiting w
            JOIN webhook_endpoints e ON e.id = w.endpoint_id AND e.is_enabled
            CROSS JOIN LATERAL (
                SELECT p.endpoint_id, p.event_id, p.next_try_at FROM webhook_deliveries p
                WHERE p.endpoint_id = e.id AND p.status = 'pending' AND p.next_try_at <= $1
                  AND (p.lease_until IS NULL OR p.lease_until <= $1)
                ORDER BY p.next_try_at
                LIMIT greatest(0, $3 - (SELECT count(*) FROM webhook_deliveries b WHERE b.endpoint_id = e.id AND b.lease_until > $1))
                FOR UPDATE SKIP LOCKED) d
            ORDER BY d.next_try_at LIMIT $4)
         UPDATE webhook_deliveries t SET lease_until = $2, attempt = t.attempt + 1, step = t.step + 1
         FROM due, webhook_endpoints e, webhook_events v
         WHERE t.endpoint_id = due.endpoint_id AND t.event_id = due.event_id AND e.id = t.endpoint_id AND v.id = t.event_id
         RETURNING t.endpoint_id, t.event_id, t.attempt, t.step, e.url, e.secret_sealed, e.old_secret_sealed, e.old_secret_until, v.body",
    )
    .bind::<sql_types::Timestamptz, _>(now)
    .bind::<sql_types::Timestamptz, _>(until)
    .bind::<sql_types::BigInt, _>(limits.per_endpoint)
    .bind::<sql_types::BigInt, _>(limits.rows);
    Ok(query.kept().load(conn).await?)
}

/// Writes down what came of a try. False when it counts no more: the delivery was deleted, or, for a failure, delivered by another or taken
/// again meanwhile.
pub async fn delivery_record(tx: &mut Tx<'_>, due: &Due, result: &TryResult) -> Result<bool> {
    let key = webhook_deliveries::table.find((due.endpoint_id.uuid(), due.event_id.uuid()));
    let set = (
        webhook_deliveries::status.eq(result.status.as_str()),
        webhook_deliveries::next_try_at.eq(result.next_try_at),
        webhook_deliveries::lease_until.eq(None::<DateTime<Utc>>),
        webhook_deliveries::status_code.eq(result.status_code),
        webhook_deliveries::duration_ms.eq(result.duration_ms),
        webhook_deliveries::error.eq(result.error),
        webhook_deliveries::tried_at.eq(result.tried_at),
    );
    let changed = if result.status == DeliveryStatus::Delivered {
        diesel::update(key).set(set).execute(&mut **tx).await?
    } else {
        let own =
            key.filter(webhook_deliveries::attempt.eq(due.attempt)).filter(webhook_deliveries::status.eq(DeliveryStatus::Pending.as_str()));
        diesel::update(own).set(set).execute(&mut **tx).await?
    };
    Ok(changed == 1)
}

/// Newest event first.
pub async fn delivery_list(
    conn: &mut Conn,
    endpoint: WebhookEndpointId,
    before: Option<WebhookEventId>,
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let mut query = webhook_deliveries::table
        .inner_join(webhook_events::table)
        .filter(webhook_deliveries::endpoint_id.eq(endpoint))
        .order(webhook_deliveries::event_id.desc())
        .limit(limit)
        .select((webhook_events::id, webhook_events::event_type, Delivery::as_select()))
        .into_boxed();
    if let Some(before) = before {
        query = query.filter(webhook_deliveries::event_id.lt(before));
    }
    Ok(query.load(conn).await?)
}

pub async fn delivery_fetch(conn: &mut Conn, endpoint: WebhookEndpointId, event: WebhookEventId) -> Result<Option<DeliveryRow>> {
    let query = webhook_deliveries::table.inner_join(webhook_events::table).filter(webhook_deliveries::endpoint_id.eq(endpoint));
    let query = query.filter(webhook_deliveries::event_id.eq(event));
    Ok(query.select((webhook_events::id, webhook_events::event_type, Delivery::as_select())).first(conn).await.optional()?)
}

/// Lets a delivery be tried at `now`, unless somebody is trying it. `step`: where in the schedule one that was over goes on.
pub async fn delivery_retry(
    tx: &mut Tx<'_>,
    endpoint: WebhookEndpointId,
    event: WebhookEventId,
    step: i32,
    now: DateTime<Utc>,
) -> Result<()> {
    let query = diesel::sql_query(
        "UPDATE webhook_deliveries SET step = CASE status WHEN 'pending' THEN least(step, $3) ELSE $3 END, status = 'pending', next_try_at = $4
         WHERE endpoint_id = $1 AND event_id = $2 AND (lease_until IS NULL OR lease_until <= $4)",
    );
    query
        .bind::<sql_types::Uuid, _>(endpoint)
        .bind::<sql_types::Uuid, _>(event)
        .bind::<sql_types::Integer, _>(step)
        .bind::<sql_types::Timestamptz, _>(now)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Forgets at most `limit` events from before `before`, with their deliveries; returns how many.
pub async fn events_forget(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<usize> {
    let query = diesel::sql_query(
        "DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
    );
    let query = query.bind::<sql_types::Timestamptz, _>(before).bind::<sql_types::BigInt, _>(limit);
    Ok(query.kept().execute(conn).await?)
}

/// Forgets secrets that no longer sign.
pub async fn old_secrets_forget(conn: &mut Conn, now: DateTime<Utc>) -> Result<()> {
    diesel::update(webhook_endpoints::table.filter(webhook_endpoints::old_secret_until.le(now)))
        .set((webhook_endpoints::old_secret_sealed.eq(None::<Vec<u8>>), webhook_endpoints::old_secret_until.eq(None::<DateTime<Utc>>)))
        .execute(conn)
        .await?;
    Ok(())
}
