//! Directories of one test run, and sweeping those that killed runs left.
//!
//! A directory is locked while its run goes on, so that a sweep spares it. The id of the process in its name would not do alone: a run in a
//! container of its own may see the directory but not the process.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

const PREFIX: &str = "rigmark-test-";
const MEMORY: &str = "/dev/shm";
/// A database takes 10 MB, and some dozens of tests that were cut short may have left theirs.
const MEMORY_BYTES_MIN: u64 = 4_000_000_000;

/// A directory that other users can pass through (as root, PostgreSQL runs as another user); removed when dropped.
pub struct TempDir(PathBuf, #[expect(dead_code, reason = "held for its lock")] File);

impl TempDir {
    pub fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// In memory where there is enough: copying databases on a disk that others keep busy is some ten times slower.
    pub fn new_in_memory() -> Self {
        if free_bytes(MEMORY).is_some_and(|free| free >= MEMORY_BYTES_MIN) { Self::new_in(Path::new(MEMORY)) } else { Self::new() }
    }

    fn new_in(parent: &Path) -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), rand::random::<u32>());
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        let lock = File::open(&path).unwrap();
        lock.lock().unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o711)).unwrap();
        Self(path, lock)
    }

    /// For the exit hook of a static directory, which is never dropped.
    pub fn remove(&self) {
        remove(&self.0);
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        self.remove();
    }
}

pub(super) fn sweep() {
    let parents = [std::env::temp_dir(), PathBuf::from(MEMORY)];
    for entry in parents.iter().flat_map(std::fs::read_dir).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let is_gone = owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if is_gone && File::open(entry.path()).is_ok_and(|dir| dir.try_lock().is_ok()) {
            remove(&entry.path());
        }
    }
}

/// Together with a cluster that had to be kept elsewhere.
fn remove(path: &Path) {
    if let Ok(elsewhere) = std::fs::read_to_string(path.join("location")) {
        std::fs::remove_dir_all(elsewhere).ok();
    }
    std::fs::remove_dir_all(path).ok();
}

fn free_bytes(path: &str) -> Option<u64> {
    let path = std::ffi::CString::new(path).ok()?;
    // SAFETY: statvfs is plain data, valid when zeroed, and the call writes only to it; the path ends with NUL.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found) == 0).then_some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}
