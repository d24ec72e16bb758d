//! Money of a top-up on its way back (money.md 21). Owns `refunds` and `stripe_scans`.
//!
//! Invariants:
//! - the amount leaves `available` for `stripe:refunds_in_transit` in the transaction that makes the row, before Stripe hears of it; what
//!   Stripe says later settles it (to `stripe:clearing`) or gives it back, each once, under ids that follow from the row;
//! - every step can be taken up again from the row: a refund that may or may not have arrived is looked for at Stripe, sent again under its own
//!   idempotency key, and given back when Stripe has never had it;
//! - refunds and disputes of a payment change only under the lock of its top-up, so that what is refunded and disputed of it never exceeds
//!   what was paid;
//! - Stripe's own list of a payment's refunds is what counts, whoever made them: one that was made in Stripe's dashboard is booked when it is
//!   seen, each once by its id, and may leave a debt, since the money has left.

pub mod api;
pub(super) mod history;
pub mod jobs;
pub mod model;
pub(super) mod queries;
pub mod service;
pub(super) mod settle;
