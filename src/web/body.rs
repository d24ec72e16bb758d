//! Reading a request body within limits: on the wire, unpacked, and in time. The only reader of bodies: actix's own automatic inflating is
//! never in the way, because the raw payload is taken.
//!
//! Invariants: never more than `limit` unpacked bytes are held, nor inflated beyond it; a body that cannot fit is refused as soon as that is
//! known (from its declared length, or at the byte that is one too many). Bodies above [`LARGE_BYTES`] take one of a few permits and keep it
//! until they are dropped, so that many uploads at once cannot use up the memory.

use std::{
    future::Future,
    io::{self, Write},
    ops::Deref,
    pin::Pin,
    time::Duration,
};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::header::{self, HeaderMap},
};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::base::{Code, Error, Result, clock};

/// Unless a route says otherwise.
pub const DEFAULT_BYTES_MAX: usize = 262_144;
/// A run document (api.md, Conventions).
pub const RUN_BYTES_MAX: usize = 64_000_000;
/// A compressed body on the wire, whatever it unpacks to.
pub const PACKED_BYTES_MAX: usize = 16_000_000;

const LARGE_BYTES: usize = 1_000_000;
const LARGE_BODIES_MAX: usize = 8;
const IDLE_SECONDS_MAX: u64 = 30;
const TOTAL_SECONDS_MAX: u64 = 180;

static LARGE_BODIES: Semaphore = Semaphore::const_new(LARGE_BODIES_MAX);

/// A body that was read whole and unpacked.
#[derive(Debug)]
pub struct Body {
    bytes: Bytes,
    /// Held while the bytes are.
    _permit: Option<SemaphorePermit<'static>>,
}

impl Deref for Body {
    type Target = Bytes;
    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

/// The body as bytes, unpacked; for routes that read them themselves (webhooks, the endpoint).
#[derive(Debug)]
pub struct RawBody<const LIMIT: usize = DEFAULT_BYTES_MAX>(pub Body);

impl<const LIMIT: usize> Deref for RawBody<LIMIT> {
    type Target = Bytes;
    fn deref(&self) -> &Bytes {
        &self.0
    }
}

impl<const LIMIT: usize> FromRequest for RawBody<LIMIT> {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = read(req.headers(), payload.take(), LIMIT);
        Box::pin(async move { body.await.map(Self) })
    }
}

/// Reads the body, unpacking it as `Content-Encoding` says.
///
/// # Errors
/// `payload_too_large`, `unsupported_encoding`, `malformed_request` (bad compression, or cut off), `request_timeout`.
pub(super) fn read(headers: &HeaderMap, payload: Payload, limit: usize) -> impl Future<Output = Result<Body>> + 'static {
    let encoding = Encoding::of(headers);
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    async move {
        let encoding = encoding?;
        let wire_limit = if encoding == Encoding::Identity { limit } else { limit.min(PACKED_BYTES_MAX) };
        if declared.is_some_and(|length| length > wire_limit) {
            return Err(too_large(wire_limit));
        }
        collect(payload, encoding, wire_limit, limit).await
    }
}

async fn collect(mut payload: Payload, encoding: Encoding, wire_limit: usize, limit: usize) -> Result<Body> {
    let start = clock::monotonic();
    let mut unpacker = Unpacker::new(encoding, limit);
    let mut permit = None;
    let mut wire_bytes = 0_usize;
    loop {
        let wait = Duration::from_secs(TOTAL_SECONDS_MAX).saturating_sub(start.elapsed()).min(Duration::from_secs(IDLE_SECONDS_MAX));
        let chunk = match timeout(wait, payload.next()).await {
            Err(_elapsed) => return Err(timed_out()),
            Ok(None) => break,
            Ok(Some(chunk)) => chunk.map_err(|error| from_payload_error(&error))?,
        };
        if wire_bytes == 0 && encoding == Encoding::Brotli && chunk.first().is_some_and(|first| wants_large_window(*first)) {
            return Err(Error::new(Code::MalformedRequest, "A br body must not use a large window."));
        }
        wire_bytes = wire_bytes.saturating_add(chunk.len());
        if wire_bytes > wire_limit {
            return Err(too_large(wire_limit));
        }
        // In slices, so that one chunk of a bomb neither inflates far at once nor keeps other requests of this thread waiting.
        for slice in chunk.chunks(16_384) {
            unpacker.write(slice)?;
            if permit.is_none() && unpacker.unpacked_bytes() > LARGE_BYTES {
                let free = timeout(Duration::from_secs(TOTAL_SECONDS_MAX), LARGE_BODIES.acquire()).await;
                permit = Some(free.map_err(|_elapsed| busy())?.map_err(Error::internal)?);
            }
            tokio::task::consume_budget().await;
        }
    }
    Ok(Body { bytes: unpacker.finish()?.into(), _permit: permit })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Brotli,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self> {
        let mut all = headers.get_all(header::CONTENT_ENCODING);
        let (first, second) = (all.next(), all.next());
        let text = first.map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase());
        match (text.as_deref(), second) {
            (None | Some("" | "identity"), None) => Ok(Self::Identity),
            (Some("gzip" | "x-gzip"), None) => Ok(Self::Gzip),
            (Some("br"), None) => Ok(Self::Brotli),
            _ => Err(Error::new(Code::UnsupportedEncoding, "Content-Encoding must be gzip, br or identity.")),
        }
    }
}

/// The decoders write into a buffer that refuses to grow beyond the limit, which stops them in the middle of their work.
enum Unpacker {
    Identity(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Brotli(Box<brotli::DecompressorWriter<Bounded>>),
}

impl Unpacker {
    fn new(encoding: Encoding, limit: usize) -> Self {
        let target = Bounded { bytes: Vec::new(), limit, overflown: false };
        match encoding {
            Encoding::Identity => Self::Identity(target),
            Encoding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(target))),
            Encoding::Brotli => Self::Brotli(Box::new(brotli::DecompressorWriter::new(target, 16_384))),
        }
    }

    fn target(&self) -> &Bounded {
        match self {
            Self::Identity(target) => target,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Brotli(decoder) => decoder.get_ref(),
        }
    }

    fn unpacked_bytes(&self) -> usize {
        self.target().bytes.len()
    }

    fn write(&mut self, chunk: &[u8]) -> Result<()> {
        let written = match self {
            Self::Identity(target) => target.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
            Self::Brotli(decoder) => decoder.write_all(chunk),
        };
        written.map_err(|error| self.fault(&error))
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        let ended = match &mut self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
        };
        ended.map_err(|error| self.fault(&error))?;
        Ok(match self {
            Self::Identity(target) => target.bytes,
            Self::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
            Self::Brotli(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
        })
    }

    fn fault(&self, error: &io::Error) -> Error {
        let target = self.target();
        if target.overflown {
            return too_large(target.limit);
        }
        Error::new(Code::MalformedRequest, format!("The body could not be unpacked: {error}."))
    }
}

/// The decoder would accept the "large window" form, which is no `br` and makes it take up to a gigabyte before it puts anything out.
const fn wants_large_window(first: u8) -> bool {
    first & 0x7f == 0x11
}

struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    overflown: bool,
}

impl Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let needed = self.bytes.len().saturating_add(chunk.len());
        if needed > self.limit {
            self.overflown = true;
            return Err(io::Error::other("beyond the limit"));
        }
        if needed > self.bytes.capacity() {
            // Doubles as a `Vec` does, but never beyond the limit.
            let capacity = needed.max(self.bytes.capacity().saturating_mul(2)).max(8_192).min(self.limit);
            self.bytes.reserve_exact(capacity.saturating_sub(self.bytes.len()));
        }
        self.bytes.extend_from_slice(chunk);
        Ok(chunk.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn from_payload_error(error: &PayloadError) -> Error {
    match error {
        PayloadError::Overflow => Error::new(Code::PayloadTooLarge, "The body is too large."),
        other => Error::new(Code::MalformedRequest, format!("The body could not be read: {other}.")),
    }
}

fn too_large(limit: usize) -> Error {
    Error::new(Code::PayloadTooLarge, format!("The body may have at most {limit} bytes."))
}

fn timed_out() -> Error {
    Error::new(Code::RequestTimeout, "The body did not arrive in time.")
}

fn busy() -> Error {
    Error::new(Code::Unavailable, "Too many large uploads at once.").with_retry_after(10)
}
