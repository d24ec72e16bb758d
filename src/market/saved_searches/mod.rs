//! Saved searches: the market's parameters under a name, which write to their account when something new fits.
//!
//! Invariants: a search tells of a listing once, whatever becomes of the listing afterwards; what fits is decided by the search itself
//! (`queries::search`), so it is what a reader would find; an account that has lost Pro keeps its searches, and hears nothing meanwhile.

pub mod api;
pub mod model;
pub(super) mod queries;
mod service;

pub(super) use service::offered;
pub use service::tell;

/// Kind of the job that follows a listing which came on the market or changed there. Its payload is [`model::ListingOffered`].
pub const LISTING_OFFERED: &str = "listing_offered";
