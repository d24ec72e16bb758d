//! All SQL of the ledger: `write` changes the books, `read` shows them to their owners, `audit` recomputes them.

pub(super) mod audit;
pub(super) mod read;
pub(super) mod write;
