//! The `webhooks` of the document: what is sent to webhook endpoints.

use serde_json::{Map, Value, json};

use super::parts::reference;
use crate::webhooks::EventType;

/// Adds an entry for each kind of event.
pub(super) fn add(document: &mut Value) {
    let tests = ("webhook.test", "Sent when an endpoint's owner asks for it.", test_data());
    let events = EventType::ALL.iter().map(|event| (event.as_str(), event.meaning(), reference("schemas", event.data_schema())));
    let entries: Map<String, Value> =
        events.chain([tests]).map(|(name, meaning, data)| (name.to_owned(), entry(name, meaning, &data))).collect();
    document["webhooks"] = Value::Object(entries);
}

fn test_data() -> Value {
    json!({"type": "object", "required": ["webhook_endpoint_id"], "properties": {"webhook_endpoint_id": reference("schemas", "WebhookEndpointId")}})
}

fn entry(name: &str, meaning: &str, data: &Value) -> Value {
    json!({"post": {
        "operationId": format!("on_{}", name.replace('.', "_")),
        "summary": name,
        "description": meaning,
        "tags": ["Webhooks"],
        "security": [],
        "parameters": [
            header("webhook-id", "The event, the same at every try: what came before is known by it.", json!({"type": "string", "pattern": "^msg_[0-9a-z]{26}$"})),
            header("webhook-timestamp", "When this try was made, in seconds since 1970.", json!({"type": "string", "pattern": "^[0-9]+$"})),
            header("webhook-signature", "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; after a rotation one of each secret, separated by a space.",
                json!({"type": "string", "pattern": "^v1,\\S+(?: v1,\\S+)*$"})),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object",
            "required": ["type", "timestamp", "data"],
            "properties": {
                "type": {"type": "string", "const": name},
                "timestamp": {"type": "string", "format": "date-time", "description": "When it happened; wall time."},
                "data": data,
            },
        }}}},
        "responses": {
            "2XX": {"description": "Delivered."},
            "410": {"description": "Send nothing more: the endpoint is disabled."},
            "default": {"description": "Not delivered: it is sent again, for about three days."},
        },
    }})
}

fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "required": true, "description": description, "schema": schema})
}
