//! The `rigmark` program: the command line only; everything else is in the library.

use std::process::ExitCode;

use clap::Parser;
use rigmark::cli::{Cli, USAGE, run};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => {
            let is_fault = error.use_stderr();
            // Nothing can be done about an output that is closed.
            let _closed = error.print();
            if is_fault { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
        }
    }
}
