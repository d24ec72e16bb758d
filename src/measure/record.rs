//! What was seen of one request: the instant of every token, by the bytes of its stream and the instants at which they came. No network here
//! and no clock, so that what a stream means can be tested byte by byte.
//!
//! How tokens are counted is decided once for each request, by its first chunk that has any: by usage, where that chunk carries a count, else
//! by chunks. Usage that comes once, at the end, says nothing about when its tokens came, and is only remembered to compare.

use std::time::{Duration, Instant};

use super::sse::{Event, Scanner, text_of};

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
    /// The last count that the engine gave of the answer, whenever it came.
    pub reported_tokens: Option<u64>,
    pub prompt_tokens: Option<u64>,
    /// Prompt tokens that the engine did not read, having them in its cache.
    pub cached_tokens: Option<u64>,
    /// The instant of `[DONE]`.
    pub completed: Option<Instant>,
    pub error: Option<String>,
    /// The status of an answer that is no stream.
    pub refused: Option<u16>,
    /// How long to wait before the request may be sent again; only for an engine that said it is busy.
    pub retry_after: Option<Duration>,
    /// `None` when nobody wanted to know; then the text is not even unescaped.
    pub heard: Option<Heard>,
}

impl StreamRecord {
    pub fn new(started: Instant) -> Self {
        Self {
            stream: 0,
            started,
            marks: Vec::new(),
            text_chunks: 0,
            has_continuous_usage: false,
            reported_tokens: None,
            prompt_tokens: None,
            cached_tokens: None,
            completed: None,
            error: None,
            refused: None,
            retry_after: None,
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

    /// Whether there is nothing more to read.
    pub fn is_over(&self) -> bool {
        self.completed.is_some() || self.error.is_some()
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

    /// Takes in bytes of the stream that came at `at`; `scanner` keeps what is not complete.
    pub fn take(&mut self, scanner: &mut Scanner, piece: &[u8], at: Instant) {
        let fits = scanner.feed(piece, |event, data| {
            if self.is_over() {
                // After its end or an error a stream has nothing to say.
            } else if event.is_done {
                self.completed = Some(at);
            } else if event.is_error {
                self.error = Some(format!("error in the stream: {}", excerpt(data)));
            } else {
                self.see(event, at);
                if let Some(heard) = self.heard.as_mut().filter(|_| event.has_text) {
                    heard.hear(data);
                }
            }
        });
        if !fits {
            self.error = Some("a line of the stream is too long".to_owned());
        }
    }

    fn see(&mut self, event: Event, at: Instant) {
        if event.has_choice {
            self.prompt_tokens = event.prompt_tokens.or(self.prompt_tokens);
        } else if event.prompt_tokens.is_some_and(|tokens| tokens > 0) {
            self.prompt_tokens = event.prompt_tokens;
        }
        self.cached_tokens = event.cached_tokens.or(self.cached_tokens);
        let reported = event.completion_tokens.filter(|count| *count > 0);
        self.reported_tokens = reported.or(self.reported_tokens);
        let before = self.tokens();
        let is_first = before == 0 && (event.has_text || !event.is_finish);
        let tokens = match reported.filter(|_| event.has_choice && (self.has_continuous_usage || is_first)) {
            Some(count) => {
                self.has_continuous_usage = true;
                count
            }
            None if self.has_continuous_usage => before,
            None => before + u64::from(event.has_text),
        };
        self.text_chunks += u64::from(event.has_text);
        if tokens > before {
            self.marks.push(Mark { at, tokens });
        }
    }
}

/// The beginning of an engine's words, for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or_default()).into_owned()
}
