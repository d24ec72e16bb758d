//! The address of an engine as a host writes it: `http[s]://host[:port][/prefix]`, without `/v1`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use super::rules;
use crate::base::{Code, Error};

const LENGTH_MAX: usize = 512;

/// A checked URL. Its text has no trailing slash, no credentials, no query and no fragment; a host that is a number in any spelling
/// (`0x7f.1`, `2130706433`) has become the dotted address it means.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EngineAddress {
    url: Url,
}

/// What is wrong with the text; no part of the text is repeated, for it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    #[error("The URL is longer than {LENGTH_MAX} characters.")]
    TooLong,
    #[error("This is not a URL such as https://gpu.example.org:8000.")]
    NotAUrl,
    #[error("The URL must begin with http:// or https://.")]
    Scheme,
    #[error("The URL must not contain a user name or a password; send the key in its own field.")]
    Credentials,
    #[error("The URL must not contain a query or a fragment.")]
    QueryOrFragment,
    #[error("Leave out the /v1 at the end: Rigmark adds it.")]
    VersionSuffix,
    #[error("The port must not be 0.")]
    Port,
}

impl AddressFault {
    /// Stable code for the field error.
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotAUrl | Self::Scheme | Self::Port => "invalid_url",
            Self::Credentials => "url_with_credentials",
            Self::QueryOrFragment => "url_with_query",
            Self::VersionSuffix => "url_with_version",
        }
    }

    /// The 422 error for a request field, `pointer` being its JSON pointer.
    pub fn at(self, pointer: &str) -> Error {
        Error::invalid(pointer, self.code(), self.to_string())
    }
}

impl EngineAddress {
    pub fn parse(text: &str) -> Result<Self, AddressFault> {
        if text.len() > LENGTH_MAX {
            return Err(AddressFault::TooLong);
        }
        // The URL standard drops tabs and line breaks inside a URL; here they are more likely an attack than a slip.
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(AddressFault::NotAUrl);
        }
        let mut url = Url::parse(text).map_err(|_| AddressFault::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressFault::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressFault::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressFault::QueryOrFragment);
        }
        if url.host().is_none() {
            return Err(AddressFault::NotAUrl);
        }
        if url.port() == Some(0) {
            return Err(AddressFault::Port);
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if path == "/v1" || path.ends_with("/v1") {
            return Err(AddressFault::VersionSuffix);
        }
        url.set_path(&path);
        Ok(Self { url })
    }

    /// The host when it is an address by itself, not a name.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.into()),
            Host::Domain(_) => None,
        }
    }

    /// Host as it stands in the URL, IPv6 in brackets.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(80)
    }

    /// The URL of `path`, which begins with a slash (`/v1/models`).
    pub fn join(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// Refuses at once what needs no look-up: a literal address that is not public.
    pub fn check_literal(&self, allow_private: bool) -> crate::base::Result<()> {
        match self.literal().and_then(rules::forbidden) {
            Some(kind) if !allow_private => Err(forbidden_error(kind)),
            _ => Ok(()),
        }
    }
}

pub(super) fn forbidden_error(kind: &str) -> Error {
    Error::new(Code::ForbiddenAddress, format!("The engine's address is not a public one ({kind})."))
}

impl FromStr for EngineAddress {
    type Err = AddressFault;
    fn from_str(text: &str) -> Result<Self, AddressFault> {
        Self::parse(text)
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
