//! How money enters and leaves: top-ups through Stripe, their refunds and disputes, payouts, what Pro costs ([`pro`]), and in the sandbox play
//! money. Owns `top_ups` and `stripe_events`; what money there is stands in the ledger alone.
//!
//! Invariants:
//! - play money exists in the sandbox only; elsewhere its routes do not exist;
//! - Stripe is never asked inside a transaction: what it said is an `Observation`, which a transaction then writes;
//! - the row of a top-up is committed before Stripe hears of it, so that whatever happens there can be found by the row's id;
//! - a top-up moves forward only, and is credited under an id that follows from its PaymentIntent: success page, webhook and poller may come
//!   in any order, any number of times, and give one credit;
//! - an event of Stripe's is noted under its id in the transaction of its effect, and says nothing but which object to fetch.
//!
//! Lock order: `stripe_events` row → `top_ups` row → its `refunds` and `disputes` → the ledger's → `automatic_top_ups` row.
#![deny(clippy::float_arithmetic, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod api;
pub mod automatic;
pub mod cards;
pub mod customers;
pub mod disputes;
pub mod invoices;
pub mod jobs;
pub mod model;
pub mod payouts;
pub mod pro;
mod queries;
pub mod receipts;
pub mod reconcile;
pub mod refunds;
pub mod service;
mod state;

pub use reconcile::{FindingKind, ReconciliationView, StripeSums, latest as reconciliation_latest};
