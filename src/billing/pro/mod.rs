//! Pro, sold as a subscription at Stripe; in the sandbox for play money. Owns `pro_subscriptions` and `pro_invoices`.
//!
//! Invariants:
//! - the row of a subscription is committed before Stripe hears of it, and an account has one that is open;
//! - whoever learns something (the answer, a webhook, the poller) fetches subscription and invoices and hands them to `service::settle::record`
//!   under the row's lock: the status moves forward only, and one that has ended never comes back;
//! - a paid invoice is booked once, under an id that follows from it, whatever the status is by then;
//! - what a row gives (`pro_until`, `renews`) follows from status, period and invoices (`state::pro_of`), and what an account has of Pro from its
//!   rows, in the same transaction; `identity::service::entitlements` is the one place that is asked.
//!
//! Time: Stripe's instants are wall time, and Pro is business time. Where there is a Stripe, both are the same; in the sandbox there is only
//! business time.
//!
//! Seats: an organization pays for as many members as it has or more. While Pro is on nobody joins beyond them; fewer than there are
//! members cannot be bought; who is there when fewer are set at Stripe itself stays.
//!
//! Lock order: all of the account's `pro_subscriptions`, by id → `entitlements` → the ledger's.

pub mod api;
pub mod model;
pub(in crate::billing) mod queries;
pub mod service;
mod state;
