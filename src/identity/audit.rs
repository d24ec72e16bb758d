//! The audit: who did what to what. Append-only; the table refuses changes.

use chrono::{DateTime, Utc};

use super::{
    caller::{Actor, Caller},
    queries::accounts::{self, NewAuditEvent},
};
use crate::{
    base::{Result, id::AccountId},
    db::Tx,
};

/// Who acts.
#[derive(Clone, Copy)]
pub enum By<'a> {
    Caller(&'a Caller),
    /// A person without a token at hand: registering, or resetting a password.
    User(AccountId),
    /// The program itself, or somebody at its command line.
    System,
}

/// An act. `details` hold no secret and no e-mail address.
pub struct Act<'a> {
    pub by: By<'a>,
    /// Whose affairs it concerns.
    pub account_id: Option<AccountId>,
    /// `noun.verb`: `member.remove`.
    pub action: &'static str,
    /// The id of what was acted on, as text.
    pub target: String,
    pub details: serde_json::Value,
    pub at: DateTime<Utc>,
}

/// Writes an act down in the transaction that does it.
///
/// # Errors
/// The database's own faults.
pub async fn audit(tx: &mut Tx<'_>, act: Act<'_>) -> Result<()> {
    let (actor_user_id, actor_key_id) = match act.by {
        By::Caller(caller) => match caller.actor {
            Actor::User => (Some(caller.user_id), None),
            Actor::ApiKey(key) => (Some(caller.user_id), Some(key)),
        },
        By::User(id) => (Some(id), None),
        By::System => (None, None),
    };
    tracing::info!(target: "audit", action = act.action, audit.target = act.target, actor.user = actor_user_id.map(tracing::field::display));
    let event = NewAuditEvent {
        at: act.at,
        actor_user_id,
        actor_key_id,
        account_id: act.account_id,
        action: act.action,
        target: act.target,
        details: act.details,
    };
    accounts::audit_event_insert(tx, event).await
}
