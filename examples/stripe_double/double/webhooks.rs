//! Events on their way to the webhook endpoint: signed, and in whatever order, number and age a test wants.
//!
//! Left alone, events go out one after another as they come about, and one that is not answered 2xx comes again with growing pauses. Held,
//! they wait for [`release`], which sends exactly what it is told to and gives the endpoint's answers.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::Instant;

use super::Shared;

const ATTEMPTS_MAX: u32 = 16;
const PAUSE_MAX: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

struct Waiting {
    event: String,
    due: Instant,
    attempts: u32,
}

#[derive(Default)]
pub struct Outbox {
    pub endpoint: Option<String>,
    pub secret: String,
    pub held: bool,
    /// Between an event and its first delivery.
    pub delay_ms: u64,
    /// Events that were never delivered, oldest first.
    pub fresh: Vec<String>,
    /// Every delivery: event, type, attempt, status (0: no answer).
    pub log: Vec<Value>,
    waiting: Vec<Waiting>,
    wake: Arc<tokio::sync::Notify>,
}

impl Outbox {
    pub const fn has_endpoint(&self) -> bool {
        self.endpoint.is_some()
    }

    pub fn queue(&mut self, event: &Value) {
        let Some(id) = event["id"].as_str() else { return };
        self.fresh.push(id.to_owned());
        if self.endpoint.is_some() && !self.held {
            self.wait(id.to_owned(), Duration::from_millis(self.delay_ms), 0);
        }
    }

    /// Lets what was held go its usual way.
    pub fn go_on(&mut self) {
        self.held = false;
        for id in self.fresh.clone() {
            self.wait(id, Duration::ZERO, 0);
        }
    }

    /// Keeps what has not gone out.
    pub fn hold(&mut self) {
        self.held = true;
        self.waiting.clear();
    }

    fn wait(&mut self, event: String, pause: Duration, attempts: u32) {
        self.waiting.push(Waiting { event, due: Instant::now() + pause, attempts });
        self.wake.notify_one();
    }
}

/// What is wrong with a delivery's signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signature {
    #[default]
    Right,
    /// Made with another secret.
    Wrong,
    /// No header.
    Missing,
    /// Without `t=`.
    Untimed,
    /// Made over other bytes of the same JSON than those sent.
    Reserialized,
}

/// Which events to deliver, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// Ids or types, in this order; a type is its oldest event. Empty: all that were never delivered, oldest first.
    pub events: Vec<String>,
    pub reverse: bool,
    /// How often each is sent.
    pub copies: usize,
    /// How many are under way at once.
    pub parallel: usize,
    /// Where to, in turn; empty: to the webhook endpoint.
    pub endpoints: Vec<String>,
    /// How old the signature's time is.
    pub age_seconds: i64,
    pub signature: Signature,
    /// Members to overwrite in the event, by JSON pointer: other currencies, unknown ids and types.
    pub patch: std::collections::BTreeMap<String, Value>,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            reverse: false,
            copies: 1,
            parallel: 1,
            endpoints: Vec::new(),
            age_seconds: 0,
            signature: Signature::Right,
            patch: std::collections::BTreeMap::new(),
        }
    }
}

/// Delivers, and gives `{"event", "type", "status"}` of each delivery in the order they were begun.
pub async fn release(shared: &Arc<Shared>, how: &Release) -> Result<Vec<Value>, String> {
    let events = chosen(shared, how)?;
    let copies = how.copies.max(1);
    let all = events.into_iter().flat_map(|event| std::iter::repeat_n(event, copies));
    let sent = futures::stream::iter(all.enumerate()).map(|(at, event)| async move {
        let endpoint = how.endpoints.get(at % how.endpoints.len().max(1)).cloned();
        let status = send(shared, &event, how, endpoint).await;
        json!({ "event": event["id"], "type": event["type"], "status": status })
    });
    Ok(sent.buffered(how.parallel.max(1)).collect().await)
}

fn chosen(shared: &Shared, how: &Release) -> Result<Vec<Value>, String> {
    let mut world = shared.lock();
    let names = if how.events.is_empty() { world.outbox.fresh.clone() } else { how.events.clone() };
    let mut events = Vec::new();
    for name in names {
        events.push(world.event(&name).ok_or_else(|| format!("no event {name}"))?);
    }
    if how.reverse {
        events.reverse();
    }
    let ids: Vec<Value> = events.iter().map(|event| event["id"].clone()).collect();
    world.outbox.fresh.retain(|id| !ids.iter().any(|sent| sent == id.as_str()));
    for event in &mut events {
        for (pointer, value) in &how.patch {
            let place = event.pointer_mut(pointer).ok_or_else(|| format!("no {pointer} in the event"))?;
            *place = value.clone();
        }
    }
    Ok(events)
}

/// The bytes of an event as Stripe sends them.
fn body_of(event: &Value) -> String {
    serde_json::to_string_pretty(event).unwrap_or_default()
}

/// `t=…,v1=…` over `body`.
pub fn signature(secret: &str, at: i64, body: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("{at}.{body}").as_bytes());
    format!("t={at},v1={}", data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes()))
}

async fn send(shared: &Arc<Shared>, event: &Value, how: &Release, elsewhere: Option<String>) -> u16 {
    let (endpoint, secret, at) = {
        let world = shared.lock();
        (world.outbox.endpoint.clone(), world.outbox.secret.clone(), world.now() - how.age_seconds)
    };
    let Some(endpoint) = elsewhere.or(endpoint) else { return 0 };
    let signed = body_of(event);
    let header = match how.signature {
        Signature::Wrong => Some(signature("whsec_another", at, &signed)),
        Signature::Missing => None,
        Signature::Untimed => signature(&secret, at, &signed).split_once(',').map(|(_, rest)| rest.to_owned()),
        Signature::Right | Signature::Reserialized => Some(signature(&secret, at, &signed)),
    };
    let sent = if how.signature == Signature::Reserialized { event.to_string() } else { signed };
    let mut request = shared.client.post(endpoint).header("content-type", "application/json; charset=utf-8").timeout(ANSWER_WITHIN);
    request = request.header("user-agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)");
    if let Some(header) = header {
        request = request.header("stripe-signature", header);
    }
    let status = request.body(sent).send().await.map_or(0, |answer| answer.status().as_u16());
    note(shared, event, status);
    status
}

fn note(shared: &Shared, event: &Value, status: u16) {
    let mut world = shared.lock();
    world.outbox.log.push(json!({ "event": event["id"], "type": event["type"], "status": status }));
    if let (true, Some(id)) = ((200..300).contains(&status), event["id"].as_str()) {
        world.delivered(id);
    }
}

/// Sends what is due, until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let wake = shared.lock().outbox.wake.clone();
    loop {
        let next = {
            let mut world = shared.lock();
            let waiting = &mut world.outbox.waiting;
            let at = (0..waiting.len()).min_by_key(|at| waiting[*at].due);
            at.map(|at| (waiting[at].due, at)).map(|(due, at)| if due <= Instant::now() { Ok(waiting.remove(at)) } else { Err(due) })
        };
        match next {
            None => wake.notified().await,
            Some(Err(due)) => {
                tokio::select! { () = tokio::time::sleep_until(due) => {}, () = wake.notified() => {} }
            }
            Some(Ok(waiting)) => deliver(&shared, waiting).await,
        }
    }
}

async fn deliver(shared: &Arc<Shared>, waiting: Waiting) {
    let event = {
        let mut world = shared.lock();
        world.outbox.fresh.retain(|id| *id != waiting.event);
        world.event(&waiting.event)
    };
    let Some(event) = event else { return };
    let status = send(shared, &event, &Release::default(), None).await;
    let attempts = waiting.attempts + 1;
    let mut world = shared.lock();
    if !(200..300).contains(&status) && attempts < ATTEMPTS_MAX && !world.outbox.held {
        let pause = Duration::from_millis(500).saturating_mul(1 << attempts.min(7)).min(PAUSE_MAX);
        world.outbox.wait(waiting.event, pause, attempts);
    }
}
