//! The event log of a document: what its lines say, in the tool's own words (evidence.md 1.1, I6).
//!
//! The tool keeps only the last 80 lines, so a long run has lost its start. Lines are hostile text: anything not understood is `Other`. Contexts are as printed, see [`printed`].

use super::document::{Document, size};

/// The tool's own limit; a log of fewer lines is complete.
pub const LINES_KEPT: usize = 80;
pub const DAY_SECONDS: i64 = 86_400;

/// One line: seconds since midnight, unwrapped over midnights so that a sound log never falls.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub seconds: i64,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    CellStart {
        context: u64,
        concurrency: u32,
    },
    /// `ready …`, `warmup timeout …` or `measure start …`: the window opens.
    WindowOpens {
        context: u64,
        concurrency: u32,
        timed_out: bool,
    },
    CellDone {
        context: u64,
        concurrency: u32,
        tps: Option<f64>,
    },
    PrefillStart {
        context: u64,
    },
    PrefillDone {
        context: u64,
        tps: f64,
    },
    /// The person at the keyboard left a cell out.
    CellSkipped {
        context: u64,
        concurrency: u32,
    },
    PrefillFailed {
        context: u64,
    },
    /// The hidden cell that warms the server: its lines look like a cell's.
    WarmupStart,
    WarmupDone,
    Nonce(String),
    KvBudget(u64),
    MaxModelLen(u64),
    MaxRunning(u64),
    /// The prompt made for a context, in tokens.
    ContextMade {
        context: u64,
        tokens: u64,
    },
    EngineVersion(String),
    Other,
}

/// The lines of a document with readable clocks, and how many had none.
pub struct Log {
    pub lines: Vec<Line>,
    pub unreadable: usize,
    /// Whether the start of the log is there.
    pub complete: bool,
    /// Biggest step back of the clock, in seconds, that no midnight explains.
    pub backwards: i64,
}

impl Log {
    pub fn of(document: &Document) -> Self {
        let mut log = Self { lines: Vec::new(), unreadable: 0, complete: false, backwards: 0 };
        let mut day = 0;
        let mut last: Option<i64> = None;
        for text in &document.event_log {
            let Some((clock, rest)) = clock(text) else {
                log.unreadable += 1;
                continue;
            };
            let mut seconds = clock + day;
            if let Some(before) = last
                && seconds < before
            {
                // Past midnight the clock falls by nearly a day; a smaller fall is no midnight.
                if before - seconds > DAY_SECONDS / 2 {
                    day += DAY_SECONDS;
                    seconds += DAY_SECONDS;
                } else {
                    log.backwards = log.backwards.max(before - seconds);
                }
            }
            last = Some(last.map_or(seconds, |before| before.max(seconds)));
            log.lines.push(Line { seconds, event: event(rest) });
        }
        let starts = document.event_log.first().and_then(|text| clock(text)).is_some_and(|(_, rest)| rest.starts_with("benchmark start"));
        log.complete = starts || (!log.lines.is_empty() && document.event_log.len() < LINES_KEPT);
        log
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.lines.iter().map(|line| &line.event)
    }
}

/// Splits `HH:MM:SS text`.
fn clock(text: &str) -> Option<(i64, &str)> {
    let (clock, rest) = text.split_once(' ')?;
    let mut parts = clock.split(':');
    let mut part = |max: i64| parts.next().filter(|p| p.len() == 2)?.parse::<i64>().ok().filter(|n| (0..max).contains(n));
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    parts.next().is_none().then_some((hours * 3_600 + minutes * 60 + seconds, rest))
}

fn event(text: &str) -> Event {
    parse(text).unwrap_or(Event::Other)
}

fn parse(text: &str) -> Option<Event> {
    let cell = |rest: &str| Some((context(rest)?, u32::try_from(value(rest, "C=")?.parse::<u64>().ok()?).ok()?));
    if let Some(rest) = text.strip_prefix("startup ") {
        return startup(rest);
    }
    if text.starts_with("decode warmup start C=") {
        return Some(Event::WarmupStart);
    }
    if text.starts_with("decode warmup done C=") {
        return Some(Event::WarmupDone);
    }
    if let Some(rest) = text.strip_prefix("cell start ") {
        return cell(rest).map(|(context, concurrency)| Event::CellStart { context, concurrency });
    }
    if let Some(rest) = text.strip_prefix("cell done ") {
        return cell(rest).map(|(context, concurrency)| Event::CellDone { context, concurrency, tps: speed(rest) });
    }
    for (prefix, timed_out) in [("ready ", false), ("measure start ", false), ("warmup timeout ", true)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return cell(rest).map(|(context, concurrency)| Event::WindowOpens { context, concurrency, timed_out });
        }
    }
    if let Some(rest) = text.strip_prefix("cell skipped ") {
        return cell(rest).map(|(context, concurrency)| Event::CellSkipped { context, concurrency });
    }
    if let Some(rest) = text.strip_prefix("integrated prefill failed ") {
        return Some(Event::PrefillFailed { context: context(rest.trim_end_matches(':'))? });
    }
    if let Some(rest) = ["integrated prefill start ", "prefill scout-only start "].iter().find_map(|prefix| text.strip_prefix(prefix)) {
        return Some(Event::PrefillStart { context: context(rest)? });
    }
    let done = ["integrated prefill done ", "prefill scout-only done ", "prefill done "];
    let rest = done.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    Some(Event::PrefillDone { context: context(rest)?, tps: speed(rest)? })
}

fn startup(rest: &str) -> Option<Event> {
    let first_number = |text: &str| {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let digits: String = text.get(start..)?.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
        digits.parse::<u64>().ok()
    };
    if rest.starts_with("calibrating") {
        return value(rest, "run=").map(|nonce| Event::Nonce(nonce.to_owned()));
    }
    if let Some(tail) = rest.strip_prefix("KV cache budget") {
        return first_number(tail.split_once(':')?.1).map(Event::KvBudget);
    }
    if let Some(tail) = rest.strip_prefix("model context length:") {
        return first_number(tail).map(Event::MaxModelLen);
    }
    if let Some((label, tail)) = rest.strip_prefix("context ").and_then(|tail| tail.split_once(':')) {
        let context = size(label).map(printed)?;
        return first_number(tail.split_once("(~")?.1).map(|tokens| Event::ContextMade { context, tokens });
    }
    if let Some(tail) = rest.strip_prefix("max running requests") {
        return first_number(tail).map(Event::MaxRunning);
    }
    if let Some(tail) = ["engine vLLM ", "engine SGLang ", "engine vllm ", "engine sglang "].iter().find_map(|p| rest.strip_prefix(p)) {
        return tail.split(' ').next().map(|version| Event::EngineVersion(version.to_owned()));
    }
    None
}

/// The word after `key`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(' ').find_map(|word| word.strip_prefix(key)).filter(|word| !word.is_empty())
}

fn context(text: &str) -> Option<u64> {
    size(value(text, "ctx=")?.trim_end_matches(':')).map(printed)
}

/// A context as the log prints it: whole units of 1,024 tokens, rounded down; two contexts may look the same.
pub const fn printed(context: u64) -> u64 {
    if context < 1_024 { context } else { context - context % 1_024 }
}

/// The number before `tok/s`, with its thousands separators.
fn speed(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split(' ').collect();
    let at = words.iter().position(|word| *word == "tok/s")?;
    words.get(at.checked_sub(1)?)?.replace(',', "").parse().ok().filter(|tps: &f64| tps.is_finite())
}

/// The longest context of the engine, as the log or the wrapper has it.
pub fn max_model_len(document: &Document) -> Option<u64> {
    let wrapped = document.wrapper.as_ref().and_then(|w| w.max_model_len);
    wrapped.or_else(|| find(document, |event| if let Event::MaxModelLen(n) = event { Some(*n) } else { None }))
}

/// How many requests the engine runs at once, as the log or the wrapper has it.
pub fn max_running(document: &Document) -> Option<u64> {
    let wrapped = document.wrapper.as_ref().and_then(|w| w.max_num_seqs);
    wrapped.or_else(|| find(document, |event| if let Event::MaxRunning(n) = event { Some(*n) } else { None }))
}

pub fn engine_version(document: &Document) -> Option<String> {
    let stated = document.wrapper.as_ref().and_then(|w| w.engine_version.clone()).or_else(|| document.metadata.engine_version.clone());
    stated.or_else(|| find(document, |event| if let Event::EngineVersion(v) = event { Some(v.clone()) } else { None }))
}

/// The run's own random word: twelve letters.
pub fn nonce(document: &Document) -> Option<String> {
    let letters = |nonce: &String| (8..=32).contains(&nonce.len()) && nonce.bytes().all(|b| b.is_ascii_lowercase());
    find(document, |event| if let Event::Nonce(n) = event { Some(n.clone()) } else { None }).filter(letters)
}

fn find<T>(document: &Document, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
    document.event_log.iter().filter_map(|text| clock(text)).find_map(|(_, rest)| pick(&event(rest)))
}

/// Cells that the log says were skipped by hand, as printed.
pub fn skipped(document: &Document) -> Vec<(u64, u32)> {
    let events = document.event_log.iter().filter_map(|text| clock(text)).map(|(_, rest)| event(rest));
    events
        .filter_map(|event| if let Event::CellSkipped { context, concurrency } = event { Some((context, concurrency)) } else { None })
        .collect()
}

/// Whether a line is one that the checks read.
pub fn is_structural(text: &str) -> bool {
    clock(text).is_some_and(|(_, rest)| event(rest) != Event::Other)
}
