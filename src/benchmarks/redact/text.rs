//! Patterns in free text: addresses, paths, bus ids, secrets, and words known to be names of hosts and users.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::REDACTED;

/// (what the text must hold to be worth the pattern, pattern, replacement), applied in this order. No replacement matches a pattern.
const PATTERNS: &[(&[&str], &str, &str)] = &[
    // scheme://user:password@host:port/path?query
    (&["://"], r#"\b([A-Za-z][A-Za-z0-9+.-]{1,20})://[^\s"'<>\[\]]+"#, "$1://[redacted]"),
    (&["@"], r"[A-Za-z0-9._%+-]+@[A-Za-z0-9][A-Za-z0-9.-]*", "[address]"),
    // UUIDs, of GPUs and of anything else
    (&["-"], r"(?i)\b(?:(?:GPU|MIG)-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[uuid]"),
    // PCI: domain:bus:device.function, with or without the domain
    (&[":"], r"(?i)\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", "[bus]"),
    // MAC and IPv6
    (&[":"], r"(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", "[address]"),
    (&[":"], r"(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,6}:[0-9a-f]{1,4}\b", "[address]"),
    (&["."], r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?::\d{1,5})?\b", "[address]"),
    (&["localhost:"], r"\blocalhost:\d{1,5}\b", "[address]"),
    // Keys and tokens by their makers' prefixes, and JSON web tokens
    (
        &[KEY],
        r"\b(?:hf_|lilb_|rmk_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|sk_live_|sk_test_|rk_live_|rk_test_|whsec_|xox[abpr]-|nvapi-|AIza)[A-Za-z0-9_-]{8,}",
        REDACTED,
    ),
    (&["eyJ"], r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", REDACTED),
    (&["AKIA"], r"\bAKIA[0-9A-Z]{12,}", REDACTED),
    (&["earer ", "asic ", "EARER ", "ASIC "], r"(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{6,}", "$1 [redacted]"),
    // Environment assignments: NAME=value
    (&["="], r#"\b([A-Z][A-Z0-9_]{2,})=(?:"[^"]*"|'[^']*'|[^\s"'\[;,]+)"#, "$1=[redacted]"),
    // Paths of persons and projects; system paths and API routes tell nothing
    (&["\\"], r#"(^|[\s"'=(,\[])(?:[A-Za-z]:\\|\\\\)[^\s"',;|<>]+"#, "$1[path]"),
    (&["/"], r#"(^|[\s"'=:(,;\[])(~?/[^\s"',;:|<>()\[\]]+)"#, "path"),
];
/// Stands for [`may_hold_key`].
const KEY: &str = "";
/// First parts of paths that are the same on every machine.
const PUBLIC_ROOTS: &[&str] = &[
    "proc", "etc", "sys", "dev", "usr", "lib", "lib64", "bin", "sbin", "opt", "boot", "v1", "metrics", "health", "healthz", "version",
    "api",
];
/// A parts of a name that make it a secret's name.
const SECRET_PARTS: &[&str] = &["token", "password", "passwd", "secret", "apikey", "credential", "credentials", "authorization", "bearer"];
const KEY_OWNERS: &[&str] = &["api", "access", "private", "auth", "secret", "signing"];
/// Accounts of images and distributions: they name nobody, and the same words mean the engine elsewhere.
const COMMON_NAMES: &[&str] = &[
    "root",
    "user",
    "ubuntu",
    "debian",
    "admin",
    "localhost",
    "docker",
    "runner",
    "nvidia",
    "cuda",
    "vllm",
    "sglang",
    "ollama",
    "llama",
    "python",
    "python3",
    "bench",
    "serve",
    "server",
    "model",
    "models",
    "runpod",
    "jovyan",
];
/// Shorter words are too likely to mean something else.
const NAME_CHARS_MIN: usize = 3;

static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| PATTERNS.iter().filter_map(Compiled::of).collect());
/// A pattern with what its hints have.
struct Compiled {
    hints: Vec<(&'static str, Signs)>,
    regex: Regex,
    with: &'static str,
}

impl Compiled {
    fn of((hints, pattern, with): &(&'static [&'static str], &'static str, &'static str)) -> Option<Self> {
        let hints = hints.iter().map(|hint| (*hint, Signs::of(hint))).collect();
        Regex::new(pattern).ok().map(|regex| Self { hints, regex, with })
    }
}

static GPU_UUID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)\b(?:GPU|MIG)-([0-9a-f]{8}-[0-9a-f-]{27})\b").ok());

/// Whether every pattern compiled; a test asks, so that none can drop out unseen.
pub fn patterns_complete() -> bool {
    COMPILED.len() == PATTERNS.len() && GPU_UUID.is_some()
}

/// Redacts free text by the patterns.
pub fn text(text: &str) -> String {
    patterns(text).unwrap_or_else(|| text.to_owned())
}

/// Redacts a command line: as text, and the values of flags whose name says secret.
pub fn command(line: &str) -> String {
    Words::default().scrub_command(line)
}

/// Redacts text, but keeps the last part of a path: `/data/models/Qwen3-8B` is a model's name after all.
pub(super) fn path_keeping_name(original: &str) -> String {
    let looks_like_path = original.starts_with(['/', '~']) || original.starts_with("./") || original.starts_with("../");
    match original.rsplit_once('/') {
        Some((parents, name)) if looks_like_path && parents.contains('/') && !name.is_empty() => format!("[path]/{}", text(name)),
        _ => text(original),
    }
}

pub(super) fn is_placeholder(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']')
}

/// Users by the folders of their homes.
pub(super) fn home_owners(text: &str) -> impl Iterator<Item = &str> {
    let has_path = text.bytes().any(|b| b == b'/' || b == b'\\');
    let homes = ["/home/", "/Users/", "\\Users\\"].into_iter().filter(move |_| has_path).flat_map(move |home| text.split(home).skip(1));
    homes.filter_map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '.')).next())
}

pub(super) fn gpu_uuids(text: &str) -> impl Iterator<Item = String> + '_ {
    let matches = GPU_UUID.as_ref().filter(|_| text.contains('-')).map(|regex| regex.captures_iter(text));
    matches.into_iter().flatten().filter_map(|c| c.get(1).map(|m| m.as_str().to_ascii_lowercase()))
}

/// `api_key`, `--hf-token`, `DB_PASSWORD`: the last part says secret, or it is a key of something. `max_tokens` and `token_source` are not.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.trim_start_matches('-').to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [.., owner, "key" | "keys"] => KEY_OWNERS.contains(owner),
        [.., last] => SECRET_PARTS.contains(last),
        [] => false,
    }
}

/// `None` when no pattern matches.
pub(super) fn patterns(original: &str) -> Option<String> {
    let mut signs = Signs::of(original);
    if signs.is_empty() {
        return None;
    }
    let mut current: Option<String> = None;
    for Compiled { hints, regex, with } in COMPILED.iter() {
        let text = current.as_deref().unwrap_or(original);
        let stands = |hint: &str| if hint == KEY { may_hold_key(text) } else { text.contains(hint) };
        if !hints.iter().any(|(hint, hint_signs)| signs.include(*hint_signs) && stands(hint)) {
            continue;
        }
        let replaced = if *with == "path" { regex.replace_all(text, path) } else { regex.replace_all(text, *with) };
        if let std::borrow::Cow::Owned(replaced) = replaced
            && replaced != text
        {
            signs = Signs::of(&replaced);
            current = Some(replaced);
        }
    }
    current
}

/// Which of the bytes that patterns look for a text has. Nearly every text is a name of a figure that has none or only underscores, and is done
/// with after one pass.
#[derive(Clone, Copy)]
struct Signs(u16);

impl Signs {
    /// Every text that a pattern matches has one of these.
    const BYTES: [u8; 12] = *b"@-:._=/\\JKI ";
    const BITS: [u16; 256] = {
        let mut bits = [0; 256];
        let mut at = 0;
        while at < Self::BYTES.len() {
            bits[Self::BYTES[at] as usize] = 1 << at;
            at += 1;
        }
        bits
    };

    fn of(text: &str) -> Self {
        Self(text.bytes().fold(0, |seen, byte| seen | Self::BITS.get(usize::from(byte)).copied().unwrap_or(0)))
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// False only when the text that `self` is of cannot hold what `part` is of.
    const fn include(self, part: Self) -> bool {
        self.0 & part.0 == part.0
    }
}

/// Whether the end of a maker's prefix of keys stands somewhere: its last three letters.
fn may_hold_key(text: &str) -> bool {
    let is_end = |three: &[u8]| {
        let &[a, b, c] = three else { return false };
        match c {
            b'_' => matches!(
                (a, b),
                (b'h', b'f' | b'p' | b'o' | b's') | (b'l', b'b') | (b'm', b'k') | (b'a', b't') | (b'v', b'e') | (b's', b't') | (b'e', b'c')
            ),
            b'-' => matches!((a, b), (b'a', b't') | (b's', b'k') | (b'p', b'i') | (b'x', b'a' | b'b' | b'p' | b'r')),
            b'a' => (a, b) == (b'I', b'z'),
            _ => false,
        }
    };
    text.as_bytes().windows(3).any(is_end)
}

fn path(captures: &Captures<'_>) -> String {
    let before = captures.get(1).map_or("", |m| m.as_str());
    let path = captures.get(2).map_or("", |m| m.as_str());
    let root = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let public = !path.starts_with('~') && PUBLIC_ROOTS.contains(&root);
    if public || root.is_empty() { format!("{before}{path}") } else { format!("{before}[path]") }
}

/// Patterns and the names of hosts and users in one document.
#[derive(Default)]
pub(super) struct Words {
    names: Vec<String>,
}

impl Words {
    /// Longest first, so that a name is not cut by a shorter one inside it.
    pub(super) fn new(names: BTreeSet<String>) -> Self {
        let usable = |name: &String| {
            name.chars().count() >= NAME_CHARS_MIN
                && !is_placeholder(name)
                && !name.contains(char::is_whitespace)
                && name.parse::<f64>().is_err()
                && !COMMON_NAMES.contains(&name.to_ascii_lowercase().as_str())
        };
        let mut names: Vec<String> = names.into_iter().filter(usable).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Self { names }
    }

    pub(super) fn know(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// `None`: nothing to redact.
    pub(super) fn scrub(&self, original: &str) -> Option<String> {
        let cleaned = patterns(original);
        self.hide_names(cleaned.as_deref().unwrap_or(original)).or(cleaned)
    }

    /// Names as whole words.
    fn hide_names(&self, original: &str) -> Option<String> {
        let mut current: Option<String> = None;
        for name in &self.names {
            let text = current.as_deref().unwrap_or(original);
            if !text.contains(name.as_str()) {
                continue;
            }
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let mut out = String::with_capacity(text.len());
            let mut rest = text;
            while let Some(at) = rest.find(name.as_str()) {
                let (head, tail) = rest.split_at(at);
                let (word, tail) = tail.split_at(name.len());
                let inside = head.chars().next_back().or_else(|| out.chars().next_back()).is_some_and(part) || tail.starts_with(part);
                out.push_str(head);
                out.push_str(if inside { word } else { "[name]" });
                rest = tail;
            }
            out.push_str(rest);
            current = Some(out);
        }
        current.filter(|text| text != original)
    }

    pub(super) fn scrub_command(&self, line: &str) -> String {
        // Line by line and word by word, with the spacing kept: a launch command is shown as it was typed.
        let lines = line.split('\n').map(|line| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            self.scrub_argv(&words).join(" ")
        });
        let joined = lines.collect::<Vec<_>>().join("\n");
        self.scrub(&joined).unwrap_or(joined)
    }

    /// The arguments of a command: the value after a secret's flag goes, the model after `serve` or `--model` keeps its name.
    pub(super) fn scrub_argv(&self, argv: &[String]) -> Vec<String> {
        let mut after: Option<&str> = None;
        let mut out = Vec::with_capacity(argv.len());
        for word in argv {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let secret_flag = word.starts_with('-') && is_secret_name(name);
            out.push(match (after, value) {
                _ if word.is_empty() => String::new(),
                (Some("secret"), _) => REDACTED.to_owned(),
                (Some("model"), _) => path_keeping_name(word),
                (_, Some(_)) if secret_flag => format!("{name}={REDACTED}"),
                _ => self.scrub(word).unwrap_or_else(|| word.clone()),
            });
            if !word.is_empty() {
                let model_flag =
                    matches!(word.as_str(), "serve" | "--model" | "--model-path" | "-m" | "--tokenizer" | "--served-model-name");
                after = if secret_flag && value.is_none() { Some("secret") } else { model_flag.then_some("model") };
            }
        }
        out
    }
}
