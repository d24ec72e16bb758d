//! Bulk export: every valid cell of every public, verified run as one file.
//!
//! Invariants: what is shown of a run here is what its page shows; rows come in the order of their keys, a batch at a time, each batch in a
//! statement of its own, so that neither memory nor the database is held for as long as the reader takes. A run that is taken back meanwhile is
//! missing from where the file has got to.

pub mod api;
mod model;
mod parquet_file;
mod queries;
mod service;
