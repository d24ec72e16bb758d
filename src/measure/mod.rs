//! Toolkit: measuring an engine's speed, and a stand-in engine to measure. No database, no domain.

pub mod simulated;
