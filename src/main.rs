//! The `rigmark` program: command line only; everything else is in the library.
fn main() {}
