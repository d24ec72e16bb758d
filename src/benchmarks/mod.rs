//! Benchmarks: documents, matrices, checks, verdicts and challenges.
//!
//! Owns the way from bytes to a verdict. Everything here is pure: no database, no clock, no network. A document is parsed once, redacted
//! first, and judged on the redacted copy (evidence.md 0), so that `rigmark verify` repeats offline what the service said.

pub mod api;
pub mod challenge;
pub mod checks;
pub mod claim;
pub mod document;
pub mod json;
pub mod log;
pub mod matrix;
pub mod model;
pub mod pages;
pub mod quantization;
mod queries;
pub mod redact;
pub mod service;
pub mod verdict;
