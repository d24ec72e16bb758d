//! The web toolkit over real HTTP: a small app with the program's own middleware, one folder below the domains.

mod body;
mod client;
pub mod conforms;
mod edge;
mod idempotency;
mod inputs;
mod limits;
mod lists;
mod openapi;
mod refusals;
mod server;
