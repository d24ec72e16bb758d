//! All that the double knows. Objects are the JSON that Stripe would answer, whole, by id.
//!
//! Invariants: an id is given once and depends only on how many were given before; an object belongs to the account that made it; whoever
//! changes an object puts it back and emits its event in the same call, under the one lock.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cards::Card;
use super::clock::Clock;
use super::faults::Faults;
use super::idempotency::Keys;
use super::refusal::{Answer, Refusal};
use super::webhooks::Outbox;

pub const API_VERSION: &str = "2026-09-30.endive";
/// The platform's own account.
pub const PLATFORM: &str = "acct_1DoubleOfStripe0";

struct Stored {
    account: Option<String>,
    order: u64,
    value: Value,
}

#[derive(Default)]
pub struct World {
    pub clock: Clock,
    /// Where the double is reached, for the pages it links to.
    pub url: String,
    /// Whose request is being handled: a connected account, or the platform.
    pub acting: Option<String>,
    pub request: Value,
    pub outbox: Outbox,
    pub faults: Faults,
    pub keys: Keys,
    pub calls: Vec<Value>,
    /// Payment methods that were set up for use without their owner.
    pub set_up: BTreeSet<String>,
    /// What belongs to an object and is not shown in it: lines of a session, prorations of a subscription.
    pub beside: BTreeMap<String, Value>,
    /// New refunds stay `pending` until `/_double/refunds/{id}` ends them.
    pub refunds_wait: bool,
    /// Confirmed payments stay `processing` until `/_double/payment_intents/{id}` settles them.
    pub payments_wait: bool,
    /// How each payment method behaves, by its id.
    pub cards: BTreeMap<String, &'static Card>,
    objects: BTreeMap<String, Stored>,
    given: u64,
}

impl World {
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// `prefix_` and 24 letters and digits.
    pub fn new_id(&mut self, prefix: &str) -> String {
        self.given += 1;
        format!("{prefix}_{}", letters(&format!("{prefix} {}", self.given), 24))
    }

    /// The full shape of an object, with its id and time.
    pub fn blank(&mut self, shape: &str, prefix: &str) -> Value {
        let mut value = super::shapes::blank(shape);
        value["id"] = json!(self.new_id(prefix));
        value["created"] = json!(self.now());
        value
    }

    /// Stores a new object or the new state of an old one.
    pub fn put(&mut self, value: &Value) {
        let Some(id) = value["id"].as_str() else { return };
        let next = u64::try_from(self.objects.len()).unwrap_or(u64::MAX);
        match self.objects.get_mut(id) {
            Some(stored) => stored.value = value.clone(),
            None => {
                let stored = Stored { account: self.acting.clone(), order: next, value: value.clone() };
                self.objects.insert(id.to_owned(), stored);
            }
        }
    }

    pub fn find(&self, id: &str) -> Option<Value> {
        self.objects.get(id).filter(|stored| stored.account == self.acting).map(|stored| stored.value.clone())
    }

    /// The object that a path names: 404 when there is none.
    pub fn get(&self, kind: &str, id: &str) -> Answer {
        self.of_kind(kind, id).ok_or_else(|| Refusal::no_such(kind, id, None))
    }

    /// The object that a parameter names: 400 when there is none.
    pub fn named(&self, kind: &str, id: &str, param: &str) -> Answer {
        self.of_kind(kind, id).ok_or_else(|| Refusal::no_such(kind, id, Some(param)))
    }

    fn of_kind(&self, kind: &str, id: &str) -> Option<Value> {
        self.find(id).filter(|value| value["object"] == kind)
    }

    /// An event of whatever account by its id, or the oldest one of a type.
    pub fn event(&self, name: &str) -> Option<Value> {
        if let Some(stored) = self.objects.get(name) {
            return (stored.value["object"] == "event").then(|| stored.value.clone());
        }
        let events = self.objects.values().filter(|stored| stored.value["object"] == "event" && stored.value["type"] == name);
        events.min_by_key(|stored| stored.order).map(|stored| stored.value.clone())
    }

    /// Notes that the webhook endpoint has taken an event.
    pub fn delivered(&mut self, event: &str) {
        if let Some(stored) = self.objects.get_mut(event) {
            stored.value["pending_webhooks"] = json!(0);
        }
    }

    /// Newest first.
    pub fn all(&self, kind: &str) -> Vec<Value> {
        let mine = self.objects.values().filter(|stored| stored.account == self.acting && stored.value["object"] == kind);
        let mut mine: Vec<&Stored> = mine.collect();
        mine.sort_by_key(|stored| std::cmp::Reverse(stored.order));
        mine.into_iter().map(|stored| stored.value.clone()).collect()
    }

    /// Every object of every account, oldest first.
    pub fn everything(&self) -> Vec<Value> {
        let mut all: Vec<&Stored> = self.objects.values().collect();
        all.sort_by_key(|stored| stored.order);
        all.into_iter().map(|stored| stored.value.clone()).collect()
    }

    /// The accounts that own objects; for what the clock does to all of them.
    pub fn owners(&self) -> Vec<Option<String>> {
        let owners: BTreeSet<_> = self.objects.values().map(|stored| stored.account.clone()).collect();
        owners.into_iter().collect()
    }

    /// Makes the event and queues it for the webhook endpoint.
    pub fn emit(&mut self, kind: &str, object: &Value) {
        self.emit_with(kind, object, None);
    }

    /// The same, with the members of `before` that have changed.
    pub fn emit_changed(&mut self, kind: &str, before: &Value, object: &Value) {
        let members = before.as_object().into_iter().flatten();
        let changed = members.filter(|(name, old)| object[name.as_str()] != **old).map(|(name, old)| (name.clone(), old.clone()));
        self.emit_with(kind, object, Some(Value::Object(changed.collect())));
    }

    fn emit_with(&mut self, kind: &str, object: &Value, previous: Option<Value>) {
        let mut event = self.blank("event", "evt");
        event["type"] = json!(kind);
        event["data"] = json!({ "object": object });
        if let Some(previous) = previous {
            event["data"]["previous_attributes"] = previous;
        }
        event["request"] = if self.request.is_null() { json!({ "id": null, "idempotency_key": null }) } else { self.request.clone() };
        event["pending_webhooks"] = json!(u8::from(self.outbox.has_endpoint()));
        if let Some(account) = &self.acting {
            event["account"] = json!(account);
        }
        self.put(&event);
        self.outbox.queue(&event);
    }
}

/// `count` letters and digits that depend on `seed` alone.
pub fn letters(seed: &str, count: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digest = Sha256::digest(seed.as_bytes());
    digest.iter().cycle().take(count).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}
