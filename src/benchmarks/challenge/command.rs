//! The exact command lines that answer a challenge: the stock tool's and our own client's.

use super::ChallengeSpec;

/// Where the engine and the service are reached from the host's side.
#[derive(Debug, Clone, Copy)]
pub struct CommandTarget<'a> {
    /// The engine's address without `/v1`.
    pub engine_url: &'a str,
    /// The public address of this service.
    pub server_url: &'a str,
    pub challenge_id: &'a str,
}

/// The stock tool's command. The document is written to `<challenge>.json`.
pub fn tool_command(spec: &ChallengeSpec, target: &CommandTarget<'_>) -> String {
    let join = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let levels = spec.concurrency_levels.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut words = vec!["python3".to_owned(), "llm_decode_bench.py".to_owned()];
    let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), quoted(value)]);
    flag("--host", target.engine_url);
    if let Some(model) = &spec.model {
        flag("--model", model);
    }
    flag("--contexts", &join(&spec.contexts));
    flag("--concurrency", &levels);
    flag("--prefill-contexts", &join(&spec.prefill_contexts));
    flag("--duration", &spec.duration_seconds.to_string());
    flag("--max-tokens", &spec.max_tokens.to_string());
    flag("--display-mode", "plain");
    flag("--output", &format!("{}.json", target.challenge_id));
    words.join(" ")
}

/// The command of `rigmark measure`: it asks the service for the matrix and uploads the answer itself.
pub fn measure_command(spec: &ChallengeSpec, target: &CommandTarget<'_>) -> String {
    let mut words = vec!["rigmark".to_owned(), "measure".to_owned()];
    let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), quoted(value)]);
    flag("--url", target.engine_url);
    if let Some(model) = &spec.model {
        flag("--model", model);
    }
    flag("--challenge", target.challenge_id);
    flag("--server", target.server_url);
    words.push("--upload".to_owned());
    words.join(" ")
}

/// One word for a POSIX shell: a model's id or an address is somebody else's text, and the host pastes the line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let kept: String = word.chars().filter(|c| !crate::base::text::is_hidden(*c)).collect();
    format!("'{}'", kept.replace('\'', r"'\''"))
}
