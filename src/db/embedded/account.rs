//! The user whose processes PostgreSQL's are.
//!
//! PostgreSQL refuses root. An ordinary user runs it as themselves; root runs it as the owner of the cluster if there is one (a cluster made
//! by an ordinary user stays theirs), else as `postgres`, else as `nobody`.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::base::Result;

use super::{at, home::Home, unavailable};

/// `None`: this process's own user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account(Option<Ids>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ids {
    user: libc::uid_t,
    group: libc::gid_t,
}

impl Account {
    pub(super) fn for_cluster(home: &Home) -> Result<Self> {
        // SAFETY: reads the process's credentials; cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(Self(None));
        }
        if let Ok(owner) = std::fs::metadata(home.cluster())
            && owner.uid() != 0
        {
            return Ok(Self(Some(Ids { user: owner.uid(), group: owner.gid() })));
        }
        match lookup(c"postgres").or_else(|| lookup(c"nobody")) {
            Some(ids) => Ok(Self(Some(ids))),
            None => {
                Err(unavailable("PostgreSQL refuses to run as root, and there is neither a user `postgres` nor `nobody` to run it as."))
            }
        }
    }

    /// Whether files must be handed to another user.
    pub(super) const fn is_other(self) -> bool {
        self.0.is_some()
    }

    pub(super) fn own(self, path: &Path) -> Result<()> {
        match self.0 {
            Some(ids) => chown(path, Some(ids.user), Some(ids.group)).map_err(at(path)),
            None => Ok(()),
        }
    }

    /// A command that runs as this user in a process group of its own (Ctrl-C on the terminal is for Rigmark, which then stops the server in
    /// order), with a bare environment, and that gets SIGINT when the thread that spawned it ends.
    pub(super) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let parent = std::process::id();
        let mut command = Command::new(program);
        // Neither PG* variables of the operator nor their locale may change how the server runs.
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::null())
            .process_group(0);
        // SAFETY: between fork and exec only system calls are made; nothing is allocated or locked.
        unsafe { command.pre_exec(move || self.enter(parent)) };
        command
    }

    /// Runs in the child, between fork and exec.
    fn enter(self, parent: u32) -> io::Result<()> {
        // SAFETY: plain system calls on values; the one pointer is to a local that outlives the call.
        unsafe {
            if let Some(Ids { user, group }) = self.0
                && (libc::setgroups(1, &raw const group) != 0 || libc::setgid(group) != 0 || libc::setuid(user) != 0)
            {
                return Err(io::Error::last_os_error());
            }
            libc::umask(0o077);
            // After setuid, which clears it.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGINT) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the line above.
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    }

    /// Whether this user can enter `directory`: every directory above it must be open to them.
    pub(super) fn can_enter(self, directory: &Path) -> bool {
        let status = self.command("/bin/sh").args(["-c", "cd -- \"$1\" && test -w .", "sh"]).arg(directory).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

fn lookup(name: &CStr) -> Option<Ids> {
    let mut buffer = vec![0_u8; 16 * 1024];
    // SAFETY: passwd is plain data, valid when zeroed; getpwnam_r writes within the buffer whose length it is given, and `found` is null or
    // points to `entry`.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        let code = libc::getpwnam_r(name.as_ptr(), &raw mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &raw mut found);
        (code == 0 && !found.is_null()).then_some(Ids { user: entry.pw_uid, group: entry.pw_gid })
    }
}
