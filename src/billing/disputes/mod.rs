//! Payments that a bank asks about or takes back (money.md 17, 21). Owns `disputes`.
//!
//! Invariants:
//! - what Stripe has taken and given back in all is what is booked, each step once, under ids that follow from the dispute and the sum: a
//!   chargeback may leave a debt, which is paid before anything else can be had;
//! - while a dispute is open its amount is out of reach: by the chargeback when the money was taken, otherwise (an inquiry takes none) by a
//!   hold of what there is of it; it counts as disputed of its payment, so no refund can have it; and the account rents nothing new;
//! - a dispute moves forward only, and money follows Stripe's figures, not the status; what is lost stays booked;
//! - Stripe's fee for a dispute is the platform's: it is kept beside the dispute and charged to nobody.
//!
//! Everything here happens under the lock of the payment's top-up.

pub mod api;
pub(super) mod evidence;
pub mod jobs;
pub mod model;
pub(super) mod queries;
pub mod service;
pub(super) mod settle;
