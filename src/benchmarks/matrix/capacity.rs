//! The KV rule (evidence.md 1.6): which cells a server's cache cannot hold, and the bounds of one capacity that explains the matrix.

use super::{Cell, CellStatus, KvCapacity};

/// Tokens of KV cache that a cell may come to hold: every request its context and its longest answer.
pub fn needed_tokens(context_tokens: u64, concurrency: u32, max_tokens: u64) -> u64 {
    u64::from(concurrency).saturating_mul(context_tokens.saturating_add(max_tokens))
}

/// The bounds over all cells. At context 0 some tools run a cell whatever the rule says; such a cell that contradicts the others says
/// nothing of the capacity.
pub(super) fn bounds(cells: &[Cell], max_tokens: Option<u64>) -> KvCapacity {
    let Some(max_tokens) = max_tokens else { return KvCapacity::default() };
    let need = |cell: &Cell| needed_tokens(cell.context_tokens, cell.concurrency, max_tokens);
    let below_tokens = cells.iter().filter(|c| c.status == CellStatus::OverCapacity).map(need).min();
    let counts = |cell: &&Cell| cell.context_tokens > 0 || below_tokens.is_none_or(|below| need(cell) < below);
    let at_least_tokens = cells.iter().filter(|c| c.status.is_measured()).filter(counts).map(need).max();
    KvCapacity { at_least_tokens, below_tokens }
}
