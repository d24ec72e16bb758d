//! Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::schema::{ObjectBuilder, Schema, SchemaType, Type},
};

use crate::base::{Code, Error};

/// OpenAI's error body.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenAiError {
    pub error: OpenAiErrorBody,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct OpenAiErrorBody {
    pub message: String,
    #[serde(rename = "type")]
    #[schema(value_type = Option<String>)]
    pub kind: &'static str,
    pub param: Option<String>,
    /// Our stable code, or whatever the engine gave.
    #[schema(schema_with = any_code)]
    pub code: &'static str,
}

/// Engines give texts, numbers or null.
fn any_code() -> Schema {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Integer, Type::Null])).into()
}

impl OpenAiError {
    pub fn from_error(error: &Error) -> Self {
        let kind = match error.code() {
            Code::Unauthenticated | Code::InvalidCredentials => "authentication_error",
            Code::InsufficientScope | Code::Forbidden => "permission_error",
            Code::NotFound => "not_found_error",
            Code::RateLimited => "rate_limit_error",
            Code::Internal | Code::Unavailable | Code::EngineUnreachable | Code::EngineError => "server_error",
            _ => "invalid_request_error",
        };
        let param = error.fields().first().map(|f| f.pointer.trim_start_matches('/').to_owned());
        Self { error: OpenAiErrorBody { message: error.detail().to_owned(), kind, param, code: error.code().as_str() } }
    }
}
