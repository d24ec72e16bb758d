//! The benchmark tool's own way in (evidence.md 3). What it does with a document stands in `service::tool`.

pub mod api;
