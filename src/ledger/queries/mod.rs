//! All SQL of the ledger: `write` changes the books, `read` shows them to their owners, `fold` sums them by rental, `audit`
//! recomputes them; `many` writes the charges of many rentals, `mature` finds what has become payable.

pub(super) mod audit;
pub(super) mod fold;
pub(super) mod many;
pub(super) mod mature;
pub(super) mod read;
pub(super) mod write;
