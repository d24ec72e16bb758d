//! The database's faults as `base::Error`: constraint violations become answers by the constraint's name, a server that has gone away is
//! `unavailable`, all else is `internal`.

use diesel::result::{DatabaseErrorKind, Error as DieselError};

use crate::base::{Code, Error, Result};

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        if is_gone(&error) { unavailable(error) } else { Self::internal(error) }
    }
}

/// The server stopped, or is starting: the same request a moment later may succeed.
pub(super) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(Code::Unavailable, "The database cannot be reached.").with_source(source).with_retry_after(1)
}

/// The driver has no kind for this: its texts, and PostgreSQL's (57P01 to 57P03).
fn is_gone(error: &DieselError) -> bool {
    const TEXTS: [&str; 4] =
        ["connection closed", "error communicating with the server", "terminating connection", "the database system is"];
    let DieselError::DatabaseError(_, info) = error else { return false };
    TEXTS.iter().any(|text| info.message().starts_with(text))
}

fn diesel_error(error: &Error) -> Option<&DieselError> {
    std::error::Error::source(error).and_then(|s| s.downcast_ref::<DieselError>())
}

/// Serialization failures and deadlocks: the same transaction may succeed when tried again.
pub(super) fn is_transient(error: &Error) -> bool {
    match diesel_error(error) {
        Some(DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => true,
        Some(DieselError::DatabaseError(_, info)) => info.message().contains("deadlock detected"),
        _ => false,
    }
}

/// Turns the violation of a named constraint into an answer: insert first, then translate (no check before the write).
pub trait OnConstraint<T> {
    /// # Errors
    /// `answer()` when the constraint `name` was violated, any other fault unchanged.
    fn on_constraint(self, name: &str, answer: impl FnOnce() -> Error) -> Result<T>;
}

impl<T, E: Into<Error>> OnConstraint<T> for Result<T, E> {
    fn on_constraint(self, name: &str, answer: impl FnOnce() -> Error) -> Result<T> {
        self.map_err(|error| {
            let error: Error = error.into();
            match diesel_error(&error) {
                Some(DieselError::DatabaseError(_, info)) if info.constraint_name() == Some(name) => answer(),
                _ => error,
            }
        })
    }
}
