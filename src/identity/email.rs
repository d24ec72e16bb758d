//! E-mail addresses: lower-case, checked for form, and never printed by accident.

use std::{fmt, str::FromStr};

const CHARS_MAX: usize = 254;
const LOCAL_CHARS_MAX: usize = 64;

/// An address of the right form, in lower case. `Debug` does not show it (logs hold no addresses); there is no `Display`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

/// Why a text is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an e-mail address has the form name@example.org and at most 254 characters")]
pub struct ParseEmailError;

impl Email {
    /// The address itself, on purpose: for a query or a letter's head.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Form only; whether mail arrives is what confirmation is for. Quoted local parts and address literals are refused, non-ASCII too (the case
/// of such an address cannot be folded safely, and the address is a key).
impl FromStr for Email {
    type Err = ParseEmailError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().to_ascii_lowercase();
        let (local, domain) = text.rsplit_once('@').ok_or(ParseEmailError)?;
        let local_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b);
        let local_ok = (1..=LOCAL_CHARS_MAX).contains(&local.len())
            && local.bytes().all(local_char)
            && !local.starts_with('.')
            && !local.ends_with('.')
            && !local.contains("..");
        let label_ok = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let domain_ok = domain.contains('.') && domain.split('.').all(label_ok);
        if local_ok && domain_ok && text.len() <= CHARS_MAX { Ok(Self(text)) } else { Err(ParseEmailError) }
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[e-mail]")
    }
}
