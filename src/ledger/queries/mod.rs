//! All SQL of the ledger: `write` changes the books, `read` shows them to their owners, `audit` recomputes them,
//! `mature` finds what has become payable.

pub(super) mod audit;
pub(super) mod mature;
pub(super) mod read;
pub(super) mod write;
