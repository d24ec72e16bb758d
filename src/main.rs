//! The `rigmark` program: the command line only; everything else is in the library.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    rigmark::cli::run(rigmark::cli::Cli::parse())
}
