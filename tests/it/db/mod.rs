//! The database layer: the embedded server.

mod embedded;
