//! Keyset cursors: the position after which a page starts, sealed so that it can be used only with the list it came from.
//!
//! The text is base64url(HMAC-SHA256 ‖ position as JSON). The HMAC covers what the cursor is bound to as well, so one that was altered, made
//! up, or taken from another list or filter is refused. The position is not secret: it is of a row the client has seen.

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
};

const MAC_BYTES: usize = 32;
const TEXT_BYTES_MAX: usize = 4_096;

/// # Errors
/// `internal` when `position` is no JSON.
pub fn seal(ctx: &Ctx, bound_to: &str, position: &impl Serialize) -> Result<String> {
    seal_with(ctx.config.keys.root.expose(), bound_to, position)
}

/// # Errors
/// `invalid_cursor` when it was not made by [`seal`] with this key and `bound_to`.
pub fn open<P: DeserializeOwned>(ctx: &Ctx, bound_to: &str, text: &str) -> Result<P> {
    open_with(ctx.config.keys.root.expose(), bound_to, text)
}

/// [`seal`] with the root key at hand.
///
/// # Errors
/// As there.
pub fn seal_with(root: &[u8], bound_to: &str, position: &impl Serialize) -> Result<String> {
    let position = serde_json::to_vec(position).map_err(Error::internal)?;
    let mut bytes = mac(root, bound_to, &position)?.finalize().into_bytes().to_vec();
    bytes.extend_from_slice(&position);
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

/// [`open`] with the root key at hand.
///
/// # Errors
/// As there.
pub fn open_with<P: DeserializeOwned>(root: &[u8], bound_to: &str, text: &str) -> Result<P> {
    let invalid = || Error::new(Code::InvalidCursor, "The cursor is not one of this list; start again without it.");
    if text.len() > TEXT_BYTES_MAX {
        return Err(invalid());
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| invalid())?;
    let (tag, position) = bytes.split_at_checked(MAC_BYTES).ok_or_else(invalid)?;
    mac(root, bound_to, position)?.verify_slice(tag).map_err(|_| invalid())?;
    serde_json::from_slice(position).map_err(|_| invalid())
}

/// [`open`] for the optional parameter of a query struct.
///
/// # Errors
/// As [`open`].
pub fn open_opt<P: DeserializeOwned>(ctx: &Ctx, bound_to: &str, text: Option<&str>) -> Result<Option<P>> {
    text.map(|text| open(ctx, bound_to, text)).transpose()
}

fn mac(root: &[u8], bound_to: &str, position: &[u8]) -> Result<Hmac<Sha256>> {
    // A key of its own for this purpose: a cursor can never pass for another thing sealed with the root key.
    let mut purpose = Hmac::<Sha256>::new_from_slice(root).map_err(Error::internal)?;
    purpose.update(b"rigmark cursor v1");
    let mut mac = Hmac::<Sha256>::new_from_slice(&purpose.finalize().into_bytes()).map_err(Error::internal)?;
    let length = u64::try_from(bound_to.len()).map_err(Error::internal)?;
    mac.update(&length.to_be_bytes());
    mac.update(bound_to.as_bytes());
    mac.update(position);
    Ok(mac)
}
