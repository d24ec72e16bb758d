//! The strict JSON reader for hostile documents (evidence.md, JSON rules), and the one way they are written again.
//!
//! Invariants: one pass over the bytes; nesting is bounded before the stack is used; the memory of the tree is bounded by an estimate kept
//! while reading; every refusal names its place as a JSON pointer. Two objects never differ by key order alone once written.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use serde::Serialize;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

/// Containers inside containers; more is refused.
pub const DEPTH_MAX: usize = 128;
/// What the tree of one document may take, roughly, in bytes.
const TREE_BYTES_MAX: usize = 256 << 20;
/// Estimates of what serde_json's tree takes: a value, a map with entries, and an entry besides its text.
const VALUE_BYTES: usize = 40;
const MAP_BYTES: usize = 640;
const ENTRY_BYTES: usize = 32;
const POINTER_CHARS_MAX: usize = 300;

/// Why bytes are no run document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnreadableCode {
    Empty,
    NotUtf8,
    NotJson,
    Truncated,
    DuplicateKey,
    TooDeep,
    TooLarge,
    TooManyCells,
    NonFiniteNumber,
    BadGzip,
    NotAnObject,
    NotARunDocument,
    WrongType,
    OutOfRange,
}

impl UnreadableCode {
    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::Truncated => "truncated",
            Self::DuplicateKey => "duplicate_key",
            Self::TooDeep => "too_deep",
            Self::TooLarge => "too_large",
            Self::TooManyCells => "too_many_cells",
            Self::NonFiniteNumber => "non_finite_number",
            Self::BadGzip => "bad_gzip",
            Self::NotAnObject => "not_an_object",
            Self::NotARunDocument => "not_a_run_document",
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
        }
    }
}

/// A refusal, with the place as a JSON pointer (empty: the whole document).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema, thiserror::Error)]
#[error("{} at {:?}: {detail}", code.as_str(), pointer)]
pub struct Unreadable {
    pub pointer: String,
    pub code: UnreadableCode,
    pub detail: String,
}

impl Unreadable {
    pub fn new(pointer: impl Into<String>, code: UnreadableCode, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.into() }
    }
}

/// A parsed text, and where the value of one wanted top-level key stands in it.
pub struct Parsed {
    pub value: Value,
    pub span: Option<Range<usize>>,
}

/// Reads one JSON text: UTF-8 with an optional byte-order mark.
///
/// # Errors
/// Anything evidence.md's JSON rules refuse.
pub fn parse(bytes: &[u8]) -> Result<Value, Unreadable> {
    parse_with_span(bytes, None, DEPTH_MAX).map(|parsed| parsed.value)
}

/// As [`parse`], for an envelope: also gives the byte range of the value under the top-level `key`, and allows `depth_max` levels.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_span(bytes: &[u8], key: Option<&str>, depth_max: usize) -> Result<Parsed, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let detail = format!("The bytes are not UTF-8 (offset {}).", e.valid_up_to());
        Unreadable::new("", UnreadableCode::NotUtf8, detail)
    })?;
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    if text.get(start..).is_none_or(|rest| rest.trim().is_empty()) {
        return Err(Unreadable::new("", UnreadableCode::Empty, "There is nothing in it."));
    }
    let mut reader =
        Reader { text, bytes: text.as_bytes(), at: start, path: Vec::new(), telemetry: 0, spent: 0, depth_max, wanted: key, span: None };
    reader.space();
    let value = reader.value()?;
    reader.space();
    if reader.at < reader.bytes.len() {
        return Err(reader.fail(UnreadableCode::NotJson, "something follows the end of the document"));
    }
    Ok(Parsed { value, span: reader.span })
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    path: Vec<Step<'a>>,
    /// How many enclosing keys are telemetry blocks: only there may a number be NaN or infinite.
    telemetry: usize,
    spent: usize,
    depth_max: usize,
    wanted: Option<&'a str>,
    span: Option<Range<usize>>,
}

/// Blocks that Python's writer may fill with bare NaN: sampled columns and their aggregates. No check of a speed reads them.
fn is_telemetry(key: &str) -> bool {
    key.ends_with("telemetry") || matches!(key, "hardware_summary" | "hardware_run_summary" | "analysis")
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<Value, Unreadable> {
        self.spend(VALUE_BYTES)?;
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                let text = self.string()?.into_owned();
                self.spend(text.len())?;
                Ok(Value::String(text))
            }
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'N') => self.non_finite("NaN"),
            Some(b'I') => self.non_finite("Infinity"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.fail(UnreadableCode::NotJson, "a value was expected")),
            None => Err(self.truncated()),
        }
    }

    fn object(&mut self) -> Result<Value, Unreadable> {
        self.enter()?;
        let mut map = Map::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        self.spend(MAP_BYTES)?;
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotes was expected"));
            }
            let key = self.string()?;
            self.spend(ENTRY_BYTES + key.len())?;
            self.path.push(Step::Key(key.clone()));
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("a colon was expected"));
            }
            self.at += 1;
            self.space();
            let telemetry = usize::from(is_telemetry(&key));
            self.telemetry += telemetry;
            let start = self.at;
            let value = self.value()?;
            if self.path.len() == 1 && self.wanted == Some(key.as_ref()) {
                self.span = Some(start..self.at);
            }
            self.telemetry -= telemetry;
            if map.insert(key.into_owned(), value).is_some() {
                return Err(self.fail(UnreadableCode::DuplicateKey, "the key stands twice in one object"));
            }
            self.path.pop();
            if self.more(b'}')? {
                continue;
            }
            return Ok(Value::Object(map));
        }
    }

    fn array(&mut self) -> Result<Value, Unreadable> {
        self.enter()?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push(Step::Index(items.len()));
            items.push(self.value()?);
            self.path.pop();
            if self.more(b']')? {
                continue;
            }
            return Ok(Value::Array(items));
        }
    }

    /// Steps over an opening bracket. The path is as long as the number of open containers, so it is the depth.
    fn enter(&mut self) -> Result<(), Unreadable> {
        if self.path.len() >= self.depth_max {
            let detail = format!("more than {} levels of nesting", self.depth_max);
            return Err(self.fail(UnreadableCode::TooDeep, &detail));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// After an item: true when a comma says that another follows, false when the container closes.
    fn more(&mut self, close: u8) -> Result<bool, Unreadable> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.space();
                Ok(true)
            }
            Some(c) if c == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected("a comma or a closing bracket was expected")),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Unreadable> {
        self.at += 1;
        let start = self.at;
        self.plain();
        match self.peek() {
            Some(b'"') => {
                let text = self.text.get(start..self.at).unwrap_or_default();
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(b'\\') => self.escaped(start),
            Some(_) => Err(self.fail(UnreadableCode::NotJson, "a control character stands in a string")),
            None => Err(self.truncated()),
        }
    }

    /// Steps to the next byte of a string that is not simply part of it, or to the end.
    fn plain(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
    }

    /// The rest of a string that has escapes; `start` is its first byte.
    fn escaped(&mut self, start: usize) -> Result<Cow<'a, str>, Unreadable> {
        let mut text = self.text.get(start..self.at).unwrap_or_default().to_owned();
        loop {
            let start = self.at;
            self.plain();
            text.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                None => return Err(self.truncated()),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(_) => return Err(self.fail(UnreadableCode::NotJson, "a control character stands in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Unreadable> {
        let Some(byte) = self.peek() else { return Err(self.truncated()) };
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.fail(UnreadableCode::NotJson, "an unknown escape stands in a string")),
        })
    }

    /// A `\u` escape, or a pair of them. Half a pair is read as U+FFFD: Python writes such halves for bytes that were not UTF-8.
    fn unicode(&mut self) -> Result<char, Unreadable> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, Unreadable> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
            return Err(self.fail(UnreadableCode::NotJson, "four hexadecimal digits were expected"));
        };
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, Unreadable> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.peek() == Some(b'I') {
                return self.non_finite("Infinity");
            }
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits()?;
        if leading_zero && whole > 1 {
            return Err(self.fail(UnreadableCode::NotJson, "a number starts with a zero"));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if integer && text != "-0" {
            if let Ok(n) = text.parse::<u64>() {
                return Ok(Value::Number(n.into()));
            }
            if let Ok(n) = text.parse::<i64>() {
                return Ok(Value::Number(n.into()));
            }
        }
        match text.parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => self.absent(),
        }
    }

    fn digits(&mut self) -> Result<usize, Unreadable> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit was expected"));
        }
        Ok(self.at - start)
    }

    fn non_finite(&mut self, word: &'static str) -> Result<Value, Unreadable> {
        self.word(word, Value::Null)?;
        self.absent()
    }

    /// A number that is none: nothing is known of it inside telemetry; anywhere else it is refused.
    fn absent(&self) -> Result<Value, Unreadable> {
        if self.telemetry > 0 {
            return Ok(Value::Null);
        }
        Err(self.fail(UnreadableCode::NonFiniteNumber, "a number is not finite; only telemetry may hold such"))
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, Unreadable> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        if word.as_bytes().starts_with(rest) {
            return Err(self.truncated());
        }
        Err(self.fail(UnreadableCode::NotJson, "a value was expected"))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Unreadable> {
        self.spent += bytes;
        if self.spent > TREE_BYTES_MAX {
            return Err(self.fail(UnreadableCode::TooLarge, "the document has too many values"));
        }
        Ok(())
    }

    fn truncated(&self) -> Unreadable {
        self.fail(UnreadableCode::Truncated, "the document ends in the middle")
    }

    fn unexpected(&self, what: &str) -> Unreadable {
        if self.peek().is_none() { self.truncated() } else { self.fail(UnreadableCode::NotJson, what) }
    }

    fn fail(&self, code: UnreadableCode, what: &str) -> Unreadable {
        Unreadable::new(self.pointer(), code, format!("At byte {}: {what}.", self.at))
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            if pointer.len() > POINTER_CHARS_MAX {
                pointer.push_str("/…");
                break;
            }
            match step {
                Step::Key(key) => push_key(&mut pointer, key),
                Step::Index(index) => {
                    let _infallible = write!(pointer, "/{index}");
                }
            }
        }
        pointer
    }
}

/// Adds one object key to a JSON pointer, escaped (RFC 6901), shortened and without control characters.
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars().filter(|c| !crate::base::text::is_hidden(*c)).take(64) {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            _ => pointer.push(c),
        }
    }
}

/// The canonical bytes of a value: no spaces, keys sorted, numbers in their shortest form. Equal values give equal bytes, whatever order
/// or spelling they came in.
pub fn canonical_bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            out.push(b'{');
            if map.keys().is_sorted() {
                write_entries(map.iter(), out);
            } else {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                write_entries(entries.into_iter(), out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        leaf => write_leaf(leaf, out),
    }
}

fn write_entries<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    for (i, (key, value)) in entries.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_leaf(key, out);
        out.push(b':');
        write_canonical(value, out);
    }
}

fn write_leaf<T: Serialize + ?Sized>(leaf: &T, out: &mut Vec<u8>) {
    // A string, number, bool or null written into memory cannot fail.
    let _infallible = serde_json::to_writer(out, leaf);
}
