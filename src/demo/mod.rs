//! The demo: a sandbox filled with sample data that is genuine. Its people register, its machines are measured against simulated engines in
//! this process, its listings pass the gate and its rentals are paid, all through the API.
//!
//! Invariants: filling may be cut off at any point and done again; it completes what is missing and doubles nothing. Each step first looks
//! whether its outcome is there, and what could still happen twice carries an `Idempotency-Key`. It acts only through the demo's own accounts,
//! so that it cannot touch anybody else's data, and it never moves the clock.

pub mod cast;
mod client;
mod engines;
mod fill;
mod machine;
mod progress;
mod rentals;

pub use engines::Engines;
pub use fill::fill;
pub use progress::Display;
