//! Secrets and signatures of Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base::{Error, Result, secret::Secret};

const PREFIX: &str = "whsec_";
/// The specification wants 24 to 64.
const SECRET_BYTES: usize = 32;

/// A signing key.
#[derive(Debug, Clone)]
pub(super) struct SigningSecret(Secret<Vec<u8>>);

impl SigningSecret {
    pub fn new() -> Self {
        let bytes: [u8; SECRET_BYTES] = rand::random();
        Self::from_bytes(bytes.to_vec())
    }
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(Secret::new(bytes))
    }
    pub fn bytes(&self) -> &[u8] {
        self.0.expose()
    }
    /// As its owner is shown it, once.
    pub fn text(&self) -> Secret<String> {
        Secret::new(format!("{PREFIX}{}", BASE64.encode(self.bytes())))
    }

    fn sign(&self, id: &str, timestamp: i64, body: &str) -> Result<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.bytes()).map_err(Error::internal)?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        Ok(format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes())))
    }
}

/// The header: one signature for each secret, separated by a space.
pub(super) fn signatures(secrets: &[SigningSecret], id: &str, timestamp: i64, body: &str) -> Result<String> {
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, timestamp, body)).collect::<Result<_>>()?;
    Ok(signatures.join(" "))
}
