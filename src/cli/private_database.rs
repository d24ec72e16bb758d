//! Commands beside a running `rigmark serve`: the private PostgreSQL of its data directory is theirs too.

use std::path::Path;

use crate::{
    base::{Code, Error, Result, secret::Secret},
    config::Config,
    db::embedded::Embedded,
};

/// Uses the private cluster that another process runs, when there is one; otherwise this process will start it.
///
/// # Errors
/// `unavailable` while that process is just starting or stopping it.
pub(super) fn join(config: &mut Config) -> Result<()> {
    if config.database_url.is_none() {
        config.database_url = running(&config.data_dir)?.map(Secret::new);
    }
    Ok(())
}

/// The address of a database for a command that starts none: the given one, or that of the running private cluster.
///
/// # Errors
/// `unavailable` with what to do when neither is there.
pub(super) fn url(given: Option<&str>, data_dir: &Path) -> Result<String> {
    if let Some(url) = given.filter(|url| !url.is_empty()) {
        return Ok(url.to_owned());
    }
    let absent = || {
        let detail = format!(
            "No database: give --database-url, or start `rigmark serve` on the data directory {} first and leave it running.",
            data_dir.display()
        );
        Error::new(Code::Unavailable, detail)
    };
    running(data_dir)?.ok_or_else(absent)
}

fn running(data_dir: &Path) -> Result<Option<String>> {
    Embedded::running_url(&data_dir.join("postgres"))
}
