//! How a host's money leaves: the connected account at Stripe, payouts on demand and weekly, and what comes back. Owns `payout_accounts` and
//! `payouts`; what may be paid out stands in the ledger alone.
//!
//! Invariants:
//! - a payout's row and its transfer out of `payable` are one transaction, before Stripe hears of it: two at once never pay more than there is;
//! - Stripe's transfer is asked for under a key of the row and its attempt; the next attempt begins only when the last is known to have done
//!   nothing, and only after it was asked which transfer names the row;
//! - a payout moves forward only. What Stripe refuses or takes back is booked back once, by its cumulative figure;
//! - who owes, as a host or as a renter, is paid what is left of `payable` after the debt;
//! - one payout a week and account, whoever runs the sweep how often;
//! - an account that is gone stays gone; nothing is paid out to one that Stripe does not pay, or whose bank sent money back.
//!
//! Lock order: `stripe_events` row → `payout_accounts` row → `payouts` row → the ledger's.

pub mod api;
pub mod jobs;
mod letters;
pub mod model;
mod queries;
pub mod service;
mod state;
