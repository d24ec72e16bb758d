//! Redaction: what names a person, a place or a device leaves a document before anything else looks at it (evidence.md 0).
//!
//! Invariants: deterministic; idempotent (a redacted copy is its own redaction); numbers, model and GPU names and versions stay, so a copy
//! is judged as its original; the bytes are canonical, so their hash does not depend on key order or spacing.

mod text;

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::claim::Claim;
use super::json::canonical_bytes;
use super::log::is_structural;
use text::{Words, is_placeholder, is_secret_name, path_keeping_name};
pub use text::{command, patterns_complete, text};

/// What stands where something was.
pub(super) const REDACTED: &str = "[redacted]";
/// What stands for an address of the machine itself: it names nobody, and says that client and engine shared a machine.
pub(super) const LOOPBACK: &str = "[loopback]";

/// No line or excerpt of the tool is longer; nothing reads such a text, and searching it for patterns would take long.
const TEXT_BYTES_MAX: usize = 64 << 10;
const LONG_TEXT: &str = "[long text]";

/// Keys whose text names a person, a host, an address or a device.
const NAMING_KEYS: &[&str] = &[
    "hostname",
    "host_name",
    "nodename",
    "fqdn",
    "host",
    "server",
    "server_url",
    "url",
    "base_url",
    "endpoint",
    "uploader",
    "user",
    "username",
    "login",
    "owner",
    "email",
    "cwd",
    "home",
    "uuid",
    "uuid_hash",
    "gpu_uuid",
    "serial",
    "serial_number",
    "board_serial",
    "product_uuid",
    "machine_id",
    "bdf",
    "pci_bus_id",
    "bus_id",
    "pci_address",
    "mac",
    "mac_address",
    "ip",
    "ip_address",
    "master_addr",
    "content",
];
/// Objects whose values are environment values.
const ENVIRONMENT_KEYS: &[&str] = &["env", "environment", "environ"];
/// Text that the checks or the page read: only patterns are removed from it, never a word that happens to be somebody's name.
const VOCABULARY_KEYS: &[&str] = &[
    "model",
    "model_id",
    "served_model_name",
    "root",
    "engine",
    "version",
    "method",
    "benchmark_mode",
    "aggregate_source",
    "decode_mode",
    "prefill_mode",
    "primary_decode_layer",
    "timestamp",
    "schema",
    "status",
    "profile",
    "standard",
    "name",
    "concurrency",
    "contexts",
    "prefill_contexts",
    "quantization",
];
/// Text that may be a path whose last part is a model's name.
const MODEL_KEYS: &[&str] = &["model", "model_id", "served_model_name", "root"];
/// Random identifiers of a run, not of a device.
const RUN_KEYS: &[&str] = &["run_id", "nonce"];
const COMMAND_KEYS: &[&str] = &["argv", "bench_command", "cmd", "command", "args_list"];
const HOST_KEYS: &[&str] = &["hostname", "host_name", "nodename", "fqdn"];
const DEVICE_KEYS: &[&str] = &["uuid", "uuid_hash", "gpu_uuid"];

/// A redacted document.
#[derive(Debug, Clone)]
pub struct Redacted {
    pub value: Value,
    pub bytes: Vec<u8>,
    /// Lower-case hex of the SHA-256 of `bytes`: the document's hash.
    pub sha256: String,
    /// Lower-case hex of the SHA-256 of each device identifier that was there; kept by the service, never shown.
    pub device_hashes: Vec<String>,
}

/// Redacts a parsed document.
pub fn document(mut value: Value) -> Redacted {
    let mut found = Found::default();
    found.collect(&value, "");
    let words = Words::new(found.names);
    scrub(&mut value, "", &words);
    let bytes = canonical_bytes(&value);
    let sha256 = sha256_hex(&bytes);
    let device_hashes = found.devices.iter().map(|device| sha256_hex(device.as_bytes())).collect();
    Redacted { value, bytes, sha256, device_hashes }
}

/// Redacts what the uploader added: the launch command above all.
pub fn claim(claim: &Claim) -> Claim {
    let mut claim = claim.clone();
    claim.launch_command = claim.launch_command.as_deref().map(command);
    if let Some(model) = &mut claim.model {
        model.hf_id = path_keeping_name(&model.hf_id);
    }
    if let Some(engine) = &mut claim.engine {
        for part in [&mut engine.version, &mut engine.build, &mut engine.backend].into_iter().flatten() {
            *part = text(part);
        }
    }
    if let Some(hardware) = &mut claim.hardware {
        for part in [&mut hardware.cpu, &mut hardware.os, &mut hardware.driver].into_iter().flatten() {
            *part = text(part);
        }
    }
    claim
}

/// A model's id as it stands in a redacted document.
pub fn model(id: &str) -> String {
    path_keeping_name(id)
}

/// Lower-case hex of a SHA-256.
pub fn sha256_hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

#[derive(Default)]
struct Found {
    names: BTreeSet<String>,
    devices: BTreeSet<String>,
}

impl Found {
    fn collect(&mut self, value: &Value, key: &str) {
        match value {
            Value::Object(map) => {
                map.iter().filter(|(_, value)| holds_text(value)).for_each(|(key, value)| self.collect(value, &lower(key)))
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, key)),
            Value::String(text) => self.collect_text(text, key),
            _ => {}
        }
    }

    fn collect_text(&mut self, text: &str, key: &str) {
        if HOST_KEYS.contains(&key) {
            self.names.insert(text.trim().to_owned());
        }
        if key == "uname"
            && let Some(host) = text.split_whitespace().nth(1)
        {
            self.names.insert(host.to_owned());
        }
        if DEVICE_KEYS.contains(&key) && text.chars().any(|c| c != '0' && c != '-') && !is_placeholder(text) && !text.is_empty() {
            self.devices.insert(text.to_ascii_lowercase());
        }
        self.names.extend(text::home_owners(text).map(str::to_owned));
        self.devices.extend(text::gpu_uuids(text));
    }
}

/// Most values are numbers, of which nothing is redacted.
const fn holds_text(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_))
}

fn lower(key: &str) -> Cow<'_, str> {
    if key.bytes().any(|b| b.is_ascii_uppercase()) { Cow::Owned(key.to_ascii_lowercase()) } else { Cow::Borrowed(key) }
}

fn scrub(value: &mut Value, key: &str, words: &Words) {
    match value {
        Value::Object(map) => scrub_object(map, ENVIRONMENT_KEYS.contains(&key), words),
        Value::Array(items) if COMMAND_KEYS.contains(&key) && items.iter().all(Value::is_string) => scrub_argv(items, words),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub(item, key, words)),
        Value::String(text) => {
            if let Some(scrubbed) = scrub_string(text, key, words) {
                *text = scrubbed;
            }
        }
        _ => {}
    }
}

/// Values by their key; keys by the patterns alone (bus ids stand there too). Two keys that become one are told apart by a number.
fn scrub_object(map: &mut Map<String, Value>, environment: bool, words: &Words) {
    for (key, value) in map.iter_mut() {
        if environment {
            blank(value);
        } else if holds_text(value) {
            scrub(value, &lower(key), words);
        }
    }
    if map.keys().all(|key| text::patterns(key).is_none()) {
        return;
    }
    let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (key, value) in entries {
        let clean = text::patterns(&key).unwrap_or(key);
        let mut unique = clean.clone();
        let mut number = 2;
        while map.contains_key(&unique) {
            unique = format!("{clean} #{number}");
            number += 1;
        }
        map.insert(unique, value);
    }
}

fn blank(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(_, value)| blank(value)),
        Value::Array(items) => items.iter_mut().for_each(blank),
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        other => *other = Value::String(REDACTED.to_owned()),
    }
}

fn scrub_argv(items: &mut [Value], words: &Words) {
    let argv: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    for (item, scrubbed) in items.iter_mut().zip(words.scrub_argv(&argv)) {
        *item = Value::String(scrubbed);
    }
}

/// `None`: the text stays.
fn scrub_string(text: &str, key: &str, words: &Words) -> Option<String> {
    if text.len() > TEXT_BYTES_MAX {
        return Some(LONG_TEXT.to_owned());
    }
    if text.is_empty() || RUN_KEYS.contains(&key) {
        return None;
    }
    if NAMING_KEYS.contains(&key) || is_secret_name(key) {
        let with = if is_loopback(text) { LOOPBACK } else { REDACTED };
        return (text != with).then(|| with.to_owned());
    }
    if MODEL_KEYS.contains(&key) {
        let kept = path_keeping_name(text);
        return (kept != text).then_some(kept);
    }
    // A line that the checks read is the tool's own wording; a host called "done" must not blind them.
    if VOCABULARY_KEYS.contains(&key) || (key == "event_log" && is_structural(text)) {
        let clean = text::text(text);
        return (clean != text).then_some(clean);
    }
    if COMMAND_KEYS.contains(&key) {
        return Some(words.scrub_command(text));
    }
    if key == "uname" {
        let hidden = without_host(text, words);
        return words.scrub(hidden.as_deref().unwrap_or(text)).or(hidden);
    }
    words.scrub(text)
}

/// The second word of `uname -a` is the host. It goes as a whole before a pattern changes a part of it, or the rest would be a name that the
/// redacted copy gives away anew.
fn without_host(uname: &str, words: &Words) -> Option<String> {
    let start = uname.trim_start();
    let (_, after_system) = start.split_at(start.find(char::is_whitespace)?);
    let from_host = after_system.trim_start();
    let (host, rest) = from_host.split_at(from_host.find(char::is_whitespace).unwrap_or(from_host.len()));
    let (before, _) = uname.split_at(uname.len().saturating_sub(from_host.len()));
    words.know(host).then(|| format!("{before}[name]{rest}"))
}

fn is_loopback(address: &str) -> bool {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let host = if authority.starts_with('[') { authority } else { authority.split(':').next().unwrap_or_default() };
    host == LOOPBACK || host == "localhost" || host.starts_with("[::1]") || host.starts_with("127.")
}
