//! Unpacking: gzip is recognised by its first bytes and read as a stream that stops at the limit, so that a bomb costs no more than the
//! limit itself.

use std::{borrow::Cow, io::Read};

use flate2::bufread::MultiGzDecoder;

use crate::benchmarks::json::{Unreadable, UnreadableCode};
/// What an upload over HTTP may be, so that offline and online refuse the same.
pub use crate::web::body::{PACKED_BYTES_MAX, RUN_BYTES_MAX as UNPACKED_BYTES_MAX};

const MB: usize = 1_000_000;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The JSON text of plain or gzipped bytes.
///
/// # Errors
/// `too_large` beyond either limit, `bad_gzip` for a broken or cut-off stream.
pub fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    if !bytes.starts_with(GZIP_MAGIC) {
        if bytes.len() > UNPACKED_BYTES_MAX {
            return Err(too_large("unpacked", UNPACKED_BYTES_MAX));
        }
        return Ok(Cow::Borrowed(bytes));
    }
    if bytes.len() > PACKED_BYTES_MAX {
        return Err(too_large("packed", PACKED_BYTES_MAX));
    }
    let limit = u64::try_from(UNPACKED_BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(limit.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|e| Unreadable::new("", UnreadableCode::BadGzip, format!("The gzip stream cannot be read: {e}.")))?;
    if text.len() > UNPACKED_BYTES_MAX {
        return Err(too_large("unpacked", UNPACKED_BYTES_MAX));
    }
    Ok(Cow::Owned(text))
}

fn too_large(what: &str, limit: usize) -> Unreadable {
    Unreadable::new("", UnreadableCode::TooLarge, format!("A document has at most {} MB {what}.", limit / MB))
}
