//! The simulated engine keeps its law, and the measuring client measures it and other engines.

mod client;
mod matrix;
mod others;
mod parts;
mod record;
mod resume;
mod simulated;
