//! One streamed request from its first byte to its last, with the instant of every token.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::sse::{Event, Scanner, text_of};
use crate::base::clock::monotonic;
use crate::base::{Code, Error, Result};
use crate::engines::{BodyStream, EngineClient, Target};

/// The body of a measuring request: streamed, with usage on every chunk where the engine can, and no end before `max_tokens`.
pub fn request_body(model: &str, prompt: &str, max_tokens: u64) -> Bytes {
    Bytes::from(
        json!({
            "model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "stream": true,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}, "ignore_eos": true,
        })
        .to_string(),
    )
}

/// The tokens there were at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub at: Instant,
    pub tokens: u64,
}

/// What a stream said: the beginning of its text, and how much there was of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// At most [`HEARD_BYTES_MAX`], reasoning and answer in the order they came.
    pub text: String,
    /// Bytes of all text, kept or not.
    pub bytes: u64,
    pub has_reasoning: bool,
}

const HEARD_BYTES_MAX: usize = 8_192;

impl Heard {
    fn hear(&mut self, data: &[u8]) {
        let Some((text, is_reasoning)) = text_of(data) else { return };
        self.bytes += text.len() as u64;
        self.has_reasoning |= is_reasoning;
        if self.text.len() + text.len() <= HEARD_BYTES_MAX {
            self.text.push_str(&text);
        }
    }
}

/// What was seen of one request.
#[derive(Debug, Clone)]
pub struct StreamRecord {
    /// Which of the cell's streams, from 0; a stream that completes and begins again keeps its number.
    pub stream: usize,
    pub started: Instant,
    /// One for each chunk that brought tokens; both members grow.
    pub marks: Vec<Mark>,
    /// Chunks that carried text, whatever usage said.
    pub text_chunks: u64,
    /// Usage came with the tokens, so `tokens` are the engine's count and not chunks.
    pub has_continuous_usage: bool,
    pub prompt_tokens: Option<u64>,
    /// The instant of `[DONE]`.
    pub completed: Option<Instant>,
    pub error: Option<String>,
    /// `None` when nobody wanted to know; then the text is not even unescaped.
    pub heard: Option<Heard>,
}

impl StreamRecord {
    fn new(started: Instant) -> Self {
        Self {
            stream: 0,
            started,
            marks: Vec::new(),
            text_chunks: 0,
            has_continuous_usage: false,
            prompt_tokens: None,
            completed: None,
            error: None,
            heard: None,
        }
    }

    pub fn tokens(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.tokens)
    }

    /// From sending the request to its first token.
    pub fn ttft(&self) -> Option<Duration> {
        Some(self.marks.first()?.at.duration_since(self.started))
    }

    /// Tokens that came after `start` and not after `end`, and the instant of the last of them.
    pub fn tokens_within(&self, start: Instant, end: Instant) -> (u64, Option<Instant>) {
        let first = self.marks.partition_point(|mark| mark.at <= start);
        let after = self.marks.partition_point(|mark| mark.at <= end);
        let before = first.checked_sub(1).and_then(|at| self.marks.get(at)).map_or(0, |mark| mark.tokens);
        match after.checked_sub(1).and_then(|at| self.marks.get(at)).filter(|_| after > first) {
            Some(last) => (last.tokens - before, Some(last.at)),
            None => (0, None),
        }
    }

    fn see(&mut self, event: Event, at: Instant) {
        self.text_chunks += u64::from(event.has_text);
        if event.has_choice {
            self.prompt_tokens = event.prompt_tokens.or(self.prompt_tokens);
        } else if event.prompt_tokens.is_some_and(|tokens| tokens > 0) {
            self.prompt_tokens = event.prompt_tokens;
        }
        let before = self.tokens();
        let tokens = match event.completion_tokens.filter(|_| event.has_choice) {
            Some(count) => {
                self.has_continuous_usage |= count > 0;
                count
            }
            // Usage that comes once, at the end, says nothing about when its tokens came: chunks are counted then.
            None => before + u64::from(event.has_text),
        };
        if tokens > before {
            self.marks.push(Mark { at, tokens });
        }
    }
}

/// What all streams of a cell tell while they run.
#[derive(Default)]
pub struct Shared {
    /// Workers that have had a token.
    pub active: AtomicUsize,
    pub failed: AtomicUsize,
    pub completed_requests: AtomicUsize,
    pub chunks: AtomicU64,
}

/// Runs one request until it ends, fails, or `stop` is cancelled; dropping the connection tells the engine to stop.
pub async fn run_request(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    on_first_token: impl FnMut(),
) -> StreamRecord {
    run(client, target, body, stop, on_first_token, StreamRecord::new(monotonic())).await
}

/// The same, and keeps what the stream said.
pub async fn hear_request(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    on_first_token: impl FnMut(),
) -> StreamRecord {
    let record = StreamRecord { heard: Some(Heard::default()), ..StreamRecord::new(monotonic()) };
    run(client, target, body, stop, on_first_token, record).await
}

async fn run(
    client: &EngineClient,
    target: &Target,
    body: Bytes,
    stop: &CancellationToken,
    mut on_first_token: impl FnMut(),
    mut record: StreamRecord,
) -> StreamRecord {
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => return record,
        opened = client.chat(target, body, true) => opened,
    };
    match opened {
        Ok(response) if response.status == 200 => read(response.body, &mut record, stop, &mut on_first_token).await,
        Ok(response) => {
            let status = response.status;
            let text = response.bytes().await.unwrap_or_default();
            record.error = Some(format!("status {status}: {}", excerpt(&text)));
        }
        Err(error) => record.error = Some(error.detail().to_owned()),
    }
    record
}

/// A request for one token; an answer without an error.
pub async fn one_token(client: &EngineClient, target: &Target, model: &str, prompt: &str) -> Result<StreamRecord> {
    let record = run_request(client, target, request_body(model, prompt, 1), &CancellationToken::new(), || ()).await;
    match &record.error {
        Some(error) => Err(Error::new(Code::EngineError, format!("The engine failed at a prompt of the benchmark: {error}"))),
        None => Ok(record),
    }
}

async fn read(mut body: BodyStream, record: &mut StreamRecord, stop: &CancellationToken, on_first_token: &mut impl FnMut()) {
    let mut scanner = Scanner::default();
    while record.completed.is_none() && record.error.is_none() {
        let piece = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            piece = body.next() => piece,
        };
        let at = monotonic();
        let was_silent = record.marks.is_empty();
        match piece {
            Some(Ok(piece)) => {
                let fits = scanner.feed(&piece, |event, data| {
                    if event.is_done {
                        record.completed = Some(at);
                    } else if event.is_error {
                        record.error = Some(format!("error in the stream: {}", excerpt(data)));
                    } else {
                        record.see(event, at);
                        if let Some(heard) = record.heard.as_mut().filter(|_| event.has_text) {
                            heard.hear(data);
                        }
                    }
                });
                if !fits {
                    record.error = Some("a line of the stream is too long".to_owned());
                }
            }
            Some(Err(error)) => record.error = Some(error.detail().to_owned()),
            None => record.error = Some("the stream ended without [DONE]".to_owned()),
        }
        if was_silent && !record.marks.is_empty() {
            on_first_token();
        }
    }
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or_default()).into_owned()
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
    loop {
        let is_first = records.is_empty();
        let on_first_token = || {
            if is_first {
                shared.active.fetch_add(1, Relaxed);
            }
        };
        let record = match hears {
            true => hear_request(&client, &target, body.clone(), &stop, on_first_token).await,
            false => run_request(&client, &target, body.clone(), &stop, on_first_token).await,
        };
        let goes_on = record.error.is_none() && record.completed.is_some() && !stop.is_cancelled();
        if record.error.is_some() {
            shared.failed.fetch_add(1, Relaxed);
        }
        if record.completed.is_some() {
            shared.completed_requests.fetch_add(1, Relaxed);
        }
        shared.chunks.fetch_add(record.text_chunks, Relaxed);
        records.push(record);
        if !goes_on {
            return records;
        }
    }
}
