//! Saying that something happened, in the transaction in which it does.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::{
    base::{
        Error, Result,
        id::{AccountId, WebhookEventId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    webhooks::{
        event::EventType,
        queries::{self, NewEvent},
    },
};

/// What is sent.
#[derive(Serialize)]
struct Body<'a, T> {
    #[serde(rename = "type")]
    event_type: &'a str,
    timestamp: String,
    data: &'a T,
}

/// The body of an event, byte for byte as it is signed and sent at every try.
pub(super) fn body(event_type: &str, now: DateTime<Utc>, data: &impl Serialize) -> Result<String> {
    let timestamp = now.to_rfc3339_opts(SecondsFormat::Micros, true);
    serde_json::to_string(&Body { event_type, timestamp, data }).map_err(Error::internal)
}

/// Tells the account's endpoints that wait for `event`, once this transaction has committed. `data` is what the API shows of the thing, with
/// nothing in it that the account may not see. Costs one statement, and writes nothing where nobody waits.
///
/// # Errors
/// The database's own faults.
pub async fn emit(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId, event: EventType, data: &impl Serialize) -> Result<()> {
    let now = ctx.clock.wall_now();
    let body = body(event.as_str(), now, data)?;
    let new = NewEvent { id: WebhookEventId::new(), account, event_type: event.as_str(), body: &body, now };
    queries::event_insert(tx, &new).await
}

/// Those of the accounts with an endpoint that waits for `event`: for callers whose `data` takes statements of its own to make.
///
/// # Errors
/// The database's own faults.
pub async fn accounts_waiting_for(conn: &mut Conn, accounts: &[AccountId], event: EventType) -> Result<Vec<AccountId>> {
    queries::accounts_waiting_for(conn, accounts, event).await
}
