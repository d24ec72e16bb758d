//! Hardware models, models and their publishers, and what a typed name means.
//!
//! The rows are embedded in the binary (`data/*.csv`) and read from memory; the tables `hardware_models` and `models` mirror them so that
//! other domains can hold foreign keys to a slug and join on a name. A slug once published is never removed or given to another part.
//!
//! Invariants: a name resolves to one row only if no other row carries that name (no substring matching anywhere: "RTX 3090" is never a
//! 3090 Ti); memory chooses between rows of one name and never turns one name into another.
//!
//! Locks: `service::load` upserts in slug order; nothing else writes these tables.

pub mod api;
mod data;
mod hardware_names;
mod model;
mod model_names;
mod queries;
mod search;
pub mod service;
mod tokens;

pub use data::Catalog;
pub use hardware_names::HardwareMatch;
pub use model::{AttentionKind, HardwareKind, HardwareModel, Model, ModelKind, ModelRepo, Publisher};
pub use model_names::ModelMatch;
pub use search::{HardwareFilter, ModelFilter};

/// Longest name looked at, in characters; a longer one is unknown.
pub const NAME_CHARS_MAX: usize = 200;
