//! What engines answer, read leniently: every engine adds members of its own, and some send null where others send text.

use std::time::Duration;

use serde::Deserialize;

use super::SIMULATED_OWNER;

/// One served model of `/v1/models`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EngineModel {
    pub id: String,
    #[serde(default)]
    pub owned_by: Option<String>,
    /// Longest prompt plus answer in tokens, when the engine says so (vLLM and SGLang do).
    #[serde(default)]
    pub max_model_len: Option<u64>,
}

/// The engine as `/v1/models` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDescription {
    pub models: Vec<EngineModel>,
}

impl EngineDescription {
    /// True for `rigmark simulate-engine`, which names itself.
    pub fn is_simulated(&self) -> bool {
        self.models.iter().any(|model| model.owned_by.as_deref() == Some(SIMULATED_OWNER))
    }
}

#[derive(Deserialize)]
pub(super) struct ModelList {
    pub data: Vec<EngineModel>,
}

/// What a one-token completion through the whole path gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeAnswer {
    /// The model as the engine names it in its answer.
    pub model: String,
    /// The token's text; empty for a token of a channel that is not shown.
    pub text: String,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub elapsed: Duration,
}

#[derive(Deserialize)]
pub(super) struct Completion {
    #[serde(default)]
    pub model: Option<String>,
    pub choices: Vec<Choice>,
    #[serde(default)]
    pub usage: Option<Usage>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub message: Message,
}

#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub content: Option<String>,
    #[serde(default, alias = "reasoning")]
    pub reasoning_content: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub prompt_tokens: u64,
    #[serde(default)]
    pub completion_tokens: u64,
}

impl Completion {
    /// `None` when the answer holds no token at all.
    pub fn into_probe(self, asked_model: &str, elapsed: Duration) -> Option<ProbeAnswer> {
        let message = self.choices.into_iter().next()?.message;
        let text = message.content.filter(|t| !t.is_empty()).or(message.reasoning_content).unwrap_or_default();
        let usage = self.usage.unwrap_or(Usage { prompt_tokens: 0, completion_tokens: u64::from(!text.is_empty()) });
        if usage.completion_tokens == 0 && text.is_empty() {
            return None;
        }
        Some(ProbeAnswer {
            model: self.model.unwrap_or_else(|| asked_model.to_owned()),
            text,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            elapsed,
        })
    }
}
