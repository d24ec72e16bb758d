//! The simulated engine keeps its law, and the measuring client measures it.

mod client;
mod matrix;
mod parts;
mod simulated;
