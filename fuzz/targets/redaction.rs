//! Redaction of texts, commands and names: done twice it is as done once, and what must go is gone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigmark::benchmarks::redact;
use rigmark_fuzz::{Bounded, within};
use serde_json::json;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

const FIXED_BYTES: usize = 64 << 20;
const BYTES_PER_BYTE: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    within(FIXED_BYTES + text.len().saturating_mul(BYTES_PER_BYTE), || {
        for redacted in [redact::text, redact::command, redact::model] {
            let once = redacted(text);
            assert_eq!(redacted(&once), once, "done twice");
        }
        // The first line names the host, the rest is what somebody logged.
        let (host, log) = text.split_once('\n').unwrap_or(("", text));
        let document = json!({
            "metadata": { "model": log }, "startup_diagnostics": { "hostname": host, "args": { "cmd": log }, "env": { host: log } },
            "event_log": log.lines().collect::<Vec<_>>(), "note": log,
        });
        let once = redact::document(document);
        let twice = redact::document(once.value.clone());
        assert_eq!(String::from_utf8_lossy(&once.bytes), String::from_utf8_lossy(&twice.bytes), "done twice");
        let env = &once.value["startup_diagnostics"]["env"];
        assert!(log.is_empty() || env.as_object().is_none_or(|env| env.values().all(|value| value == "[redacted]" || value == "")), "{env}");
    });
});
