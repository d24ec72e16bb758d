//! What every test needs: servers, databases, HTTP clients, bounded waiting.

mod temp;
mod wait;

pub use temp::TempDir;
pub use wait::wait_for;
