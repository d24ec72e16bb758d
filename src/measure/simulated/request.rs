//! Requests as the two completion paths take them. Members that change nothing here (temperature, stop, …) are ignored, as vLLM ignores
//! what it does not know.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::text;
use super::{BLOCK_TOKENS, SimulatedConfig, Wits};
use crate::measure::question::read_and_answer;

const BYTES_PER_TOKEN: u64 = 4;
const MESSAGE_TOKENS: u64 = 4;
const HEAD_TOKENS: u64 = 3;

#[derive(Deserialize)]
pub struct CompletionRequest {
    pub model: Option<String>,
    #[serde(default)]
    pub messages: Vec<Message>,
    pub prompt: Option<Value>,
    #[serde(default, deserialize_with = "false_for_null")]
    pub stream: bool,
    pub stream_options: Option<StreamOptions>,
    pub max_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    #[serde(default)]
    pub ignore_eos: bool,
    pub seed: Option<i64>,
    pub n: Option<u64>,
}

fn false_for_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
pub struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize, Clone, Copy, Default)]
pub struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
    #[serde(default)]
    pub continuous_usage_stats: bool,
}

/// A request that was found good, ready for the scheduler.
#[derive(Clone, Debug)]
pub struct Job {
    pub prompt_tokens: u64,
    /// Hash of the prompt up to the end of each full block.
    pub blocks: Vec<u64>,
    /// Tokens of the answer, and whether it ends there by the limit or by itself.
    pub answer_tokens: u64,
    pub ends_by_itself: bool,
    pub seed: u64,
    /// The first words of the answer, where the prompt asks for them; one a token.
    pub opening: Arc<[String]>,
}

/// A refusal in the words of vLLM: status, type and message.
pub struct Refusal {
    pub status: u16,
    pub kind: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { status: 400, kind: "BadRequestError", message: message.into() }
    }
}

impl CompletionRequest {
    pub fn into_job(self, config: &SimulatedConfig, chat: bool) -> Result<Job, Refusal> {
        if let Some(model) = self.model.as_deref().filter(|model| *model != config.model) {
            let message = format!("The model `{model}` does not exist.");
            return Err(Refusal { status: 404, kind: "NotFoundError", message });
        }
        if self.n.is_some_and(|n| n != 1) {
            return Err(Refusal::bad_request("n must be 1"));
        }
        let prompt = if chat { chat_prompt(&self.messages)? } else { plain_prompt(self.prompt.as_ref())? };
        let limit = config.max_model_len;
        if prompt.tokens >= limit {
            return Err(Refusal::bad_request(format!(
                "This model's maximum context length is {limit} tokens. However, your request has {} input tokens.",
                prompt.tokens
            )));
        }
        let room = limit - prompt.tokens;
        let asked = self.max_completion_tokens.or(self.max_tokens).unwrap_or(if chat { room } else { 16.min(room) });
        if asked == 0 {
            return Err(Refusal::bad_request("max_tokens must be at least 1"));
        }
        if asked > room {
            return Err(Refusal::bad_request(format!(
                "'max_tokens' is too large: {asked}. This model's maximum context length is {limit} tokens and your request has {} input tokens.",
                prompt.tokens
            )));
        }
        let seed = self.seed.map_or(prompt.hash, |seed| text::mix(prompt.hash ^ seed.unsigned_abs()));
        let natural = 32 + text::mix(seed) % 480;
        let ends_by_itself = !self.ignore_eos && natural < asked;
        let answer_tokens = if ends_by_itself { natural } else { asked };
        let opening = opening(&prompt.text, config.wits);
        let seed = if config.wits == Wits::Recites { 0 } else { seed };
        Ok(Job { prompt_tokens: prompt.tokens, blocks: prompt.blocks, answer_tokens, ends_by_itself, seed, opening })
    }
}

/// Words without what JSON would have to escape.
fn words(text: &str) -> Arc<[String]> {
    text.split_whitespace().map(|word| word.chars().filter(|c| c.is_ascii_alphanumeric() || ".,".contains(*c)).collect()).collect()
}

fn opening(prompt: &str, wits: Wits) -> Arc<[String]> {
    match wits {
        Wits::Reads => words(&read_and_answer(prompt).unwrap_or_default()),
        Wits::Echoes => words(prompt),
        Wits::Recites => Arc::default(),
        Wits::Forgets => {
            let lines: Vec<&str> = prompt.lines().collect();
            let (first, last) = (lines.len() / 3, lines.len() - lines.len() / 3);
            let rest: Vec<&str> = lines.iter().take(first).chain(lines.iter().skip(last)).copied().collect();
            words(&read_and_answer(&rest.join("\n")).unwrap_or_default())
        }
    }
}

struct Prompt {
    text: String,
    tokens: u64,
    hash: u64,
    blocks: Vec<u64>,
}

impl Prompt {
    fn of(pieces: &[String], extra_tokens: u64) -> Self {
        let bytes_per_block = usize::try_from(BLOCK_TOKENS * BYTES_PER_TOKEN).unwrap_or(64);
        let whole = pieces.join("\u{0}");
        let tokens = pieces.iter().map(|piece| (piece.len() as u64).div_ceil(BYTES_PER_TOKEN)).sum::<u64>() + extra_tokens;
        let mut hash = 0;
        let blocks = whole
            .as_bytes()
            .chunks(bytes_per_block)
            .map(|chunk| {
                hash = text::hash(hash, chunk);
                (hash, chunk.len() == bytes_per_block)
            })
            .collect::<Vec<_>>();
        let blocks = blocks.into_iter().filter_map(|(hash, full)| full.then_some(hash)).collect();
        Self { text: whole, tokens, hash, blocks }
    }
}

fn chat_prompt(messages: &[Message]) -> Result<Prompt, Refusal> {
    if messages.is_empty() {
        return Err(Refusal::bad_request("messages must not be empty"));
    }
    let pieces: Vec<String> = messages
        .iter()
        .map(|m| if m.role == "user" { text_of(&m.content) } else { format!("{}:{}", m.role, text_of(&m.content)) })
        .collect();
    let extra = HEAD_TOKENS + MESSAGE_TOKENS * messages.len() as u64;
    Ok(Prompt::of(&pieces, extra))
}

/// Text of a message's content: a string, or a list of parts of which only texts count.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

fn plain_prompt(prompt: Option<&Value>) -> Result<Prompt, Refusal> {
    match prompt {
        Some(Value::String(text)) if !text.is_empty() => Ok(Prompt::of(std::slice::from_ref(text), 0)),
        Some(Value::Array(parts)) if parts.len() == 1 => plain_prompt(parts.first()),
        // Token ids: each is one token and counts as four bytes of text.
        Some(Value::Array(ids)) if !ids.is_empty() && ids.iter().all(Value::is_u64) => {
            Ok(Prompt::of(&[ids.iter().filter_map(Value::as_u64).map(|id| format!("{:04x}", id & 0xffff)).collect()], 0))
        }
        _ => Err(Refusal::bad_request("prompt must be a string, a list of one string or a list of token ids")),
    }
}
