//! A month's invoice: the statement of one UTC month with every rental by itself, for renter and host alike. Owns no table: it is a fold of
//! the ledger's postings, so a month that is over comes out the same whenever it is asked for, but for corrections booked into it later.
//!
//! Invariants, or nothing is shown: opening + credits − charges = closing; what the rentals changed and what the other lines changed is
//! credits − charges; of each rental, host share + fee = gross. All to the micro-dollar.
//!
//! Rentals bear no tax lines: the platform bills none. What Stripe bills (Pro) comes with the tax lines that Stripe gives it, in
//! [`model::StripeInvoiceView`]; `service::stripe_invoices` is where they are read.

pub mod api;
mod document;
pub mod model;
mod service;
