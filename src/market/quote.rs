//! Quotes: a price signed with a key of its own, valid for some seconds of business time (money.md 11). Nothing is stored.
//!
//! The text is base64url(HMAC-SHA256 ‖ terms as JSON). Whoever holds it may use it: it promises a price, not the machine.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;

use super::model::QuoteTerms;
use crate::base::{Code, Error, Result, seal::PurposeKey, secret::Secret};

const PURPOSE: &str = "rigmark quote v1";
const MAC_BYTES: usize = 32;
const TEXT_BYTES_MAX: usize = 2_048;

/// # Errors
/// `internal`: the terms are no JSON.
pub(super) fn sign(root: &Secret<Vec<u8>>, terms: &QuoteTerms) -> Result<String> {
    let terms = serde_json::to_vec(terms).map_err(Error::internal)?;
    let mut bytes = PurposeKey::derive(root, PURPOSE)?.sign(&terms)?.to_vec();
    bytes.extend_from_slice(&terms);
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

/// # Errors
/// `invalid_quote` for a text that was not signed here, `quote_expired` when its time is over.
pub(super) fn open(root: &Secret<Vec<u8>>, text: &str, now: DateTime<Utc>) -> Result<QuoteTerms> {
    let invalid = || Error::new(Code::InvalidQuote, "The quote was not made here; ask for a new one.");
    if text.len() > TEXT_BYTES_MAX {
        return Err(invalid());
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| invalid())?;
    let (tag, terms) = bytes.split_at_checked(MAC_BYTES).ok_or_else(invalid)?;
    if !PurposeKey::derive(root, PURPOSE)?.is_signature(terms, tag)? {
        return Err(invalid());
    }
    let terms: QuoteTerms = serde_json::from_slice(terms).map_err(|_| invalid())?;
    if terms.expires_at <= now {
        return Err(Error::new(Code::QuoteExpired, "The quote has expired; ask for a new one."));
    }
    Ok(terms)
}
