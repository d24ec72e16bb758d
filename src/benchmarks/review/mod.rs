//! Review: the queue of runs that wait for a person, and what an operator reads beside one. The acts are `service::review`.
//!
//! Invariants: a run waits while its verdict is `needs_review`; since when and why is what its history says last; nothing else is kept of it.

pub mod model;
pub(super) mod queries;
