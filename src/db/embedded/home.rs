//! The data directory: its lock, where the cluster really is, the password.
//!
//! As root the cluster belongs to another user, who may be unable to reach the wanted place (below `/root`, say). It is then put under
//! `/var/lib`, and the file `location` in the data directory says where.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;

use crate::base::Result;

use super::{account::Account, at, unavailable};

const DRAFT_PREFIX: &str = "cluster.new-";

pub(super) struct Home {
    /// What the operator named: holds `lock` and `location`, and normally everything.
    named: PathBuf,
    /// Where the rest is.
    dir: PathBuf,
    password: String,
    _lock: File,
}

impl Home {
    /// Takes the lock; makes the directory if absent.
    pub(super) fn open(data_dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(data_dir).map_err(at(data_dir))?;
        let named = data_dir.canonicalize().map_err(at(data_dir))?;
        let lock = lock(&named)?;
        let dir = located(&named)?;
        remove_drafts(&dir);
        Ok(Self { named, dir, password: String::new(), _lock: lock })
    }

    pub(super) fn cluster(&self) -> PathBuf {
        self.dir.join("cluster")
    }
    /// Where `initdb` works before the cluster is complete. The name is new in each process: the `initdb` of one that was killed removes its
    /// draft, maybe a little later.
    pub(super) fn draft(&self) -> PathBuf {
        self.dir.join(format!("{DRAFT_PREFIX}{}", std::process::id()))
    }
    pub(super) fn log(&self) -> PathBuf {
        self.dir.join("postgres.log")
    }
    pub(super) fn password_hand_over(&self) -> PathBuf {
        self.dir.join("password.initdb")
    }
    pub(super) fn password(&self) -> &str {
        &self.password
    }

    /// Sees to it that `account` can reach the cluster, or the place where it will be.
    pub(super) fn make_reachable(&mut self, account: &Account) -> Result<()> {
        let mode = if account.is_other() { 0o711 } else { 0o700 };
        std::fs::set_permissions(&self.dir, Permissions::from_mode(mode)).map_err(at(&self.dir))?;
        if !account.is_other() {
            return Ok(());
        }
        if self.cluster().exists() {
            return match account.can_enter(&self.cluster()) {
                true => Ok(()),
                false => Err(unavailable(format!(
                    "{} belongs to the user that PostgreSQL runs as, who cannot reach it: a directory above it is closed to others.",
                    self.cluster().display()
                ))),
            };
        }
        if self.probe_entry(account)? {
            return Ok(());
        }
        self.move_out()
    }

    fn probe_entry(&self, account: &Account) -> Result<bool> {
        let probe = self.draft();
        remove_tree(&probe)?;
        DirBuilder::new().mode(0o700).create(&probe).map_err(at(&probe))?;
        account.own(&probe)?;
        Ok(account.can_enter(&probe))
    }

    fn move_out(&mut self) -> Result<()> {
        remove_tree(&self.draft())?;
        // A name of chance, not of the path: a new data directory must not find the cluster of one that was deleted.
        let dir = PathBuf::from("/var/lib").join(format!("rigmark-{}", HEXLOWER.encode(&rand::random::<[u8; 6]>())));
        DirBuilder::new().recursive(true).mode(0o711).create(&dir).map_err(at(&dir))?;
        std::fs::set_permissions(&dir, Permissions::from_mode(0o711)).map_err(at(&dir))?;
        write_private(&dir.join("origin"), &self.named.display().to_string())?;
        write_private(&self.named.join("location"), &dir.display().to_string())?;
        tracing::warn!(
            wanted = %self.named.display(), used = %dir.display(),
            "PostgreSQL's user cannot reach the data directory; its cluster is kept elsewhere"
        );
        self.dir = dir;
        Ok(())
    }

    pub(super) fn make_password(&self) -> Result<String> {
        let password = HEXLOWER.encode(&rand::random::<[u8; 24]>());
        write_private(&self.dir.join("password"), &password)?;
        Ok(password)
    }

    pub(super) fn read_password(&mut self) -> Result<()> {
        let path = self.dir.join("password");
        self.password = std::fs::read_to_string(&path).map_err(at(&path))?;
        Ok(())
    }

    /// For other commands of the same user (`rigmark admin`), see [`running_url`].
    pub(super) fn publish_url(&self, url: &str) -> Result<()> {
        write_private(&self.named.join("url"), url)
    }

    pub(super) fn withdraw_url(&self) {
        // A file left behind is harmless: it is read only while the lock is held.
        std::fs::remove_file(self.named.join("url")).ok();
    }
}

pub(super) fn running_url(data_dir: &Path) -> Result<Option<String>> {
    let lock = data_dir.join("lock");
    let file = match File::open(&lock) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&lock)(error)),
    };
    match for_a_moment(|| file.try_lock_shared(), || data_dir.join("url").exists()) {
        Ok(()) => Ok(None),
        Err(TryLockError::Error(error)) => Err(at(&lock)(error)),
        Err(TryLockError::WouldBlock) => {
            let url = data_dir.join("url");
            match std::fs::read_to_string(&url) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    Err(unavailable(format!("The database in {} is just starting or stopping. Try again.", data_dir.display())))
                }
                read => read.map(Some).map_err(at(&url)),
            }
        }
    }
}

fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(at(&path))?;
    match for_a_moment(|| file.try_lock(), || false) {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(at(&path))?;
            return Err(unavailable(format!(
                "Another Rigmark (process {}) is running the database in {}. Stop it, or set RIGMARK_DATA_DIR to another directory.",
                holder.trim(),
                dir.display()
            )));
        }
    }
    file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(at(&path))?;
    Ok(file)
}

/// A program that another thread starts holds a copy of every open file between its fork and its exec, and so a lock that was just given back.
fn for_a_moment(
    try_lock: impl Fn() -> std::result::Result<(), TryLockError>,
    is_settled: impl Fn() -> bool,
) -> std::result::Result<(), TryLockError> {
    const TRIES: u32 = 20;
    for _ in 0..TRIES {
        match try_lock() {
            Err(TryLockError::WouldBlock) if !is_settled() => std::thread::sleep(Duration::from_millis(50)),
            other => return other,
        }
    }
    try_lock()
}

fn located(named: &Path) -> Result<PathBuf> {
    let note = named.join("location");
    match std::fs::read_to_string(&note) {
        Ok(place) if Path::new(place.trim()).is_dir() => Ok(PathBuf::from(place.trim())),
        Ok(place) => Err(unavailable(format!(
            "{} says that the database is in {}, which is not there. Bring it back, or remove the note to begin anew.",
            note.display(),
            place.trim()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(named.to_owned()),
        Err(error) => Err(at(&note)(error)),
    }
}

/// Of earlier runs that were killed.
fn remove_drafts(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(DRAFT_PREFIX) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// Writes a file that only this user can read; whole or not at all.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    let draft = path.with_extension("draft");
    std::fs::remove_file(&draft).or_else(missing_is_fine).map_err(at(&draft))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(at(&draft))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(&draft))?;
    std::fs::rename(&draft, path).map_err(at(path))
}

pub(super) fn remove_tree(path: &Path) -> Result<()> {
    std::fs::remove_dir_all(path).or_else(missing_is_fine).map_err(at(path))
}

fn missing_is_fine(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
