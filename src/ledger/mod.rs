//! The books: accounts of money, transfers, holds, balances and statements (money.md 1–8). Knows no domain but identity, for who calls.
//!
//! Owns `ledger_accounts`, `transfers`, `postings`, `holds`, `account_freezes` and `earnings_maturity`. Each account of the marketplace has four ledger accounts, opened by their first
//! posting: `available` (to spend), `held` (set aside for rentals), `earnings` (a host's, not payable yet) and `payable`. What the platform
//! owes is positive there, so money that comes in is taken from a ledger account that goes negative: `stripe:clearing`, or `sandbox:mint`
//! for play money. The balances of all ledger accounts together are zero at any time.
//!
//! Invariants, all of which the database enforces by itself (the migration `create_ledger` says how):
//! - a transfer has two or more postings that sum to zero, at most one for each ledger account; neither is changed, deleted or added to later;
//! - a balance is the sum of its postings, a hold's amounts are the sums of its transfers' postings to `held`;
//! - no balance goes below zero, except those of the platform's own side; a chargeback, a correction or a refund that was made at Stripe may
//!   take `available` or `earnings` there (`overdraft_micros`), and everything but money coming in is refused until it is paid;
//! - a frozen account (`account_freezes`) sets no money aside for a new rental, whatever it has;
//! - from a hold no more is captured and released than it has, and nothing once it is closed;
//! - an id is posted once. Posting it again with the same content is a success that changes nothing; other content is a fault.
//!
//! Lock order: rental row → hold, or a host's `earnings_maturity` row → ledger accounts in id order. The first byte of a ledger account's id is its rank: `available`, `held`,
//! `earnings`, `payable`, then the platform's own. Every step of a hold locks `available` of its owner, whether it moves it or not: so the steps
//! of a rental may follow each other in one transaction, in any order, without a deadlock with another rental of the same parties. The
//! platform's own rows are hot: do little in a transaction after a capture.
#![deny(clippy::float_arithmetic, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod api;
mod code;
mod document;
pub mod jobs;
mod metering;
pub mod model;
mod period;
mod queries;
pub mod service;

pub use code::TransferCode;
pub use metering::Charge;
pub use model::{Actor, LedgerAccount};
pub use period::Period;
