//! Which Customer of Stripe's an account is. Owns `stripe_customers`.
//!
//! Invariants: an account has at most one; the row is committed before Stripe hears of it, and the request's idempotency key follows from the
//! row's id. Where no clear answer came, the customer that names the row is looked for; a new request is made under a new id only when none is
//! listed long after the first one must have ended.

mod model;
mod queries;
mod service;

pub use service::customer_of;
pub(super) use service::{forget, known_customer, lock_account, lock_customer};
