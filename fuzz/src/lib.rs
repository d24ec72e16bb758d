//! What the targets share: a bound on memory that an input cannot hide from, and a mutator that keeps documents readable.

mod memory;
mod mutate;

pub use memory::{Bounded, within};
pub use mutate::json;
