//! The command line: one file a subcommand. Exit status 0 success, 1 failure, 64 wrong usage; `verify` has its own (api.md).

mod admin;
mod demo;
mod health;
mod measure;
mod migrate;
mod openapi;
mod private_database;
mod reverify;
mod serve;
mod signals;
mod simulate_engine;
pub mod verify;

use std::{future::Future, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;

/// Exit status of wrong usage (sysexits.h): clap's own 2 is a verdict of `verify`.
pub const USAGE: u8 = 64;

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
    ///
    /// Without DATABASE_URL it runs a private PostgreSQL under the data directory, on a free port, and stops it at the end. Without
    /// STRIPE_SECRET_KEY it is a sandbox: play money, simulated engines, and a business clock that can be moved; secrets that are not given
    /// are made and kept in the data directory. The other modes refuse to start without their secrets.
    ///
    /// Ctrl-C or SIGTERM lets requests in hand finish and stops everything that was started.
    Serve(serve::Args),
    /// Run jobs and sweeps alone, beside a `serve --no-workers` on the same database.
    ///
    /// Jobs and sweeps meter rentals, look for signs of life, take listings off the market that lost their evidence, and send mail. Any
    /// number of workers may run on one database. Without DATABASE_URL the worker joins the private PostgreSQL that a `rigmark serve` on the
    /// same data directory runs.
    Worker(serve::WorkerArgs),
    /// Fill the sandbox of another `serve` with sample data, and run its simulated engines.
    ///
    /// The sample data: hosts whose machines are really measured, their listings, a renter with play money and two rentals, and the reference
    /// run. It takes about a minute and may be interrupted; done again it completes what is missing and doubles nothing. Nobody else's data
    /// is touched. Refused outside the sandbox.
    ///
    /// The machines' engines run in this process, so it stays until Ctrl-C. Without DATABASE_URL it joins the private PostgreSQL that a
    /// `rigmark serve` on the same data directory runs. `rigmark serve --demo` does the same in one process.
    Demo(demo::Args),
    /// Bring the database's schema up to date.
    ///
    /// `serve`, `worker` and `demo` do so themselves when they start; this is for a deployment that migrates in a step of its own. A second
    /// one at the same time waits for the first.
    Migrate(migrate::Args),
    /// Judge all runs again, by the rules of this program.
    ///
    /// To be done once after an update that changed the rules (`serve` says so in its log); the server may run meanwhile. Each run's original
    /// document is judged in the circumstances of its upload. What an operator decided stands unless the rules find something new. Where a
    /// verdict is another, its uploader is told and a listing that stood on it leaves the market.
    ///
    /// It shows how far it is, may be interrupted at any moment, and goes on from there. Without DATABASE_URL it joins the private PostgreSQL
    /// that a `rigmark serve` on the same data directory runs. Exit status: 0 done, 1 some runs could not be judged, 130 interrupted.
    Reverify(reverify::Args),
    /// Ask a running server whether it answers.
    ///
    /// For health checks where there is no HTTP client, as in the container. Exit status 0 when it answers, 1 when not.
    Health(health::Args),
    /// Make a user an operator, or take that away.
    ///
    /// Operators review runs and act on accounts. Every act is audited, these two as well; the server need not be restarted.
    Admin(admin::Args),
    /// Print the OpenAPI document, or compare it with the checked-in one.
    ///
    /// The document is generated from the handlers: keys are sorted, and the same program prints the same bytes.
    Openapi(openapi::Args),
    /// Check a run document offline and print the verdict that the service would give.
    ///
    /// It works on the file a benchmark wrote and on the document that the service shows of a run (`/api/v1/matrix-runs/{id}/document`), so
    /// that anybody can repeat a verdict. What only the service knows (challenges, copies of other runs) is not looked at.
    ///
    /// Exit status: 0 verified, 1 needs review, 2 rejected, 3 unreadable, 64 wrong usage.
    Verify(verify::VerifyArgs),
    /// Measure an engine: run a matrix against any OpenAI-compatible URL and write the document.
    ///
    /// With --challenge the server says what to measure, and the document is uploaded as the answer: that is how a machine earns its Measured
    /// badge. Without it the arguments say what to measure, and --upload sends the document. Leave the machine alone meanwhile: other load
    /// lowers the figures.
    ///
    /// The API key comes from RIGMARK_API_KEY. Exit status: 0 done, 1 failed or sent to review, 2 rejected, 130 interrupted (the file then
    /// holds what was measured), 64 wrong usage.
    #[command(after_help = measure::EXAMPLES)]
    Measure(Box<measure::Args>),
    /// Run a stand-in for vLLM that answers with made-up words at the speed of a stated law.
    ///
    /// For trying things out without a GPU, and for tests. It keeps vLLM's books (waiting and running requests, KV cache, prefix cache) and
    /// takes for each step the time that a law fitted to real measurements states for the hardware. It names itself in /v1/models, so that
    /// no mode but the sandbox takes its numbers.
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
        Command::Health(args) => block_on(health::run(args)),
        Command::Migrate(args) => block_on(migrate::run(args)),
        Command::Reverify(args) => block_on(reverify::run(args)),
        Command::Openapi(args) => openapi::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Measure(args) => {
            // Waking other threads for each token would cost more CPU time than reading it.
            let mut one_thread = Builder::new_current_thread();
            one_thread.on_thread_park(crate::measure::cell::rest);
            block_on_with(one_thread, measure::run(*args))
        }
        Command::SimulateEngine(args) => block_on(simulate_engine::run(args)),
    }
}

fn block_on(work: impl Future<Output = crate::base::Result<ExitCode>>) -> ExitCode {
    block_on_with(Builder::new_multi_thread(), work)
}

fn block_on_with(mut builder: Builder, work: impl Future<Output = crate::base::Result<ExitCode>>) -> ExitCode {
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match runtime.block_on(work) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// One line for the operator: what went wrong, and the causes that it does not name itself.
fn fail(error: &dyn std::error::Error) -> ExitCode {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{}: {more}", text.trim_end_matches('.'));
        }
        cause = error.source();
    }
    eprintln!("rigmark: {text}");
    ExitCode::FAILURE
}
