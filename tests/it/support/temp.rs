//! Directories of one test run, and sweeping those that killed runs left.
//!
//! The name holds the id of the process, so that a sweep spares the directories of runs that are still going.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

const PREFIX: &str = "rigmark-test-";

/// A directory that other users can pass through (as root, PostgreSQL runs as another user); removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), rand::random::<u32>());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o711)).unwrap();
        Self(path)
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
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
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
