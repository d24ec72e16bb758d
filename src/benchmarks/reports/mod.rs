//! Reports: speeds that people typed in.
//!
//! Invariants: a report is of evidence level `reported` and never labelled measured; no figure counts reports and runs together, they do not
//! even share a table; what no engine could have done is refused, and what the hardware could do with speculation only is kept and says so.

pub mod api;
pub mod model;
mod plausible;
pub(super) mod queries;

pub use plausible::Bound;
