//! `rigmark openapi`.

use std::{path::PathBuf, process::ExitCode};

use crate::openapi;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Compare with the checked-in document instead of printing; status 1 when they differ.
    #[arg(long)]
    check: bool,
    /// The checked-in document.
    #[arg(long, default_value = "openapi/rigmark.json")]
    file: PathBuf,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let text = openapi::document_text();
    if !args.check {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    match std::fs::read_to_string(&args.file) {
        Ok(checked_in) if checked_in == text => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("{} differs from the program: run `rigmark openapi > {0}` and look at the change.", args.file.display());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{}: {error}", args.file.display());
            ExitCode::FAILURE
        }
    }
}
