//! What every service may use, built once by `app` and passed in; nothing is global.

use std::{collections::HashSet, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    base::{Result, answers::Answers, clock::Clock, offload::Offload},
    config::Config,
    db::{self, Conn, Db, Tx},
    engines::{EngineClient, PostClient},
    integrations::{limits::Limits, pubsub::PubSub, stripe::Stripe},
    jobs::Registry,
};

/// The state of a process. Cheap to clone.
#[derive(Clone)]
pub struct Ctx(Arc<Inner>);

pub struct Inner {
    pub config: Config,
    /// The address users see, without a trailing slash.
    pub public_url: String,
    pub db: Db,
    pub clock: Clock,
    /// Answers to public reads, kept for a moment.
    pub answers: Answers,
    /// Reaches the engines of machines, at checked addresses only.
    pub engines: EngineClient,
    /// Sends webhooks, at checked addresses only.
    pub posts: PostClient,
    /// None in the sandbox.
    pub stripe: Option<Stripe>,
    /// Rate limits, shared with the other processes through Redis when there is one.
    pub limits: Limits,
    /// Hints to listeners that something changed (`integrations::pubsub`).
    pub notices: PubSub,
    /// Handles nobody can register: publishers and the words of our own paths.
    pub reserved_handles: HashSet<String>,
    pub registry: Registry,
    /// Held while this process moves the business clock; the others wait here, without a connection.
    pub clock_moves: tokio::sync::Mutex<()>,
    /// The gate of argon2, whose every run takes tens of milliseconds and megabytes.
    pub password_hashing: Offload,
}

impl std::ops::Deref for Ctx {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Ctx {
    pub fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Business time (`base::clock`), read on the connection at hand.
    ///
    /// # Errors
    /// The database's own faults.
    pub async fn business_now(&self, conn: &mut Conn) -> Result<DateTime<Utc>> {
        db::business_now(conn, &self.clock).await
    }

    /// Business time that no move of the sandbox's clock changes before the transaction ends.
    ///
    /// # Errors
    /// The database's own faults.
    pub async fn business_now_held(&self, tx: &mut Tx<'_>) -> Result<DateTime<Utc>> {
        db::business_now_held(tx, &self.clock).await
    }
}
