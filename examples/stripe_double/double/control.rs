//! `/_double/…`: what a test or a person does to the double from outside. JSON in and out; pages for people.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::{Answer, Refusal};
use super::server::{Outcome, refused};
use super::webhooks::{self, Release};
use super::world::World;
use super::{Shared, checkout, connect, disputes, faults, pages, payments, payouts, refunds, setup};

pub const HELP: &str = r#"POST   /_double/faults                  {"kind": "status" | "drop_before" | "drop_after" | "delay_before" | "delay_after",
                                         "status": 500, "delay_ms": 0, "times": 1, "method": "POST", "path": "/v1/refunds", "kept": false}
DELETE /_double/faults                  no more of them
GET    /_double/calls                   every request to /v1 so far; DELETE forgets them
GET    /_double/clock                   {"now"}; POST {"advance_seconds": 86400} moves it, and does what falls due
GET    /_double/webhooks                what was not delivered yet, and every delivery
POST   /_double/webhooks                {"mode": "hold" | "auto", "delay_ms": 0, "endpoint": URL, "secret": "whsec_…"}
POST   /_double/webhooks/release        {"events": [ids or types], "reverse": false, "copies": 1, "parallel": 1,
                                         "endpoints": [URLs in turn, if not the usual one], "age_seconds": 0,
                                         "signature": "right" | "wrong" | "missing" | "untimed" | "reserialized",
                                         "patch": {"/data/object/currency": "eur"}}: delivers and gives the statuses
POST   /_double/payments                {"wait": true}: confirmed payments stay `processing`
POST   /_double/payment_intents/{id}    {"outcome": "succeeded" | "failed"}: ends `processing` or `requires_action`
POST   /_double/refunds                 {"wait": true}: new refunds stay `pending`
POST   /_double/refunds/{id}            {"status": "succeeded" | "failed" | "canceled", "failure_reason": "unknown"}
POST   /_double/disputes                {"charge" or "payment_intent": id, "reason": "fraudulent", "amount": cents}
POST   /_double/disputes/{id}           {"status": "won" | "lost" | "warning_closed"}
POST   /_double/checkout/{cs_…}         {"card": number or name, "email": …}: completes the session; the page is at GET
POST   /_double/accounts/{acct_…}       {"outcome": "complete" | "restrict" | "dead_bank" | "reject"}
POST   /_double/payouts/{id}            {"status": "paid" | "failed" | "canceled", "failure_code": "account_closed"}
Pages: /_double/checkout/{cs_…}, /_double/authenticate/{pi_… or seti_…}, /_double/portal/{bps_…}, /_double/onboard/{acct_…}
Add ?account=acct_… to act as a connected account.
"#;

pub async fn handle(shared: &Arc<Shared>, method: &str, target: &str, body: &[u8]) -> Outcome {
    let (path, account) = match target.split_once("?account=") {
        Some((path, account)) => (path, Some(account.to_owned())),
        None => (target, None),
    };
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).skip(1).collect();
    if let Some(outcome) = pages::handle(shared, method, &steps, body) {
        return outcome;
    }
    let body = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(_) if body.is_empty() => json!({}),
        Err(error) => return told(400, json!({ "fault": error.to_string() })),
    };
    if (method, steps.as_slice()) == ("POST", ["webhooks", "release"].as_slice()) {
        return match release(shared, &body).await {
            Ok(sent) => told(200, json!(sent)),
            Err(fault) => told(400, json!({ "fault": fault })),
        };
    }
    let mut world = shared.lock();
    world.acting = account;
    let answered = act(&mut world, method, &steps, &body);
    world.acting = None;
    match answered {
        Ok(body) => told(200, body),
        Err(refusal) => refused(&refusal, "req_control"),
    }
}

fn told(status: u16, body: Value) -> Outcome {
    Outcome::Json { status, body, request_id: "req_control".to_owned(), replayed: false }
}

async fn release(shared: &Arc<Shared>, body: &Value) -> Result<Vec<Value>, String> {
    let how = Release::deserialize(body).map_err(|error| error.to_string())?;
    webhooks::release(shared, &how).await
}

pub fn act(world: &mut World, method: &str, steps: &[&str], body: &Value) -> Answer {
    let wants = |name: &str| body[name].as_str().ok_or_else(|| Refusal::missing(name));
    match (method, steps) {
        ("POST", ["faults"]) => {
            let fault = faults::read(body).map_err(|fault| Refusal::invalid(fault, None))?;
            world.faults.add(fault);
            Ok(json!({ "added": body }))
        }
        ("DELETE", ["faults"]) => {
            world.faults.clear();
            Ok(json!({}))
        }
        ("GET", ["calls"]) => Ok(json!(world.calls)),
        ("DELETE", ["calls"]) => {
            world.calls.clear();
            Ok(json!({}))
        }
        ("GET", ["clock"]) => Ok(json!({ "now": world.now() })),
        ("POST", ["clock"]) => {
            let seconds = body["advance_seconds"].as_i64().ok_or_else(|| Refusal::missing("advance_seconds"))?;
            super::advance(world, seconds);
            Ok(json!({ "now": world.now() }))
        }
        ("GET", ["webhooks"]) => Ok(webhooks_shown(world)),
        ("POST", ["webhooks"]) => set_webhooks(world, body),
        ("POST", ["payments"]) => {
            world.payments_wait = body["wait"] == true;
            Ok(body.clone())
        }
        ("POST", ["payment_intents", id]) => {
            let succeeds = wants("outcome")? == "succeeded";
            if id.starts_with("seti_") {
                return setup::authenticate(world, id, succeeds);
            }
            let asks = world.get("payment_intent", id)?["status"] == "requires_action";
            if asks { payments::authenticate(world, id, succeeds) } else { payments::settle(world, id, succeeds) }
        }
        ("POST", ["refunds"]) => {
            world.refunds_wait = body["wait"] == true;
            Ok(body.clone())
        }
        ("POST", ["refunds", id]) => refunds::end(world, id, wants("status")?, body["failure_reason"].as_str()),
        ("POST", ["checkout", id]) => {
            let card = wants("card").and_then(pages::card)?;
            checkout::complete(world, id, card, body["email"].as_str())
        }
        ("POST", ["accounts", id]) => connect::set(world, id, wants("outcome")?),
        ("POST", ["payouts", id]) => payouts::end(world, id, wants("status")?, body["failure_code"].as_str()),
        ("POST", ["disputes"]) => disputes::demand(world, body),
        ("POST", ["disputes", id]) => disputes::end(world, id, wants("status")?),
        _ => Err(Refusal { status: 404, ..Refusal::invalid("No such control. GET /_double lists them.", None) }),
    }
}

fn webhooks_shown(world: &World) -> Value {
    let fresh: Vec<Value> = world.outbox.fresh.iter().filter_map(|id| world.event(id)).collect();
    let fresh: Vec<Value> = fresh.iter().map(|event| json!({ "event": event["id"], "type": event["type"] })).collect();
    let mode = if world.outbox.held { "hold" } else { "auto" };
    json!({ "mode": mode, "endpoint": world.outbox.endpoint, "undelivered": fresh, "deliveries": world.outbox.log })
}

fn set_webhooks(world: &mut World, body: &Value) -> Answer {
    if let Some(endpoint) = body["endpoint"].as_str() {
        world.outbox.endpoint = Some(endpoint.to_owned());
    }
    if let Some(secret) = body["secret"].as_str() {
        world.outbox.secret = secret.to_owned();
    }
    if let Some(delay_ms) = body["delay_ms"].as_u64() {
        world.outbox.delay_ms = delay_ms;
    }
    match body["mode"].as_str() {
        Some("hold") => world.outbox.hold(),
        Some("auto") => world.outbox.go_on(),
        Some(other) => return Err(Refusal::invalid(format!("No such mode: {other}"), Some("mode"))),
        None => {}
    }
    Ok(webhooks_shown(world))
}
