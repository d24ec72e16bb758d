//! Stripe, as narrow as billing needs it: payments, hosted checkouts, refunds, disputes, customers with their saved cards, the accounts that hosts
//! are paid through, subscriptions, and the signature of webhooks, in types of our own.
//!
//! Invariants: nothing here is called inside a transaction. A request that changes something carries an idempotency key that follows from a row
//! of ours, so that sending it again does nothing twice. Whether a request that got no clear answer was done is never guessed:
//! [`StripeFault::Unknown`] says so, and the caller asks with `payment_find`, `checkout_find` and the like, by the row's id in the object's metadata. Only the
//! fields that are needed are read; a status that is not known is a fault. Neither keys nor client secrets are ever part of a message.

mod balance;
mod cards;
mod client;
mod connect;
mod customers;
mod disputes;
mod objects;
mod payments;
mod refunds;
mod signature;
mod subscriptions;

pub use balance::{BalanceSpan, BalanceTransaction};
pub use cards::{CardMark, NewSetup, NewSetupCheckout, SavedMethod, Setup};
pub use client::{Refusal, Stripe, StripeFault};
pub use connect::{BankPayout, ConnectedAccount, NewTransfer, OnboardingLink, StripeTransfer};
pub use customers::{Customer, NewCustomer};
pub use disputes::{StripeDispute, StripeDisputeStatus};
pub use objects::{BankPayoutStatus, Checkout, CheckoutStatus, Payment, PaymentStatus, SetupStatus};
pub use payments::{Find, NewCheckout, NewPayment};
pub use refunds::{Charge, NewRefund, StripeRefund, StripeRefundStatus};
pub use signature::{SIGNATURE_HEADER, is_signed};
pub use subscriptions::{Change, Invoice, InvoiceStatus, NewSubscription, Price, Subscription, SubscriptionStatus, TaxLine};
