//! Encrypting small secrets at rest, each kind with a key of its own derived from the root key.
//!
//! The bytes are: version (1) ‖ nonce (24) ‖ XChaCha20-Poly1305 ciphertext and tag. What the secret belongs to is authenticated with it, so
//! that a value copied to another row does not open.

use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce, aead::Aead, aead::Payload};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::{Error, Result, secret::Secret};

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// The root key, for one purpose. Keys of different purposes say nothing about each other.
#[derive(Debug, Clone)]
pub struct PurposeKey(Secret<[u8; 32]>);

impl PurposeKey {
    /// `purpose` is a fixed text with a version: `rigmark engine key v1`.
    ///
    /// # Errors
    /// `internal` when HMAC refuses the root key, which it does for none.
    pub fn derive(root: &Secret<Vec<u8>>, purpose: &str) -> Result<Self> {
        let mut mac = Hmac::<Sha256>::new_from_slice(root.expose()).map_err(Error::internal)?;
        mac.update(purpose.as_bytes());
        Ok(Self(Secret::new(mac.finalize().into_bytes().into())))
    }

    /// Encrypts `plain` for `owner` (a row's id).
    ///
    /// # Errors
    /// `internal`: the cipher refused.
    pub fn seal(&self, owner: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let sealed = self
            .cipher()?
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: owner })
            .map_err(|_| Error::internal("a secret could not be sealed"))?;
        let mut bytes = Vec::with_capacity(1 + NONCE_BYTES + sealed.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Ok(bytes)
    }

    /// # Errors
    /// `internal` when the bytes were not sealed with this key for this owner: the root key was changed, or the row was.
    pub fn open(&self, owner: &[u8], sealed: &[u8]) -> Result<Vec<u8>> {
        let fault = || Error::internal("a sealed secret does not open with this key");
        let (version, rest) = sealed.split_first().ok_or_else(fault)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES).ok_or_else(fault)?;
        let nonce = <[u8; NONCE_BYTES]>::try_from(nonce).map_err(|_| fault())?;
        if *version != VERSION {
            return Err(fault());
        }
        self.cipher()?.decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: owner }).map_err(|_| fault())
    }

    /// Authenticates `message`: HMAC-SHA256.
    ///
    /// # Errors
    /// As [`Self::derive`].
    pub fn sign(&self, message: &[u8]) -> Result<[u8; 32]> {
        Ok(self.mac(message)?.finalize().into_bytes().into())
    }

    /// Whether `tag` is the signature of `message`, in constant time.
    ///
    /// # Errors
    /// As [`Self::derive`].
    pub fn is_signature(&self, message: &[u8], tag: &[u8]) -> Result<bool> {
        Ok(self.mac(message)?.verify_slice(tag).is_ok())
    }

    fn mac(&self, message: &[u8]) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose()).map_err(Error::internal)?;
        mac.update(message);
        Ok(mac)
    }

    fn cipher(&self) -> Result<XChaCha20Poly1305> {
        XChaCha20Poly1305::new_from_slice(self.0.expose()).map_err(Error::internal)
    }
}
