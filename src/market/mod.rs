//! The market: listings, the gate they pass, quotes, and the search.
//!
//! Invariants:
//! - a machine has one open listing; a published one is backed by a run that passes [`gate`], or a sweep or job takes it off the market and
//!   says why; running rentals go on;
//! - a price is for the whole machine, in the list, the quote, the hold and the ledger; a change of price touches no rental and no quote;
//! - renting and leaving the market at the same instant have one winner: both lock the listing's row ([`service::take_terms`]);
//! - the copies of a machine's and a run's facts in a listing are for filtering only; what is shown and what is agreed is read from the rows.
//!
//! Lock order: the listing's row, then the machine's row and its watches.

pub mod api;
pub mod gate;
mod input;
pub mod jobs;
pub mod model;
pub mod pages;
pub mod price;
mod queries;
mod quote;
pub mod saved_searches;
mod search;
pub mod service;
pub mod state;
pub mod workload;

pub use gate::Unmet;
pub use jobs::{ListingEvidence, ListingOfferedHandler, MachineChangedHandler, RunChangedHandler};
