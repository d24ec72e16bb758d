//! Notices between the parts of a service that are only hints ("rental rnt_… changed"): delivered in the process, and through Redis to the
//! other processes when there is one.
//!
//! At most once, and lost while Redis is away: who listens must read the truth from the database, also after [`Notice::Missed`] and now and
//! then without any notice.

use std::sync::Arc;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    task::JoinHandle,
    time::{Duration, sleep},
};
use uuid::Uuid;

use super::redis::Redis;

const NOTICES_KEPT: usize = 1_024;
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
const CHANNEL: &str = "notices";

/// The notice board of a process. Clones share it.
#[derive(Clone)]
pub struct PubSub(Arc<Inner>);

struct Inner {
    sender: broadcast::Sender<Arc<Sent>>,
    shared: Option<Shared>,
}

struct Shared {
    redis: Redis,
    /// Tells our own notices from those of other processes.
    process: Uuid,
    listener: JoinHandle<()>,
}

#[derive(Serialize, Deserialize)]
struct Sent {
    from: Uuid,
    topic: String,
    text: String,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.listener.abort();
        }
    }
}

impl PubSub {
    /// With Redis it needs a tokio runtime, on which it listens until the last clone is dropped.
    pub fn new(redis: Option<Redis>) -> Self {
        let (sender, _) = broadcast::channel(NOTICES_KEPT);
        let shared = redis.map(|redis| {
            let process = Uuid::new_v4();
            let listener = tokio::spawn(listen(redis.clone(), process, sender.clone()));
            Shared { redis, process, listener }
        });
        Self(Arc::new(Inner { sender, shared }))
    }

    /// Never fails and never waits long.
    pub async fn publish(&self, topic: &str, text: &str) {
        let from = self.0.shared.as_ref().map_or(Uuid::nil(), |shared| shared.process);
        let sent = Sent { from, topic: topic.to_owned(), text: text.to_owned() };
        if let Some(shared) = &self.0.shared
            && let Ok(message) = serde_json::to_string(&sent)
        {
            let channel = shared.redis.key(CHANNEL);
            shared.redis.run(async |connection| redis::cmd("PUBLISH").arg(channel).arg(message).exec_async(connection).await).await;
        }
        // Nobody listening is no fault.
        let _ = self.0.sender.send(Arc::new(sent));
    }

    pub fn subscribe(&self, topic: &str) -> Subscription {
        Subscription { topic: topic.to_owned(), receiver: self.0.sender.subscribe() }
    }
}

/// The notices of one topic, from the moment of subscribing.
pub struct Subscription {
    topic: String,
    receiver: broadcast::Receiver<Arc<Sent>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Text(String),
    /// The listener was too slow; some were dropped.
    Missed,
}

impl Subscription {
    /// The next notice; `None` when the process ends.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.receiver.recv().await {
                Ok(sent) if sent.topic == self.topic => return Some(Notice::Text(sent.text.clone())),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some(Notice::Missed),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Passes on what other processes publish, for ever.
async fn listen(redis: Redis, process: Uuid, sender: broadcast::Sender<Arc<Sent>>) {
    loop {
        if let Ok(mut subscriber) = redis.subscriber().await
            && subscriber.subscribe(redis.key(CHANNEL)).await.is_ok()
        {
            let mut messages = subscriber.into_on_message();
            while let Some(message) = messages.next().await {
                let sent = message.get_payload::<String>().ok().and_then(|text| serde_json::from_str::<Sent>(&text).ok());
                if let Some(sent) = sent.filter(|sent| sent.from != process) {
                    let _ = sender.send(Arc::new(sent));
                }
            }
        }
        sleep(RECONNECT_AFTER).await;
    }
}
