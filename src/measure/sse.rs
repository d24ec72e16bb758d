//! Reading a token stream without building JSON: at hundreds of streams that would cost more than everything else.
//!
//! One walk over the strings of an event is enough: a string with a colon behind it is a key, and inside a string every quote is escaped, so
//! text is never taken for structure. Nothing is copied or allocated for an event that came in one piece.

use memchr::memchr;

/// One server-sent event, as far as measuring needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event {
    /// The event carries text: content, reasoning or completion text that is not empty.
    pub has_text: bool,
    /// The event belongs to a choice; the last usage comes with none.
    pub has_choice: bool,
    /// The choice says why it ends here.
    pub is_finish: bool,
    /// `usage.completion_tokens`, the total so far.
    pub completion_tokens: Option<u64>,
    pub prompt_tokens: Option<u64>,
    /// `usage.prompt_tokens_details.cached_tokens`.
    pub cached_tokens: Option<u64>,
    /// `[DONE]`.
    pub is_done: bool,
    pub is_error: bool,
}

/// Cuts a byte stream into events; keeps what is not complete yet.
#[derive(Default)]
pub struct Scanner {
    rest: Vec<u8>,
}

/// A line longer than this is no token chunk; the stream is taken for broken.
const LINE_BYTES_MAX: usize = 4 << 20;

impl Scanner {
    /// Calls `each` for every event that `piece` completes. `false` when the line grew beyond all bounds.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(Event, &[u8])) -> bool {
        let mut piece = piece;
        while let Some(end) = memchr(b'\n', piece) {
            let (line, after) = piece.split_at(end);
            piece = after.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                scan_line(line, &mut each);
            } else {
                self.rest.extend_from_slice(line);
                scan_line(&self.rest, &mut each);
                self.rest.clear();
            }
        }
        self.rest.extend_from_slice(piece);
        self.rest.len() <= LINE_BYTES_MAX
    }
}

fn scan_line(line: &[u8], each: &mut impl FnMut(Event, &[u8])) {
    if let Some(data) = line.strip_prefix(b"data:") {
        let data = data.trim_ascii();
        if !data.is_empty() {
            each(scan_data(data), data);
        }
    } else if let Some(message) = line.strip_prefix(b"error:") {
        // Not of the standard: servers of llama.cpp up to 2025 end a failed answer so.
        each(Event { is_error: true, ..Event::default() }, message.trim_ascii());
    }
}

fn scan_data(data: &[u8]) -> Event {
    if data == b"[DONE]" {
        return Event { is_done: true, ..Event::default() };
    }
    let mut event = Event::default();
    let mut rest = data;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        rest = rest.get(start..).unwrap_or_default();
        let Some(literal) = string_literal(rest) else { break };
        rest = rest.get(literal.len()..).unwrap_or_default();
        if let Some(value) = rest.trim_ascii_start().strip_prefix(b":") {
            event.see(literal.get(1..literal.len() - 1).unwrap_or_default(), value.trim_ascii_start());
        }
    }
    // Some proxies send an empty error with every token.
    event.is_error &= !event.has_text;
    event
}

impl Event {
    fn see(&mut self, key: &[u8], value: &[u8]) {
        let is_text = value.first() == Some(&b'"') && value.get(1).is_some_and(|byte| *byte != b'"');
        match key {
            b"content" | b"reasoning_content" | b"reasoning" => self.has_text |= is_text,
            b"text" => {
                self.has_text |= is_text;
                self.has_choice = true;
            }
            b"delta" => self.has_choice = true,
            b"finish_reason" => self.is_finish |= is_text,
            b"completion_tokens" => self.completion_tokens = self.completion_tokens.or(number(value)),
            b"prompt_tokens" => self.prompt_tokens = self.prompt_tokens.or(number(value)),
            b"cached_tokens" => self.cached_tokens = self.cached_tokens.or(number(value)),
            b"error" => self.is_error |= is_text || value.first() == Some(&b'{'),
            b"object" => self.is_error |= value.starts_with(b"\"error\""),
            _ => {}
        }
    }
}

/// The text that an event carries, unescaped, and whether it is reasoning; `None` for an event without any.
pub fn text_of(data: &[u8]) -> Option<(String, bool)> {
    TEXT_KEYS.iter().find_map(|key| {
        let at = find(data, key)?;
        let literal = string_literal(data.get(at + key.len()..)?.trim_ascii_start())?;
        let text: String = serde_json::from_slice(literal).ok()?;
        (!text.is_empty()).then(|| (text, key.starts_with(b"\"reasoning")))
    })
}

/// The JSON string at the beginning of `value`, quotes included.
fn string_literal(value: &[u8]) -> Option<&[u8]> {
    let mut bytes = value.strip_prefix(b"\"")?.iter();
    loop {
        match bytes.next()? {
            b'"' => return value.get(..value.len() - bytes.len()),
            b'\\' => _ = bytes.next(),
            _ => {}
        }
    }
}

const TEXT_KEYS: [&[u8]; 4] = [b"\"content\":", b"\"reasoning_content\":", b"\"reasoning\":", b"\"text\":"];

fn number(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(value.get(..digits)?).ok()?.parse().ok()
}

/// Place of `needle`; looks for its second byte first, since every needle here begins with the commonest byte of JSON.
fn find(data: &[u8], needle: &[u8]) -> Option<usize> {
    let second = *needle.get(1)?;
    let mut from = 1;
    while let Some(at) = data.get(from..)?.iter().position(|byte| *byte == second) {
        let start = from + at - 1;
        if data.get(start..)?.starts_with(needle) {
            return Some(start);
        }
        from += at + 1;
    }
    None
}
