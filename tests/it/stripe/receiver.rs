//! A webhook endpoint that keeps what comes and answers as a test says.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

#[derive(Clone, Debug)]
pub struct Received {
    /// `Stripe-Signature`; empty when there was none.
    pub signature: String,
    pub body: String,
}

impl Received {
    pub fn event(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub struct Receiver {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
    /// Statuses of the next answers, the last first; then 200.
    pub statuses: Arc<Mutex<Vec<u16>>>,
    _task: JoinSet<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/webhooks", listener.local_addr().unwrap());
        let (received, statuses) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::<Mutex<Vec<u16>>>::default());
        let mut task = JoinSet::new();
        let (kept, answers) = (received.clone(), statuses.clone());
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, kept.clone(), answers.clone()));
            }
        });
        Self { url, received, statuses, _task: task }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub fn types(&self) -> Vec<String> {
        self.received().iter().map(|received| super::text(&received.event()["type"])).collect()
    }
}

/// One request; then the connection closes.
async fn serve(mut stream: TcpStream, kept: Arc<Mutex<Vec<Received>>>, answers: Arc<Mutex<Vec<u16>>>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).await.unwrap_or_default();
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next().unwrap_or_default()
            };
            if body.len() >= header("content-length").parse::<usize>().unwrap_or_default() {
                kept.lock().unwrap().push(Received { signature: header("stripe-signature"), body: body.to_owned() });
                break;
            }
        }
        if read == 0 {
            return;
        }
    }
    let status = answers.lock().unwrap().pop().unwrap_or(200);
    let answer = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok();
}
