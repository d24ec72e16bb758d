//! `rigmark migrate`.

use std::process::ExitCode;

use crate::{base::Result, db};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// PostgreSQL to migrate.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    db::migrate(&args.database_url).await?;
    println!("The schema is up to date.");
    Ok(ExitCode::SUCCESS)
}
