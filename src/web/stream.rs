//! Answers that go on: server-sent events.

use actix_web::{
    HttpResponse,
    http::header::{self, ContentEncoding},
};
use bytes::Bytes;
use futures::Stream;

use crate::base::Error;

/// `text/event-stream` that nothing on the way holds back: not compressed here, not buffered by proxies, not cached.
pub fn event_stream(events: impl Stream<Item = Result<Bytes, Error>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        // Tells the compression to leave it alone; `edge` takes the header away again.
        .insert_header(ContentEncoding::Identity)
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(events)
}
