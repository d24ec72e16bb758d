//! Reconciliation (money.md 9): are the books, Stripe and what runs of one mind?
//!
//! Owns `stripe_balance_transactions`, `reconciliations` and `reconciliation_findings`; it reads the tables of the ledger, of rentals, machines
//! and listings, and writes to none of them: what it finds is for an operator. Three comparisons:
//! - the books with their postings (`ledger::service::reconcile`);
//! - rentals that are not over with what they hold (money, machine, signs of life, an open span of billed time, the meter's last tick), and the
//!   other way round: what is held for a rental that is over or was never made;
//! - the ledger's `stripe:clearing` and `stripe:refunds_in_transit` with Stripe's balance transactions, payment by payment. A refund leaves
//!   Stripe's balance when it is asked for, and `refunds_in_transit` has it until then, so the two together are what Stripe has.
//!
//! Stripe's processing fees are no posting: they are the platform's cost, not an account's, and stand in no transfer. Gross amounts are
//! compared; the fees are summed beside them, so that clearing = −(Σ net + Σ fees) but for the platform's own movements (its payouts to its
//! bank, fees that Stripe bills by themselves, reserves), which are summed apart and compared with nothing. That a charge is not available yet
//! at Stripe does not matter: it has a balance transaction from its first moment.
//!
//! Invariants: it takes no input, may run at any time and any number of times; of two at once one does nothing (a lease in the one row of
//! `reconciliations`). Stripe is asked outside transactions, and no row of anyone else's is locked. What Stripe and we cannot both know yet is
//! no finding: a difference counts when nothing has moved it for [`GRACE_HOURS`].
//!
//! Stripe's list is read by spans of its own time, each page stored as it comes; the position moves past a span once all of it is stored, and
//! the last hour is read again each time, so that what Stripe lists late is not missed.

pub mod api;
pub mod jobs;
mod model;
mod queries;
mod service;

pub use model::{FindingKind, FindingView, ReconciliationView, StripeSums};
pub use service::{latest, run};

/// A difference between Stripe and the books that is younger is waited out.
pub const GRACE_HOURS: i64 = 24;
