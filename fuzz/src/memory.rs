//! An allocator that counts. libFuzzer's own limit looks at the process once a second, and sees no allocation that comes and goes between.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// `#[global_allocator]` of every target.
pub struct Bounded;

/// Runs `body`, which ends the process (libFuzzer keeps the input) when more than `bytes_max` are held beyond what was held before.
pub fn within<T>(bytes_max: usize, body: impl FnOnce() -> T) -> T {
    LIMIT.store(LIVE.load(Relaxed).saturating_add(bytes_max), Relaxed);
    let result = body();
    LIMIT.store(usize::MAX, Relaxed);
    result
}

fn grown_by(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed).saturating_add(bytes);
    if live > LIMIT.load(Relaxed) {
        // What reports it allocates as well.
        LIMIT.store(usize::MAX, Relaxed);
        eprintln!("memory: {live} bytes are held, more than this input may take; the last piece has {bytes}");
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing of it.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown_by(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown_by(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        grown_by(new_size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
