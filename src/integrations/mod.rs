//! The outside world: mail, Stripe, Redis, and what needs either or falls back to this process. No domain is known here.

pub mod limits;
pub mod mail;
pub mod pubsub;
pub mod redis;
pub mod stripe;
