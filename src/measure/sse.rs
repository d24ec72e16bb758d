//! Reading a token stream without parsing JSON: at hundreds of streams the parser would cost more than everything else.
//!
//! What is looked for stands in every chunk at a fixed spelling, and inside a JSON string every quote is escaped, so a key followed by a colon
//! cannot be part of the text.

/// One server-sent event, as far as measuring needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event {
    /// The event carries text: content, reasoning or completion text that is not empty.
    pub has_text: bool,
    /// The event belongs to a choice; the last usage comes with none.
    pub has_choice: bool,
    /// `usage.completion_tokens`, the total so far.
    pub completion_tokens: Option<u64>,
    pub prompt_tokens: Option<u64>,
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
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
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
    let Some(data) = line.strip_prefix(b"data:") else { return };
    let data = data.trim_ascii();
    if data.is_empty() {
        return;
    }
    each(scan_data(data), data);
}

fn scan_data(data: &[u8]) -> Event {
    if data == b"[DONE]" {
        return Event { is_done: true, ..Event::default() };
    }
    Event {
        has_text: TEXT_KEYS.iter().any(|key| has_text(data, key)),
        has_choice: find(data, b"\"delta\"").is_some() || find(data, b"\"text\"").is_some(),
        completion_tokens: number(data, b"\"completion_tokens\":"),
        prompt_tokens: number(data, b"\"prompt_tokens\":"),
        is_done: false,
        is_error: data.starts_with(b"{\"error\"") || data.starts_with(b"{\"object\":\"error\""),
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
    let mut is_escaped = false;
    let rest = value.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })?;
    value.get(..end + 2)
}

const TEXT_KEYS: [&[u8]; 4] = [b"\"content\":", b"\"reasoning_content\":", b"\"reasoning\":", b"\"text\":"];

fn has_text(data: &[u8], key: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = data.get(from..).and_then(|rest| find(rest, key)) {
        let value = data.get(from + at + key.len()..).unwrap_or_default().trim_ascii_start();
        if value.first() == Some(&b'"') && value.get(1).is_some_and(|byte| *byte != b'"') {
            return true;
        }
        from += at + key.len();
    }
    false
}

fn number(data: &[u8], key: &[u8]) -> Option<u64> {
    let at = find(data, key)?;
    let value = data.get(at + key.len()..)?.trim_ascii_start();
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
