//! The outside world beside the database. Each part works without its service: in-process, or not at all.

pub mod limits;
pub mod pubsub;
pub mod redis;
