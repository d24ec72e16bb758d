//! `rigmark demo`, and the demo's part of `rigmark serve --demo`.

use std::{net::Ipv4Addr, process::ExitCode, sync::Arc};

use super::{private_database, signals::Signals};
use crate::{
    app::{self, Parts},
    base::Result,
    config::{LogArgs, ServeArgs},
    demo::{Display, Engines, cast, fill},
};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    args.log.install(true);
    let mut config = args.serve.into_config()?;
    private_database::join(&mut config)?;
    let mut signals = Signals::new()?;
    let engines = Engines::start(&config)?;
    // The demo speaks to an API of its own; the server that people use may be anywhere on the same database.
    let public_url = config.public_url.clone().unwrap_or_else(|| format!("http://{}", config.bind));
    config.bind = (Ipv4Addr::LOCALHOST, 0).into();
    config.metrics_bind = None;
    let running = app::start(config, Parts { http: true, workers: true }).await?;
    if filled(&running.base_url, &engines, &mut signals).await {
        println!("\nThe demo's data is there. See {public_url}/en/marketplace\n");
        print_people();
        println!("The simulated engines run here. Ctrl-C stops them; the data stays.");
        signals.wait().await;
    }
    println!("Stopping.");
    running.stop().await?;
    engines.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Fills the sandbox, or returns false when a signal came first. What could not be done is told and no reason to stop serving.
pub(super) async fn filled(base_url: &str, engines: &Engines, signals: &mut Signals) -> bool {
    let display = Arc::new(Display::default());
    let outcome = tokio::select! {
        outcome = fill(base_url, engines, Arc::clone(&display)) => outcome,
        () = signals.wait() => return false,
    };
    match outcome {
        Ok(notes) => notes.iter().for_each(|note| eprintln!("demo: {note}")),
        Err(error) => eprintln!("demo: not complete: {error:?}"),
    }
    true
}

pub(super) fn print_people() {
    println!("  Demo accounts, password {}", cast::PASSWORD);
    let hosts = cast::HOSTS.iter().map(|host| (host.person, format!("host of {} ({})", host.machine, host.hardware)));
    let renter = (cast::RENTER, format!("renter, began with ${} of play money", cast::CREDIT));
    let author = (cast::AUTHOR, "uploaded the reference run".to_owned());
    for (person, part) in [renter, author].into_iter().chain(hosts) {
        println!("    {:<12} {:<26} {part}", format!("@{}", person.handle), person.email());
    }
    println!();
}
