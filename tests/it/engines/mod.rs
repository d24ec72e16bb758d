//! Reaching engines: which addresses, and what the client never does.

mod address;
mod client;
mod names;
pub mod raw;
