//! Handles: the names of accounts, people and teams in one namespace.
//!
//! Invariants: a [`Handle`] is lower-case and of the right form; two handles never have the same [`Handle::skeleton`] (a unique column), so
//! that no account can look like another; reserved words and what looks like them belong to nobody.

use std::{collections::HashSet, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};

const CHARS_MIN: usize = 3;
const CHARS_MAX: usize = 39;
/// Closed accounts are renamed to this and a random text; nobody can register it.
pub(super) const CLOSED_PREFIX: &str = "closed-";

/// Words that speak for the service or break a parser. Publishers are added by composition (`Ctx::reserved_handles`), since the catalog is a
/// later domain.
#[rustfmt::skip]
pub const RESERVED: &[&str] = &[
    "abuse",
    "admin",
    "administrator",
    "administrators",
    "admins",
    "anonymous",
    "api",
    "auth",
    "billing",
    "closed",
    "compliance",
    "contact",
    "docs",
    "endpoint",
    "everyone",
    "help",
    "helpdesk",
    "hostmaster",
    "internal",
    "legal",
    "login",
    "logout",
    "mailer-daemon",
    "marketplace",
    "me",
    "measured",
    "mod",
    "moderator",
    "moderators",
    "nobody",
    "none",
    "noreply",
    "null",
    "official",
    "operator",
    "operators",
    "organization",
    "organizations",
    "password",
    "payments",
    "payouts",
    "platform",
    "postmaster",
    "privacy",
    "pro",
    "register",
    "rigmark",
    "rigmark-admin",
    "rigmark-official",
    "rigmark-support",
    "rigmark-team",
    "root",
    "sandbox",
    "security",
    "settings",
    "sign-in",
    "sign-up",
    "staff",
    "status",
    "stripe",
    "sudo",
    "support",
    "system",
    "undefined",
    "v1",
    "verify",
    "webmaster",
    "www",
];

/// A handle of the right form, in lower case. Reads `@name` and `name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle(String);

/// Why a text is no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle has 3 to 39 letters a-z, digits and single hyphens, and neither starts nor ends with a hyphen")]
pub struct ParseHandleError;

impl Handle {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The handle with look-alikes made equal: hyphens removed, `rn` as `m`, `vv` as `w`, `0` as `o`, `1` and `l` as `i`, `5` as `s`.
    pub fn skeleton(&self) -> String {
        skeleton(&self.0)
    }

    /// Whether nobody may register it: a reserved word, something that looks like one, or the form of a closed account's handle.
    pub fn is_reserved(&self, more: &HashSet<String>) -> bool {
        let own = self.skeleton();
        let same = |word: &str| skeleton(word) == own;
        self.0.starts_with(CLOSED_PREFIX) || RESERVED.iter().any(|word| same(word)) || more.iter().any(|word| same(word))
    }
}

fn skeleton(text: &str) -> String {
    let joined = text.to_ascii_lowercase().replace('-', "").replace("rn", "m").replace("vv", "w");
    let alike = |c| match c {
        '0' => 'o',
        '1' | 'l' => 'i',
        '5' => 's',
        other => other,
    };
    joined.chars().map(alike).collect()
}

impl FromStr for Handle {
    type Err = ParseHandleError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix('@').unwrap_or(text).to_ascii_lowercase();
        let form = (CHARS_MIN..=CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-')
            && !text.contains("--");
        if form { Ok(Self(text)) } else { Err(ParseHandleError) }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
