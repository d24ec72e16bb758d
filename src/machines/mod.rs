//! Machines: physical computers that hosts register, the connection to their engine, and their signs of life.
//!
//! Invariants:
//! - an engine's key is encrypted at rest, shown to nobody, and never sent to another address than the one it was given for;
//! - an engine's address is checked when it is registered and again at every use (`engines`);
//! - a machine is silent only while probes of it fail: one that nobody asks is not (`probe_failed_at`);
//! - a machine in use (a row in `machine_watches`: a published listing, a rental) cannot be deleted; a deleted one keeps its row;
//! - a change that evidence may not survive leaves its instant in the row and a job [`CHANGED`] for the market.
//!
//! Lock order: the machine's row, then its watches. Later domains lock their own rows before a machine's.

pub mod api;
mod input;
pub mod jobs;
pub mod model;
mod queries;
mod region;
pub mod service;

pub use jobs::SignsOfLife;
pub use region::Region;

/// Kind of the job that tells of a machine's changed hardware, engine address, region, or deletion. Its payload is [`model::MachineChanged`].
pub const CHANGED: &str = "machine_changed";
