//! The signature of Stripe's webhooks: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">,…`
//! (<https://docs.stripe.com/webhooks#verify-manually>).

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base::secret::Secret;

pub const SIGNATURE_HEADER: &str = "stripe-signature";
/// How far the time of signing may be from ours, in either direction.
const TOLERANCE_SECONDS: u64 = 300;
const HEADER_BYTES_MAX: usize = 4_096;

/// Whether `header` holds a signature of exactly these bytes by one of the secrets, made about now. Several `v1` may stand there, while a
/// secret is being replaced; other schemes count for nothing. Signatures are compared in constant time.
pub fn is_signed(header: &str, body: &[u8], secrets: &[Secret<String>], now: DateTime<Utc>) -> bool {
    if header.len() > HEADER_BYTES_MAX {
        return false;
    }
    let mut time = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=') {
            // Two times would leave open which of them was signed.
            Some(("t", _)) if time.is_some() => return false,
            Some(("t", text)) => time = Some(text),
            Some(("v1", text)) => signatures.extend(data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes())),
            _ => {}
        }
    }
    let Some(time) = time else { return false };
    let Ok(seconds) = time.parse::<i64>() else { return false };
    if now.timestamp().abs_diff(seconds) > TOLERANCE_SECONDS {
        return false;
    }
    secrets.iter().any(|secret| {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return false };
        mac.update(time.as_bytes());
        mac.update(b".");
        mac.update(body);
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    })
}
