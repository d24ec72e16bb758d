//! Saved cards. Owns `payment_methods` and `card_setups`.
//!
//! Invariants:
//! - Stripe keeps the cards; here stands what they are known by, as Stripe showed it last: an answer to an earlier question changes nothing;
//! - a card belongs to the account whose customer it is attached to, whoever names it;
//! - what was removed is charged no more and does not come back, whatever Stripe says later: at Stripe, too, detaching is for good;
//! - an account has at most one default; a card that is removed takes automatic top-up with it.
//!
//! Lock order: `card_setups` → `stripe_customers` → `payment_methods` → `automatic_top_ups`.

pub mod api;
pub mod jobs;
pub mod model;
mod queries;
mod service;

pub(super) use service::{
    MethodSeen, Saved, SetupSeen, customer_deleted, default_method, method_seen, record_method, record_setup, saved_method,
    setup_checkout_seen, setup_seen,
};
