//! The endpoint: OpenAI's own paths under `/v1`, for the machines an account has rented and those it owns.
//!
//! Invariants:
//! - Only an account with an active rental, and the machine's owner, reach a machine. Whoever loses that right loses open streams within a second.
//! - A client that leaves cancels the engine's request: the stream owns the connection to the engine and nothing else does.
//! - Requests and answers pass through; only the model's name is rewritten. They are never logged or kept.
//! - Errors have the shape of the API that is imitated, not of problem details.

pub mod api;
mod body;
mod chat;
mod error;
mod names;
mod right;
pub mod service;

pub use chat::ChatRequest;
