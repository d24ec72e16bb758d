//! Tokens: signed access tokens, and random secrets of which only the hash is kept.

use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    base::{
        Error, Result,
        id::{AccountId, SessionId, account_text},
        secret::Secret,
    },
    config::{JwtKey, Keys},
};

/// How long an access token is good for.
pub const ACCESS_SECONDS: i64 = 900;
/// How long a refresh token is good for.
pub(super) const REFRESH_VALID: TimeDelta = TimeDelta::days(30);
const REFRESH_PREFIX: &str = "rmr_";
const COOKIE_PREFIX: &str = "rms_";
/// What a list of keys shows after the prefix: 40 of 256 bits.
const SHOWN_CHARS: usize = 8;

/// What a key opens. All kinds are made, listed, revoked and looked up in the same way, and none passes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The API, as far as its scopes go.
    Api,
    /// The two routes of the benchmark tool. The tool wants its own prefix and 20 to 64 characters after it.
    Upload,
}

impl KeyKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Upload => "upload",
        }
    }
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Api => "rmk_",
            Self::Upload => "lilb_",
        }
    }
    /// What such a key is called in answers.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Api => "API key",
            Self::Upload => "upload token",
        }
    }
    /// By how it begins; none for an access token.
    pub(super) fn of(secret: &str) -> Option<Self> {
        [Self::Api, Self::Upload].into_iter().find(|kind| secret.starts_with(kind.prefix()))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    sub: String,
    sid: SessionId,
    iat: i64,
    exp: i64,
}

/// Signs an access token for a session, with the first of the keys.
///
/// # Errors
/// `internal` when there is no key.
pub(super) fn access_token(keys: &Keys, user: AccountId, session: SessionId, now: DateTime<Utc>) -> Result<String> {
    let key = keys.jwt.first().ok_or_else(|| Error::internal("no key to sign access tokens"))?;
    let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::HS256) };
    let claims =
        Claims { sub: account_text(user, false), sid: session, iat: now.timestamp(), exp: now.timestamp().saturating_add(ACCESS_SECONDS) };
    let secret = EncodingKey::from_secret(key.secret.expose()).map_err(Error::internal)?;
    jsonwebtoken::encode(&header, &claims, &secret).map_err(Error::internal)
}

/// The session of an access token that is signed by one of the keys and has not expired at `now`: to the second, no leeway. Whose session it
/// is, and whether it still runs, is for the sessions row to say.
pub(super) fn access_token_session(keys: &Keys, token: &str, now: DateTime<Utc>) -> Option<SessionId> {
    let kid = jsonwebtoken::decode_header(token).ok()?.kid?;
    let key: &JwtKey = keys.jwt.iter().find(|key| key.kid == kid)?;
    let mut validation = Validation::new(Algorithm::HS256);
    // The crate would ask the system's clock, which a test cannot move.
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.set_required_spec_claims(&["exp", "sub"]);
    let secret = DecodingKey::from_secret(key.secret.expose()).ok()?;
    let claims = jsonwebtoken::decode::<Claims>(token, &secret, &validation).ok()?.claims;
    (now.timestamp() < claims.exp).then_some(claims.sid)
}

/// A new refresh token: 256 random bits.
pub(super) fn refresh_token() -> Secret<String> {
    Secret::new(random(REFRESH_PREFIX))
}

/// A new secret for a cookie: 256 random bits. Neither a token nor a key of the API.
pub(super) fn cookie() -> Secret<String> {
    Secret::new(random(COOKIE_PREFIX))
}

/// What a form of ours holds and nobody else can know: made from the cookie that the browser sends with it.
///
/// # Errors
/// None in practice: HMAC takes keys of any length.
pub(super) fn form_token(keys: &Keys, cookie: &str) -> Result<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(keys.root.expose()).map_err(Error::internal)?;
    mac.update(b"rigmark form v1\0");
    mac.update(&sha256(cookie));
    Ok(encode(&mac.finalize().into_bytes()))
}

/// What is stored of an address.
///
/// # Errors
/// None in practice: HMAC takes keys of any length.
pub(super) fn address_hmac(keys: &Keys, address: std::net::IpAddr) -> Result<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(keys.root.expose()).map_err(Error::internal)?;
    mac.update(b"rigmark address v1\0");
    mac.update(address.to_string().as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

/// A new key and the beginning of it that may be shown.
pub(super) fn key(kind: KeyKind) -> (Secret<String>, String) {
    let key = random(kind.prefix());
    let shown = key.chars().take(kind.prefix().len() + SHOWN_CHARS).collect();
    (Secret::new(key), shown)
}

/// What is stored of a token. The token is random and long, so a fast hash is enough.
pub(super) fn sha256(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

/// The secret of a mailed link, made from the link's id, so that sending the same letter twice sends the same link, and no table and no job
/// holds it.
///
/// # Errors
/// None in practice: HMAC takes keys of any length.
pub(super) fn mail_token(keys: &Keys, link: Uuid) -> Result<Secret<String>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(keys.root.expose()).map_err(Error::internal)?;
    mac.update(b"rigmark mail link\0");
    mac.update(link.as_bytes());
    Ok(Secret::new(encode(&mac.finalize().into_bytes())))
}

fn random(prefix: &str) -> String {
    format!("{prefix}{}", encode(&rand::random::<[u8; 32]>()))
}

/// Base 32 in lower case: a double click selects all of it.
fn encode(bytes: &[u8]) -> String {
    data_encoding::BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}
