//! The cluster on disk: making it, its version, and ending whatever still runs on it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::base::Result;

use super::{account::Account, at, binaries::Binaries, home, home::Home, poll, unavailable};

/// How long a server that lost its Rigmark may take to stop in order, then at once, before it is killed.
const ORDERLY_SECONDS: u64 = 20;
const AT_ONCE_SECONDS: u64 = 5;

/// The version that wrote the cluster; `None` when there is none.
pub(super) fn major_version(home: &Home) -> Result<Option<u32>> {
    let file = home.cluster().join("PG_VERSION");
    match std::fs::read_to_string(&file) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(unavailable(format!("{} holds no version of PostgreSQL.", file.display()))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !home.cluster().exists() => Ok(None),
        Err(error) => Err(at(&file)(error)),
    }
}

/// Runs `initdb` beside the final place and renames, so that a cluster is never half made.
pub(super) fn create(home: &mut Home, account: &Account, binaries: &Binaries, superuser: &str, sync: bool) -> Result<()> {
    let draft = home.draft();
    let password_file = home.password_hand_over();
    home::write_private(&password_file, &home.make_password()?)?;
    account.own(&password_file)?;
    // C.UTF-8 compares by byte like C and knows the letters beyond ASCII; systems without it exist.
    let made = initdb(&draft, &password_file, account, binaries, superuser, "C.UTF-8", sync)
        .or_else(|_| initdb(&draft, &password_file, account, binaries, superuser, "C", sync));
    std::fs::remove_file(&password_file).map_err(at(&password_file))?;
    made?;
    std::fs::rename(&draft, home.cluster()).map_err(at(&draft))
}

fn initdb(draft: &Path, password: &Path, account: &Account, binaries: &Binaries, superuser: &str, locale: &str, sync: bool) -> Result<()> {
    home::remove_tree(draft)?;
    std::fs::create_dir(draft).map_err(at(draft))?;
    std::fs::set_permissions(draft, Permissions::from_mode(0o700)).map_err(at(draft))?;
    account.own(draft)?;
    let mut command = account.command(binaries.path("initdb"));
    command.arg("--pgdata").arg(draft).arg("--pwfile").arg(password);
    command.args(["--username", superuser, "--auth=scram-sha-256", "--encoding=UTF8", "--locale", locale, "--no-instructions"]);
    if !sync {
        command.arg("--no-sync");
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().map_err(at(&binaries.dir))?;
    if output.status.success() {
        return Ok(());
    }
    Err(unavailable(format!("initdb failed:\n{}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Ends every PostgreSQL process that still works in `cluster`, as after a `kill -9` of the Rigmark that ran them. The caller holds the lock,
/// so none of them is another Rigmark's.
pub(super) fn settle(cluster: &Path) {
    let Ok(cluster) = cluster.canonicalize() else { return };
    for (signal, seconds) in [(libc::SIGINT, ORDERLY_SECONDS), (libc::SIGQUIT, AT_ONCE_SECONDS), (libc::SIGKILL, AT_ONCE_SECONDS)] {
        let processes = processes_in(&cluster);
        if processes.is_empty() {
            break;
        }
        // In order: only the first process, which ends the others. Without it the others cannot end in order.
        let leader = leader(&cluster).filter(|leader| processes.contains(leader));
        let targets = match (signal, leader) {
            (libc::SIGINT, None) => continue,
            (libc::SIGINT, Some(leader)) => vec![leader],
            _ => processes,
        };
        tracing::info!(?targets, signal, "ending the PostgreSQL that an earlier run left");
        for process in targets {
            // SAFETY: a system call on values. The process was seen working in our cluster just now.
            unsafe { libc::kill(process, signal) };
        }
        poll(Duration::from_secs(seconds), || processes_in(&cluster).is_empty());
    }
    // With none of its processes left the file is stale, but PostgreSQL would believe it if the id in it has been given to another process.
    if processes_in(&cluster).is_empty() {
        std::fs::remove_file(cluster.join("postmaster.pid")).ok();
    }
}

fn leader(cluster: &Path) -> Option<libc::pid_t> {
    std::fs::read_to_string(cluster.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
}

/// Every process of a PostgreSQL server has its data directory as working directory.
fn processes_in(cluster: &Path) -> Vec<libc::pid_t> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let program = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            let works_here = std::fs::read_link(entry.path().join("cwd")).ok()? == cluster;
            (works_here && program.starts_with("postgres")).then_some(pid)
        })
        .collect()
}
