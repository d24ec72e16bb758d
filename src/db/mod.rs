//! (to be written)

pub mod embedded;
