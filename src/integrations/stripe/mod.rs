//! Stripe, as narrow as billing needs it: payments, hosted checkouts, subscriptions, and the signature of webhooks, in types of our own.
//!
//! Invariants: nothing here is called inside a transaction. A request that changes something carries an idempotency key that follows from a row
//! of ours, so that sending it again does nothing twice. Whether a request that got no clear answer was done is never guessed:
//! [`StripeFault::Unknown`] says so, and the caller asks with `payment_find` or `checkout_find`, by the row's id in the object's metadata. Only the
//! fields that are needed are read; a status that is not known is a fault. Neither keys nor client secrets are ever part of a message.

mod client;
mod customers;
mod objects;
mod payments;
mod signature;
mod subscriptions;

pub use client::{Refusal, Stripe, StripeFault};
pub use customers::{Customer, NewCustomer};
pub use objects::{Checkout, CheckoutStatus, Payment, PaymentStatus};
pub use payments::{Find, NewCheckout, NewPayment};
pub use signature::{SIGNATURE_HEADER, is_signed};
pub use subscriptions::{Change, Invoice, InvoiceStatus, NewSubscription, Price, Subscription, SubscriptionStatus, TaxLine};
