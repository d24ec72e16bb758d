//! Sending a request and reading its stream to the end, or until nobody wants it any more.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::record::{Heard, StreamRecord, excerpt};
use super::sse::Scanner;
use crate::base::clock::monotonic;
use crate::base::{Code, Error, Result};
use crate::engines::{BodyStream, EngineClient, EngineResponse, Target};

/// Before a busy engine is asked again, when it does not say.
const BUSY_WAIT: Duration = Duration::from_secs(2);
const BUSY_WAIT_MIN: Duration = Duration::from_millis(100);
/// For one token: a long prompt on a slow machine takes minutes.
const ANSWER_MAX: Duration = Duration::from_secs(1_800);
/// How often a request whose connection broke before any answer is sent again.
const REUSE_TRIES: u32 = 2;
/// What takes longer is no connection that was closed before.
const REUSE_WITHIN: Duration = Duration::from_secs(1);
/// The body ends with `[DONE]`; read to its end the connection serves the next request.
const END_WAIT: Duration = Duration::from_millis(20);

/// Who is asked, and in which words.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub client: &'a EngineClient,
    pub target: &'a Target,
    pub model: &'a str,
    /// Only members of OpenAI's own API: some refuse what they do not know.
    pub is_plain: bool,
    /// How long a single request is sent again to an engine that says it is busy or loading.
    pub patience: Duration,
}

impl<'a> Asker<'a> {
    /// In the words of engines, without a second try.
    pub const fn once(client: &'a EngineClient, target: &'a Target, model: &'a str) -> Self {
        Self { client, target, model, is_plain: false, patience: Duration::ZERO }
    }

    /// The body of a measuring request: streamed, with usage on every chunk where the engine can, and no end before `max_tokens`.
    pub fn body(&self, prompt: &str, max_tokens: u64) -> Bytes {
        if !self.is_plain {
            return request_body(self.model, prompt, max_tokens);
        }
        Bytes::from(
            json!({
                "model": self.model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "stream": true,
                "stream_options": {"include_usage": true},
            })
            .to_string(),
        )
    }

    /// A request for one token; an answer without an error.
    pub async fn one_token(&self, prompt: &str) -> Result<StreamRecord> {
        let record = self.one_token_record(prompt).await;
        match &record.error {
            Some(error) => Err(Error::new(Code::EngineError, format!("The engine failed at a prompt of the benchmark: {error}"))),
            None => Ok(record),
        }
    }

    /// The same, whatever came of it.
    pub async fn one_token_record(&self, prompt: &str) -> StreamRecord {
        let (body, never) = (self.body(prompt, 1), CancellationToken::new());
        let ask = || async {
            let record = run_request(self.client, self.target, body.clone(), &never, |_| ());
            match tokio::time::timeout(ANSWER_MAX, record).await {
                Ok(record) => record,
                Err(_) => StreamRecord { error: Some("no answer in time".to_owned()), ..StreamRecord::new(monotonic()) },
            }
        };
        let mut left = self.patience;
        loop {
            let record = ask().await;
            let Some(wait) = record.retry_after.filter(|_| !left.is_zero()) else { return record };
            let wait = wait.clamp(BUSY_WAIT_MIN, left.max(BUSY_WAIT_MIN));
            tokio::time::sleep(wait).await;
            left = left.saturating_sub(wait);
        }
    }
}

/// [`Asker::body`] in the words of engines.
pub fn request_body(model: &str, prompt: &str, max_tokens: u64) -> Bytes {
    Bytes::from(
        json!({
            "model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "stream": true,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}, "ignore_eos": true,
        })
        .to_string(),
    )
}

/// What all streams of a cell tell while they run.
#[derive(Default)]
pub struct Shared {
    /// Workers that have had a token.
    pub active: AtomicUsize,
    pub failed: AtomicUsize,
    pub completed_requests: AtomicUsize,
    pub tokens: AtomicU64,
}

/// Runs one request until it ends, fails, or `stop` is cancelled; dropping the connection tells the engine to stop. `on_tokens` hears of
/// every piece of the stream that brought tokens, and how many.
pub async fn run_request(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    on_tokens: impl FnMut(u64),
) -> StreamRecord {
    run(client, target, body, stop, on_tokens, StreamRecord::new(monotonic())).await
}

/// The same, and keeps what the stream said.
pub async fn hear_request(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    on_tokens: impl FnMut(u64),
) -> StreamRecord {
    let record = StreamRecord { heard: Some(Heard::default()), ..StreamRecord::new(monotonic()) };
    run(client, target, body, stop, on_tokens, record).await
}

async fn run(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    mut on_tokens: impl FnMut(u64),
    mut record: StreamRecord,
) -> StreamRecord {
    let mut tries_left = REUSE_TRIES;
    let opened = loop {
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return record,
            opened = client.chat(target, body.clone(), true) => opened,
        };
        match opened {
            // Some servers close a connection after an answer without saying so: then the next request on it is lost, and nobody to blame.
            Err(error) if error.code() == Code::EngineUnreachable && tries_left > 0 && record.started.elapsed() < REUSE_WITHIN => {
                tries_left -= 1;
            }
            opened => break opened,
        }
        record.started = monotonic();
    };
    match opened {
        Ok(response) if response.status == 200 => read(response.body, &mut record, stop, &mut on_tokens).await,
        Ok(response) => refused(response, &mut record).await,
        Err(error) => record.error = Some(error.detail().to_owned()),
    }
    // Engines repeat a key that they do not take; the document must not.
    if let (Some(error), Some(key)) = (&mut record.error, &target.api_key) {
        *error = error.replace(key.expose().as_str(), "[key]");
    }
    record
}

async fn refused(response: EngineResponse, record: &mut StreamRecord) {
    let status = response.status;
    record.refused = Some(status);
    if matches!(status, 429 | 503) {
        let seconds = response.headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        record.retry_after = Some(seconds.map_or(BUSY_WAIT, Duration::from_secs));
    }
    let text = response.bytes().await.unwrap_or_default();
    record.error = Some(format!("status {status}: {}", excerpt(&text)));
}

async fn read(mut body: BodyStream, record: &mut StreamRecord, stop: &CancellationToken, on_tokens: &mut impl FnMut(u64)) {
    let mut scanner = Scanner::default();
    // Made once: a waiter for each token would be a lock for each token.
    let mut stopped = std::pin::pin!(stop.cancelled());
    while !record.is_over() {
        let piece = tokio::select! {
            biased;
            () = &mut stopped => return,
            piece = body.next() => piece,
        };
        let at = monotonic();
        let before = record.tokens();
        match piece {
            Some(Ok(piece)) => record.take(&mut scanner, &piece, at),
            Some(Err(error)) => record.error = Some(error.detail().to_owned()),
            None => record.error = Some("the stream ended without [DONE]".to_owned()),
        }
        let tokens = record.tokens() - before;
        if tokens > 0 {
            on_tokens(tokens);
        }
    }
    if record.completed.is_some() {
        let rest = async { while let Some(Ok(_)) = body.next().await {} };
        // An engine that keeps it open costs a connection, nothing more.
        let _in_time = tokio::time::timeout(END_WAIT, rest).await;
    }
}

/// One of a cell's streams: sends the request again as often as it completes.
pub async fn run_worker(
    client: EngineClient,
    target: Target,
    body: Bytes,
    hears: bool,
    stop: CancellationToken,
    shared: &Shared,
) -> Vec<StreamRecord> {
    let mut records: Vec<StreamRecord> = Vec::new();
    let mut is_active = false;
    loop {
        let on_tokens = |tokens| {
            shared.tokens.fetch_add(tokens, Relaxed);
            if !std::mem::replace(&mut is_active, true) {
                shared.active.fetch_add(1, Relaxed);
            }
        };
        let record = match hears {
            true => hear_request(&client, &target, body.clone(), &stop, on_tokens).await,
            false => run_request(&client, &target, body.clone(), &stop, on_tokens).await,
        };
        let goes_on = record.error.is_none() && record.completed.is_some() && !stop.is_cancelled();
        if record.error.is_some() {
            shared.failed.fetch_add(1, Relaxed);
        }
        if record.completed.is_some() {
            shared.completed_requests.fetch_add(1, Relaxed);
        }
        records.push(record);
        if !goes_on {
            return records;
        }
    }
}
