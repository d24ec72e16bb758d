//! The command line: one file a subcommand. Exit status 0 success, 1 failure, 64 wrong usage; `verify` has its own (api.md).

mod admin;
mod demo;
mod measure;
mod migrate;
mod openapi;
mod private_database;
mod serve;
mod signals;
mod simulate_engine;
pub mod verify;

use std::{future::Future, process::ExitCode};

use clap::{Parser, Subcommand};

/// A marketplace for GPU machines where every listing is backed by a measured LLM speed matrix.
#[derive(Parser, Debug)]
#[command(name = "rigmark", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve the API, the pages and the endpoint, with the workers.
    Serve(serve::Args),
    /// Run the workers alone, beside a `serve --no-workers` on the same database.
    Worker(serve::WorkerArgs),
    /// Fill the sandbox of another `serve` with sample data, and run its simulated engines.
    Demo(demo::Args),
    /// Bring the database's schema up to date.
    Migrate(migrate::Args),
    /// Make a user an operator, or take that away.
    Admin(admin::Args),
    /// Print the OpenAPI document, or compare it with the checked-in one.
    Openapi(openapi::Args),
    /// Check a run document offline and print the verdict that the service would give.
    Verify(verify::VerifyArgs),
    /// Measure an engine: run a matrix against any OpenAI-compatible URL and write the document.
    Measure(Box<measure::Args>),
    /// Run a stand-in for vLLM that answers with made-up words at the speed of a stated law.
    SimulateEngine(simulate_engine::Args),
}

/// Runs the command and returns the exit status.
pub fn run(cli: Cli) -> ExitCode {
    // One provider for all of rustls: a client built before this would panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli.command {
        Command::Serve(args) => block_on(serve::run(args)),
        Command::Worker(args) => block_on(serve::run_worker(args)),
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Admin(args) => block_on(admin::run(args)),
        Command::Migrate(args) => block_on(migrate::run(args)),
        Command::Openapi(args) => openapi::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Measure(args) => block_on(measure::run(*args)),
        Command::SimulateEngine(args) => block_on(simulate_engine::run(args)),
    }
}

fn block_on(work: impl Future<Output = crate::base::Result<ExitCode>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match runtime.block_on(work) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rigmark: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("rigmark: {error}");
    ExitCode::FAILURE
}
