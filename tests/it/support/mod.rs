//! What every test needs: servers, databases, HTTP clients, bounded waiting.

#![allow(dead_code, unused_imports, reason = "a toolkit: what the tests of a domain need is here before they do")]

mod app;
mod exit;
mod gone;
pub mod hosts;
pub mod http;
pub mod lil_bench;
mod postgres;
mod program;
mod redis;
pub mod renting;
pub mod scripted;
mod selftest;
#[path = "../../../examples/stripe_double/double/mod.rs"]
pub mod stripe_double;
mod temp;
mod wait;
mod wires;

pub use app::{TestApp, sandbox_config};
pub use exit::at_exit;
pub use gone::Gone;
pub use postgres::{Postgres, TestDatabase, postgres};
pub use program::Program;
pub use redis::{RedisServer, TestRedis, redis};
pub use temp::TempDir;
pub use wait::wait_for;
pub use wires::{Counts, Cut, Wires};

/// A migrated database for one test.
pub async fn database() -> TestDatabase {
    postgres().database().await
}
