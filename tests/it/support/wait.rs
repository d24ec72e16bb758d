//! Bounded waiting for a condition, in place of sleeps.

use std::time::Duration;

use rigmark::base::clock;

/// Asks `condition` again and again until it holds. Panics, naming `what`, when it does not within `bound`.
#[track_caller]
pub fn wait_for<'a>(what: &'a str, bound: Duration, mut condition: impl AsyncFnMut() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        let start = clock::monotonic();
        while !condition().await {
            assert!(start.elapsed() < bound, "{caller}: {what} did not come within {bound:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
