//! Receipts of top-ups that have come in: the same facts as JSON and as a page to print. What paid is asked of Stripe once, and kept.

pub mod api;
mod document;
pub mod model;
mod queries;
mod service;
