//! Leaves: types every layer may use. Knows nothing of HTTP, SQL or any domain.

pub mod answers;
pub mod clock;
pub mod error;
pub mod faults;
pub mod given;
pub mod id;
pub mod money;
pub mod offload;
pub mod seal;
pub mod secret;
pub mod shape;
pub mod text;
pub mod units;

pub use error::{Code, Error, FieldError, Result};
pub use id::Id;
pub use money::Money;
