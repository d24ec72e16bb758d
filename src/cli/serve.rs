//! `rigmark serve` and `rigmark worker`.

use std::process::ExitCode;

use crate::{
    app::{self, Parts},
    base::{Error, Result},
    config::{LogArgs, ServeArgs},
};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Leave jobs and sweeps to a separate `rigmark worker`.
    #[arg(long)]
    no_workers: bool,
    /// Sandbox: start the demo's simulated engines and fill the data in when it is not there yet.
    #[arg(long)]
    demo: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct WorkerArgs {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    args.log.install();
    let config = args.serve.into_config()?;
    let parts = Parts { http: true, workers: !args.no_workers, demo: args.demo };
    serve(config, parts).await
}

pub(super) async fn run_worker(args: WorkerArgs) -> Result<ExitCode> {
    args.log.install();
    let config = args.serve.into_config()?;
    serve(config, Parts { http: false, workers: true, demo: false }).await
}

async fn serve(config: crate::config::Config, parts: Parts) -> Result<ExitCode> {
    let mode = config.mode;
    let running = app::start(config, parts).await?;
    if parts.http {
        println!("Rigmark ({}) serves {}", mode.as_str(), running.ctx.public_url);
        println!("  market  {0}/en/marketplace\n  runs    {0}/en/runs\n  API     {0}/openapi.json", running.ctx.public_url);
        println!("Ctrl-C stops it and everything it started.");
    }
    wait_for_signal().await?;
    println!("Stopping.");
    running.stop().await?;
    Ok(ExitCode::SUCCESS)
}

async fn wait_for_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
