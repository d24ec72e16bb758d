//! What tells a copied run from a measured one, and when two runs are too much alike (evidence.md 0 and D, *copied run*).
//!
//! A run is found by its *prints*, one text a cell, in an index over all accounts. An exact print is a cell's tokens and microseconds: two
//! honest measurements share one by chance almost never. A copier changes the last digits; so long windows have close prints too, the
//! cell's speed in two overlapping rows of narrow buckets: speeds that differ by no more than [`CLOSE_SHARE`] have one in common, and then the
//! median TTFT, which varies most of all that is measured, decides whether the cells are copies. Honest runs on equal machines differ by some
//! tenths of a percent in the one and by percents in the other.

use super::verdict::FingerprintCell;
use crate::base::id::{AccountId, MachineId, RunId};

/// Whose run is looked at, among those before it. Another run of the same account for the same machine is no copy.
#[derive(Debug, Clone, Copy)]
pub struct Newcomer {
    pub run: RunId,
    pub account: AccountId,
    pub machine: Option<MachineId>,
}

/// Share by which the speeds of two close cells may differ: half a bucket.
pub const CLOSE_SHARE: f64 = 2e-4;
/// Share by which the median TTFTs of two close cells may differ.
pub const CLOSE_TTFT_SHARE: f64 = 2e-3;
/// Close cells that make a copy at the least; and they are at least half of those that can be compared.
pub const CLOSE_CELLS_MIN: usize = 3;
/// Shorter windows hold too few tokens for two runs to differ in them; the sandbox's are two seconds.
const CLOSE_WINDOW_MICROS_MIN: u64 = 10_000_000;

/// The cell's tokens and seconds.
pub fn exact_print(cell: &FingerprintCell) -> String {
    format!("{}/{}/{}/{}", cell.context_tokens, cell.concurrency, cell.output_tokens, cell.measured_micros)
}

/// The cell's wall time to the last digit: a clock's reading that nothing else follows from, so a copier forgets it.
pub fn wall_print(cell: &FingerprintCell) -> Option<String> {
    cell.wall_seconds.map(|seconds| format!("{}/{}/{seconds}", cell.context_tokens, cell.concurrency))
}

/// The cell's speed as buckets, where its window is long enough to tell machines apart.
pub fn close_prints(cell: &FingerprintCell) -> Option<[String; 2]> {
    if cell.measured_micros < CLOSE_WINDOW_MICROS_MIN || cell.output_tokens == 0 || cell.ttft_ms.is_none() {
        return None;
    }
    let place = (cell.output_tokens as f64 / cell.measured_micros as f64).ln() / (2.0 * CLOSE_SHARE);
    let print = |row: char, bucket: f64| format!("{}/{}/{row}{bucket}", cell.context_tokens, cell.concurrency);
    Some([print('a', place.floor()), print('b', (place + 0.5).floor())])
}

fn are_close(a: &FingerprintCell, b: &FingerprintCell) -> bool {
    let ttfts = a.ttft_ms.zip(b.ttft_ms).is_some_and(|(a, b)| (a - b).abs() <= CLOSE_TTFT_SHARE * a);
    let prints = close_prints(a).zip(close_prints(b));
    ttfts && prints.is_some_and(|(a, b)| a.iter().any(|print| b.contains(print)))
}

/// Whether two runs share at least half of the cells of the smaller one, exactly or very nearly: what the service asks its index, for a run
/// at hand.
pub fn is_near_duplicate(a: &[FingerprintCell], b: &[FingerprintCell]) -> bool {
    let shares = |smaller: usize, shared: usize, least: usize| shared >= least && shared * 2 >= smaller;
    let exact = a.iter().filter(|cell| b.iter().any(|other| exact_print(cell) == exact_print(other))).count();
    let comparable = |cells: &[FingerprintCell]| cells.iter().filter(|cell| close_prints(cell).is_some()).count();
    let close = a.iter().filter(|cell| b.iter().any(|other| are_close(cell, other))).count();
    let walls = |cells: &[FingerprintCell]| cells.iter().filter_map(wall_print).collect::<Vec<_>>();
    let (a_walls, b_walls) = (walls(a), walls(b));
    let same_walls = a_walls.iter().filter(|print| b_walls.contains(print)).count();
    shares(a.len().min(b.len()), exact, 1)
        || shares(a_walls.len().min(b_walls.len()), same_walls, 1)
        || shares(comparable(a).min(comparable(b)), close, CLOSE_CELLS_MIN)
}
