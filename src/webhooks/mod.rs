//! Outgoing webhooks: accounts name addresses, earlier and later domains say what happened, and a sweep tells the addresses, as the Standard
//! Webhooks specification has it (<https://www.standardwebhooks.com>). Owns `webhook_endpoints`, `webhook_events` and `webhook_deliveries`.
//!
//! Invariants:
//! - an event is written in the transaction of what it tells, or not at all; where no endpoint waits for it nothing is written;
//! - a delivery is tried until a receiver has answered 2xx or the schedule is over: at least once, with the same id and the same bytes, in no
//!   order;
//! - nothing is sent while a transaction is open; a try holds a lease, and of one endpoint only few are under way, so that a slow receiver
//!   keeps nobody waiting but itself;
//! - every try looks the receiver's name up anew and connects to what was checked (`engines::PostClient`); redirects are not followed;
//! - a secret is shown once and sealed at rest;
//! - whoever sets up or changes an endpoint has the write scopes of all that it is told.
//!
//! Lock order: the endpoint, then its deliveries. [`service::emit`] locks endpoints against being deleted only, after whatever its caller holds.
//!
//! Wall time throughout: moving the sandbox's clock delivers nothing.

pub mod api;
mod event;
mod jobs;
pub mod model;
mod queries;
pub mod service;
mod signature;
mod state;
mod target;

pub use event::EventType;
pub use jobs::{Deliver, ForgetEvents};
pub use state::RETRY_SECONDS;
