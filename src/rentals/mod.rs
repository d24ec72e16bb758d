//! Rentals: the state machine, metering, and statements of use.
//!
//! Owns `rentals`, `rental_segments` and `rental_events`. Invariants:
//! - A machine is in at most one rental at any instant: the exclusion constraint `rentals_machine_taken`, not a check before the write.
//! - Only an active rental bills, through the last instant at which the machine is known to have been there; what is billed is cumulative from
//!   a segment's start, so the number of ticks never matters.
//! - Nothing is charged beyond the hold, and nothing twice: the transfer of each step has an id derived from the rental and a counter that
//!   moves in the same transaction.
//!
//! Lock order: listing → rental → machine → hold → money accounts. Reaching the machine happens outside any transaction.

pub mod api;
pub mod jobs;
pub mod model;
mod queries;
pub mod service;
pub mod state;
