//! Topping up by itself, when little is left. Owns `automatic_top_ups`.
//!
//! Invariants:
//! - at most one try an hour for an account, and none while another is under way: the next time is written, under the row's lock, in the
//!   transaction that commits the top-up, before Stripe hears of it, and the database refuses less;
//! - a try is a top-up like any other, so whoever learns what became of it settles it; here is only noted what that says about the next one;
//! - what the account has said stays: failures pause, and only the account turns it on again;
//! - a posting that takes the balance below the threshold marks the row (a trigger), so that a sweep need not look at every balance. The mark is
//!   taken back under the row's lock, with a balance read after it was had.
//!
//! Lock order: `top_ups`, the ledger's and `payment_methods` before `automatic_top_ups`.

pub mod api;
pub mod jobs;
pub mod model;
mod queries;
pub mod service;

pub(super) use service::{card_removed, note_outcome};
