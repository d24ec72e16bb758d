//! `rigmark serve` and `rigmark worker`.

use std::process::ExitCode;

use super::{demo, private_database, signals::Signals};
use crate::{
    app::{self, Parts, Running},
    base::Result,
    config::{LogArgs, ServeArgs},
    demo::Engines,
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
    /// Sandbox: run the demo's simulated engines, and fill its data in where it is missing (about a minute the first time).
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
    args.log.install(args.demo);
    let config = args.serve.into_config()?;
    let mut signals = Signals::new()?;
    // Before the server, so that its first look at the machines finds them answering.
    let engines = if args.demo { Some(Engines::start(&config)?) } else { None };
    let running = app::start(config, Parts { http: true, workers: !args.no_workers }).await?;
    let goes_on = match &engines {
        Some(engines) => demo::filled(&running.base_url, engines, &mut signals).await,
        None => true,
    };
    if goes_on {
        welcome(&running, engines.is_some());
        signals.wait().await;
    }
    println!("Stopping.");
    running.stop().await?;
    if let Some(engines) = engines {
        engines.stop().await;
    }
    Ok(ExitCode::SUCCESS)
}

fn welcome(running: &Running, with_demo: bool) {
    let url = &running.ctx.public_url;
    println!("\nRigmark ({}) serves {url}\n", running.ctx.config.mode.as_str());
    println!("  Marketplace  {url}/en/marketplace");
    println!("  Matrix runs  {url}/en/runs");
    println!("  API          {url}/openapi.json\n");
    if with_demo {
        demo::print_people();
    }
    println!("Ctrl-C stops everything that was started here.");
}

pub(super) async fn run_worker(args: WorkerArgs) -> Result<ExitCode> {
    args.log.install(false);
    let mut config = args.serve.into_config()?;
    private_database::join(&mut config)?;
    let mut signals = Signals::new()?;
    let running = app::start(config, Parts { http: false, workers: true }).await?;
    println!("The workers run. Ctrl-C stops them.");
    signals.wait().await;
    println!("Stopping.");
    running.stop().await?;
    Ok(ExitCode::SUCCESS)
}
