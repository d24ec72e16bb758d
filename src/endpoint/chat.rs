//! Chat requests and answers for the OpenAPI document only: bodies pass through unread, but for `model` and `stream`.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A chat request as OpenAI defines it. Members that are not named here pass through to the engine.
#[derive(Serialize, ToSchema)]
pub struct ChatRequest {
    /// A name from `GET /v1/models`.
    #[schema(min_length = 1)]
    pub model: String,
    #[schema(min_items = 1)]
    pub messages: Vec<ChatMessage>,
    /// Answer as server-sent events, token by token.
    pub stream: Option<bool>,
    /// The most tokens to answer.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One message of a conversation.
#[derive(Serialize, ToSchema)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// A text, or parts as OpenAI defines them.
    pub content: Option<Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The engine's answer, as OpenAI defines it.
#[derive(Serialize, ToSchema)]
pub struct ChatCompletion {
    pub id: String,
    /// `chat.completion`.
    pub object: String,
    /// Unix time in seconds.
    pub created: i64,
    pub model: String,
    pub choices: Vec<ChatChoice>,
    pub usage: Option<ChatUsage>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Serialize, ToSchema)]
pub struct ChatChoice {
    pub index: u32,
    pub message: ChatMessage,
    /// `stop` or `length`, among others.
    pub finish_reason: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Serialize, ToSchema)]
pub struct ChatUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: Option<u64>,
    pub total_tokens: u64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
