//! Toolkit: measuring an engine's speed, and a stand-in engine to measure. No database, no domain.

pub mod cell;
pub mod document;
mod hardware;
pub mod inspect;
pub mod matrix;
pub mod prompt;
pub mod question;
pub mod record;
pub mod resume;
pub mod simulated;
pub mod spot;
pub mod sse;
pub mod stats;
pub mod stream;
