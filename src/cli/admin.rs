//! `rigmark admin`: what only somebody with the database's address may do.

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;

use super::private_database;
use crate::{
    base::{Result, clock::Clock},
    db::{self, Db},
    identity,
};

const CONNECTIONS: u32 = 1;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make a user an operator.
    Grant(Target),
    /// Make an operator a user like any other.
    Revoke(Target),
}

#[derive(clap::Args, Debug)]
struct Target {
    /// Handle of the user: @ada.
    handle: String,
    /// PostgreSQL. Without it: the private cluster that a `rigmark serve` on the data directory runs now.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where that server keeps its files.
    #[arg(long, env = "RIGMARK_DATA_DIR", default_value = "var")]
    data_dir: PathBuf,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let (target, is_operator) = match &args.action {
        Action::Grant(target) => (target, true),
        Action::Revoke(target) => (target, false),
    };
    let url = private_database::url(target.database_url.as_deref(), &target.data_dir)?;
    db::migrate(&url).await?;
    let db = Db::new(&url, None, CONNECTIONS)?;
    identity::service::set_operator(&db, &Clock::default(), &target.handle, is_operator).await?;
    let handle = target.handle.trim_start_matches('@');
    println!("@{handle} is {} an operator.", if is_operator { "now" } else { "no longer" });
    Ok(ExitCode::SUCCESS)
}
