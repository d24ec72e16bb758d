//! How money enters and leaves. Owns no table yet: in the sandbox money is minted, and everything else is the ledger's.
//!
//! Invariants: play money exists in the sandbox only; elsewhere its routes do not exist.
#![deny(clippy::float_arithmetic, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub mod api;
pub mod service;
