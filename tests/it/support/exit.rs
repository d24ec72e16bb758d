//! What to do when the test process exits: static values are not dropped.

use std::sync::{Mutex, Once, PoisonError};

static WORKS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Runs `work` when the process exits in order.
pub fn at_exit(work: fn()) {
    static HOOK: Once = Once::new();
    WORKS.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    // SAFETY: registers a function that lives as long as the program.
    HOOK.call_once(|| assert_eq!(unsafe { libc::atexit(run) }, 0));
}

extern "C" fn run() {
    let works = std::mem::take(&mut *WORKS.lock().unwrap_or_else(PoisonError::into_inner));
    for work in works {
        work();
    }
}
